/** Services that a test makes up, as a Source has them. */
import type { ServiceEvent } from '../../../live/events.ts';
import type { Snapshot } from '../../../live/snapshot.ts';
import type { RequestNow, Source, WholeStall } from '../../../live/source.ts';

export interface MadeUp {
  look: () => Snapshot | Promise<Snapshot>;
  requests?: (pod: string, worker: number) => RequestNow[];
  stalls?: WholeStall[];
  profile?: string;
  events?: () => ServiceEvent[] | undefined;
}

export function madeUp({ look, requests = () => [], stalls = [], profile = '', events = () => [] }: MadeUp): Source {
  return {
    look: async () => look(),
    podNames: async () => (await look()).pods.map(({ name }) => name),
    requests: async (pod, worker) => requests(pod, worker),
    stalls: async () => stalls,
    profile: async () => profile,
    accessLog: async () => {},
    events: async () => events(),
    close: async () => {},
  };
}

/** A small CPU profile; the function has this name. */
export function cpuProfile(functionName: string): string {
  const frame = (name: string) => ({ functionName: name, url: 'file:///app/a.js', lineNumber: 2 });
  return JSON.stringify({
    nodes: [
      { id: 1, callFrame: frame('(root)'), children: [2] },
      { id: 2, callFrame: frame(functionName) },
    ],
    samples: [2, 2],
    timeDeltas: [1_000, 1_000],
  });
}

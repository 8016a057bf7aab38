/** The rollout of a fleet, as its status tells it, and who has rendered what. */
import { eventually, get } from './cluster.ts';
import type { Fleet } from './fleet.ts';
import { startLoad } from './load.ts';
import { deploymentsOf, type LiveRenderService } from './renderservice.ts';

export interface Rollout {
  phase: string;
  reason?: string;
  revision: string;
  message?: string;
  canary?: {
    revision: string;
    attempt: number;
    step: number;
    share: number;
    appliedPods: number;
    pods: number;
    analysis?: { errors: { canary: number; stable: number } };
  };
}
export type WithRollout = LiveRenderService & { status?: { rollout?: Rollout } };

export function readFleet(fleet: Fleet): Promise<WithRollout> {
  return get<WithRollout>('-n', fleet.namespace, 'renderservice', fleet.name);
}

/** Waits until status says this of the rollout. */
export async function untilRollout(fleet: Fleet, what: string, holds: (rollout: Rollout) => boolean): Promise<Rollout> {
  let last: Rollout | undefined;
  try {
    return await eventually(what, 180_000, async () => {
      last = (await readFleet(fleet)).status?.rollout;
      return last && holds(last) ? last : undefined;
    });
  } catch (error) {
    throw new Error(`${(error as Error).message}; the rollout: ${JSON.stringify(last)}`);
  }
}

/** Waits until the canary has this share, and a person is asked. */
export function untilAsked(fleet: Fleet, share: number, holds: (rollout: Rollout) => boolean): Promise<Rollout> {
  return untilRollout(
    fleet,
    'it to wait for somebody',
    (rollout) =>
      rollout.phase === 'Paused' &&
      rollout.reason === 'AwaitingApproval' &&
      rollout.canary?.share === share &&
      holds(rollout),
  );
}

/** Asks through the Service, and gives how many requests pods of a revision have rendered, and how many there were. */
export async function renderedBy(
  fleet: Fleet,
  revision: string,
  requests: number,
): Promise<[ofRevision: number, all: number]> {
  const url = `http://${fleet.name}.${fleet.namespace}.svc.cluster.local./`;
  const { result } = await startLoad(fleet.namespace, 'measured', [
    ...['--url', url, '--requests', String(requests), '--rate', '40', '--max-seconds', '150'],
  ]);
  const { ok, workers } = await result(200_000);
  const deployment = (await deploymentsOf(fleet.namespace, fleet.name)).find(
    ({ metadata }) => metadata.labels['corelane.dev/revision'] === revision,
  );
  const counts = Object.entries(workers as Record<string, { requests: number }>);
  const own = counts.filter(([worker]) => deployment && worker.startsWith(`${deployment.metadata.name}-`));
  return [own.reduce((sum, [, one]) => sum + one.requests, 0), ok];
}

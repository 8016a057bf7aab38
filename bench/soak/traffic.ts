/** Clients inside the cluster that ask the honest RenderServices, at a low rate, from the beginning to the end. */

import { eventually, get, kubectl, SELDOM_MS } from '../../e2e/harness/cluster/cluster.ts';
import type { TimelineEntry } from '../../e2e/harness/cluster/fleet.ts';
import { type Load, type LoadResult, startLoad } from '../../e2e/harness/cluster/load.ts';
import { HONEST } from './sequence.ts';

/** A client is relieved by another one after so long: it keeps what became of each request in its memory. */
const SHIFT_MS = 900_000;
const SHIFT_S_MAX = 2_400;

interface Visitor {
  name: string;
  of: keyof typeof HONEST;
  ratePerS: number;
  options: string[];
}

const VISITORS: Visitor[] = [
  { name: 'steady', of: 'steady', ratePerS: 4, options: [] },
  { name: 'rolled', of: 'rolled', ratePerS: 4, options: [] },
  // One after the other over a connection that is kept.
  { name: 'kept', of: 'rolled', ratePerS: 1, options: ['--concurrency', '1', '--keep-alive'] },
];

interface Client {
  visitor: Visitor;
  pod: string;
  load: Load;
}

export interface Visits {
  client: string;
  timeline: TimelineEntry[];
  overlaps: number;
}

export class Traffic {
  readonly visits: Visits[] = [];
  readonly #seed: number;
  #clients: Client[] = [];
  #shift = 0;
  #begunMs = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  async start(): Promise<void> {
    this.#shift += 1;
    const clients: Client[] = [];
    for (const visitor of VISITORS) {
      const pod = `visitor-${visitor.name}-${this.#shift}`;
      clients.push({ visitor, pod, load: await this.#startOne(visitor, pod) });
    }
    // Only now: those of before go on where these cannot be started.
    this.#clients = clients;
    this.#begunMs = Date.now();
  }

  /** Lets others go on where it is time; there is no moment without any. */
  async relieve(): Promise<void> {
    if (Date.now() - this.#begunMs < SHIFT_MS) return;
    const before = this.#clients;
    await this.start();
    await this.#stopAll(before);
  }

  async stop(): Promise<void> {
    await this.#stopAll(this.#clients);
    this.#clients = [];
  }

  /** Requests so far, and those of them that failed; a client that does not answer now counts with nothing. */
  async counts(): Promise<{ requests: number; failed: number }> {
    const entries = this.visits.flatMap(({ timeline }) => timeline);
    const counts = { requests: entries.length, failed: entries.filter(([, , how]) => isFailure(how)).length };
    for (const { visitor, pod } of this.#clients) {
      const { namespace } = HONEST[visitor.of];
      const log = await kubectl(['-n', namespace, 'logs', pod, '--tail=1']).catch(() => '');
      const [, ok = 0, failed = 0] = /, ([0-9]+) ok, ([0-9]+) failed,/.exec(log) ?? [];
      counts.requests += Number(ok) + Number(failed);
      counts.failed += Number(failed);
    }
    return counts;
  }

  async #startOne({ of, ratePerS, options, name }: Visitor, pod: string): Promise<Load> {
    const { namespace, name: service } = HONEST[of];
    // By its address: who cannot ask CoreDNS while that starts again would say nothing of Corelane.
    const address = await kubectl(['-n', namespace, 'get', 'service', service, '-o', 'jsonpath={.spec.clusterIP}']);
    const requests = String(Math.floor(ratePerS * SHIFT_S_MAX * 0.9));
    const bounds = ['--requests', requests, '--rate', String(ratePerS), '--max-seconds', String(SHIFT_S_MAX)];
    const seed = ['--seed', String((this.#seed + this.#shift) % 2 ** 32)];
    const notes = ['--timeout', '30s', '--timeline', '--request-ids', `${name}-${this.#shift}`];
    const load = await startLoad(namespace, pod, [
      '--url',
      `http://${address}/`,
      ...bounds,
      ...seed,
      ...notes,
      ...options,
    ]);
    await eventually(`pod ${pod} to run`, 120_000, async () => {
      const { status } = await get<{ status: { phase: string } }>('-n', namespace, 'pod', pod);
      return status.phase === 'Running' || undefined;
    });
    return load;
  }

  async #stopAll(clients: Client[]): Promise<void> {
    for (const { visitor, load } of clients) {
      // A second try where the API server was away.
      const result = await eventually('a client to end', 300_000, load.stop, SELDOM_MS);
      this.visits.push({ client: visitor.name, overlaps: result.overlaps, timeline: timelineOf(result) });
    }
  }
}

const isFailure = (how: string | undefined) => how !== undefined && how !== 'STOPPED';

const timelineOf = ({ timeline }: LoadResult) => (timeline as TimelineEntry[]).filter(([, , how]) => how !== 'STOPPED');

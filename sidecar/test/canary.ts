/** Pods of two revisions and a canary between them, for the tests of it. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, type Call, type Pod, type PodOptions, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { type LiveCanary, liveSerial, renderLive } from '../../operator/src/render/live.ts';

export const STABLE = '7f3a9c21d0';
export const CANARY = '19be04aa3c';
export const COOKIE = 'corelane-bucket';

type Input = Partial<RenderServiceSpecInput>;
export type Side = 'canary' | 'stable';

/** What the page of a browser is asked with. */
export const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate' };

/** A canary as the operator would say it. */
export function canaryAt(share: number, more: Partial<LiveCanary> = {}): LiveCanary {
  return { revision: CANARY, stable: STABLE, share, untilSeconds: 0, match: [], ...more };
}

export class CanaryFleet {
  readonly fleet: Fleet;
  readonly stable: Pod[] = [];
  readonly canary: Pod[] = [];

  private constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  /** So many pods of each side, which know each other. */
  static async start(stable: number, canary: number, input: Input, options: PodOptions = {}): Promise<CanaryFleet> {
    const all = new CanaryFleet(await Fleet.start(0, input));
    try {
      const add = async (revision: string, list: Pod[]) => {
        list.push(await all.fleet.add(input, { ...options, revision }));
      };
      await Promise.all([
        ...Array.from({ length: stable }, () => add(STABLE, all.stable)),
        ...Array.from({ length: canary }, () => add(CANARY, all.canary)),
      ]);
      await all.fleet.untilAllKnown();
    } catch (error) {
      await all.stop();
      throw error;
    }
    return all;
  }

  get pods(): Pod[] {
    return this.fleet.pods;
  }

  stop(): Promise<void> {
    return this.fleet.stop();
  }

  /** Gives all pods these settings, and waits until they count. */
  async set(canary: LiveCanary | undefined, pods = this.pods): Promise<void> {
    await Promise.all(pods.map((pod) => setCanary(pod, canary)));
  }

  /** Waits until each pod has found a pod of either side. */
  async untilSidesKnown(): Promise<void> {
    const rest = canaryAt(0);
    for (const side of ['canary', 'stable'] as const) {
      await this.set(side === 'canary' ? canaryAt(10_000) : rest);
      for (const pod of this.pods) {
        await until(`it finds the ${side}`, async () => this.renderedBy(await pod.get('/?id=probe')) === side);
      }
    }
  }

  /** The side that has rendered an answer of `worker.mjs`, by the header that only one of them has got. */
  renderedBy(answer: Answer): Side | undefined {
    if (answer.status !== 200) return undefined;
    const { id } = JSON.parse(answer.body);
    return this.sideOf(id);
  }

  /** Where a request with this id was begun last. */
  sideOf(id: string): Side | undefined {
    const last = (pods: Pod[]) =>
      Math.max(0, ...pods.flatMap((pod) => pod.events({ event: 'begin', id })).map(({ at }) => at));
    const [canary, stable] = [last(this.canary), last(this.stable)];
    if (canary === stable) return undefined;
    return canary > stable ? 'canary' : 'stable';
  }

  /** How many requests whose id begins like this each side has begun. */
  begun(prefix: string): Record<Side, number> {
    const count = (pods: Pod[]) =>
      pods.flatMap((pod) => pod.events({ event: 'begin' })).filter(({ id }) => id?.startsWith(prefix)).length;
    return { canary: count(this.canary), stable: count(this.stable) };
  }

  /** Requests to all pods in turn, so many at a time. */
  async send(
    count: number,
    call: (index: number) => [path: string, call?: Call],
    { at = 16, pods = this.pods } = {},
  ): Promise<Answer[]> {
    const answers: Answer[] = [];
    let next = 0;
    const client = async () => {
      while (next < count) {
        const index = next;
        next += 1;
        answers[index] = await (pods[index % pods.length] as Pod).get(...call(index));
      }
    };
    await Promise.all(Array.from({ length: at }, client));
    return answers;
  }
}

/** Gives a pod these settings, and waits until they count. */
export async function setCanary(pod: Pod, canary: LiveCanary | undefined, spec = pod.spec): Promise<void> {
  const settings = renderLive(spec, undefined, undefined, canary);
  pod.writeLive(settings);
  const serial = `serial=${liveSerial(settings)}\ncanary=1\nsticky=1\n`;
  let page = '';
  await until(
    () => `it counts, ${JSON.stringify(serial)}; the pod has ${JSON.stringify(page)}`,
    async () => {
      page = await livePage(pod);
      return page === serial;
    },
  );
}

export async function livePage(pod: Pod): Promise<string> {
  return (await pod.get('/live', { port: PORTS.stats })).body;
}

/** A metric of the pod itself, by its name and the side. */
export async function sideMetric(pod: Pod, what: 'assigned' | 'errors' | 'fallbacks', side: Side): Promise<number> {
  const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  return Number(
    new RegExp(`^corelane_canary_${what}_total\\{side="${side}"\\} (\\d+)$`, 'm').exec(body)?.[1] ?? Number.NaN,
  );
}

/** The place that an answer gives to its client, with what stands beside it. */
export function placeOf({ headers }: Answer): { place: number; attributes: string } | undefined {
  const [, place, attributes = ''] = /^corelane-bucket=(\d+); (.*)$/.exec(headers['set-cookie']?.[0] ?? '') ?? [];
  return place === undefined ? undefined : { place: Number(place), attributes };
}

/** Requests that a pod has sent to the other side since nobody of their own answered. */
export async function fallbacks(pod: Pod, side: Side): Promise<number> {
  return (await sideMetric(pod, 'fallbacks', side)) || 0;
}

/** Most requests that a worker of the pod has had at a time. */
export function most(pod: Pod): number {
  return Math.max(...pod.events({ event: 'begin' }).map(({ inFlight = 0 }) => inFlight));
}

/** The metric of requests that wait in a pod. */
export const IN_QUEUE = 'haproxy_server_current_queue{proxy="line",server="slots"}';

/** What it costs to be seen: the proxies' CPU for a request and for a scrape, with and without, in turn in one run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { exactCpuMs } from '../lib/cpu.ts';
import { runLoad } from '../lib/load.ts';
import { Corelane } from '../systems/corelane.ts';

const ROUNDS = 15;
const REQUESTS = 1_000;
const SCRAPES = 200;
const WORKERS = 4;

/** Of nginx' main server: nothing is counted, and nothing is written. */
const NO_COUNTS = (text: string) =>
  replaced(
    text,
    'include /tmp/listen-ipv6*.conf;',
    'include /tmp/listen-ipv6*.conf;\n        corelane_counts nothing;',
  );
const NO_LOG = (text: string) =>
  replaced(text, 'access_log /dev/stdout corelane buffer=32k flush=100ms;', 'access_log off;');

interface Variant {
  spec: Partial<RenderServiceSpecInput>;
  edits: ((text: string) => string)[];
}
/** The first is what the others are compared with, the third is how a pod is unless it is told otherwise. */
const VARIANTS: Record<string, Variant> = {
  nothing: { spec: {}, edits: [NO_COUNTS, NO_LOG] },
  metrics: { spec: {}, edits: [NO_LOG] },
  'metrics, log': { spec: {}, edits: [] },
  'metrics, log, traceparent': { spec: { tracing: { samplingPercent: 100 } }, edits: [] },
};
const AS_IT_IS = 2;

export interface RequestCost {
  variant: string;
  /** CPU time of one request in microseconds: the mean of all rounds. */
  us: number;
  /** Medians of the rounds, each beside the first variant in the same round. */
  moreUs: number;
  ratio: number;
}

export interface ScrapeCost {
  page: string;
  bytes: number;
  series: number;
  ms: number;
}

export interface Costs {
  requests: RequestCost[];
  scrapes: ScrapeCost[];
  workers: number;
}

/** What metrics and log add to a request. */
export function addedUs({ requests }: Costs): number {
  return requests[AS_IT_IS]?.moreUs ?? Number.NaN;
}

function replaced(text: string, before: string, after: string): string {
  if (!text.includes(before)) throw new Error(`nginx.conf has no "${before}" any more`);
  return text.replaceAll(before, after);
}

const cpuOf = async (containers: string[]) =>
  (await Promise.all(containers.map(exactCpuMs))).reduce((sum, ms) => sum + ms, 0);

export async function measureCosts(): Promise<Costs> {
  const systems: Corelane[] = [];
  try {
    for (const [name, { spec, edits }] of Object.entries(VARIANTS)) {
      const edit = (file: string, text: string) =>
        file === 'nginx.conf' ? edits.reduce((edited, change) => change(edited), text) : text;
      systems.push(await Corelane.start({ workersPerPod: WORKERS, ...spec }, name, { edit }));
    }
    const rounds: number[][] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const us: number[] = [];
      for (const system of systems) us.push((1_000 * (await roundOf(system))) / REQUESTS);
      if (round > 0) rounds.push(us); // the first is for warming up
    }
    const names = systems.map(({ name }) => name);
    return {
      ...{ requests: requestCosts(names, rounds), workers: WORKERS },
      scrapes: await scrapesOf(systems[AS_IT_IS] as Corelane),
    };
  } finally {
    for (const system of systems) await system.stop();
  }
}

/** @param rounds of each round what each variant took for a request */
export function requestCosts(variants: string[], rounds: number[][]): RequestCost[] {
  return variants.map((variant, index) => {
    const pairs = rounds.map((us) => [us[index] ?? 0, us[0] ?? 0] as const);
    return {
      variant,
      us: pairs.reduce((sum, [us]) => sum + us, 0) / rounds.length,
      moreUs: median(pairs.map(([us, bare]) => us - bare)),
      ratio: median(pairs.map(([us, bare]) => us / bare)),
    };
  });
}

function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** One client with a kept connection, which asks for a page that takes no time; the proxies' CPU in ms. */
async function roundOf(system: Corelane): Promise<number> {
  const [target] = system.targets;
  const requests = [{ path: '/?id=seen', target: 0 }];
  const group = { name: 'seen', concurrency: 1, count: REQUESTS, seconds: 120, keepAlive: true, requests };
  const before = await cpuOf(system.proxies);
  await runLoad(system.network, {
    targets: [target as NonNullable<typeof target>],
    bodyBytes: 0,
    timeoutMs: 10_000,
    phases: [[group]],
  });
  return (await cpuOf(system.proxies)) - before;
}

/** The pages that a Prometheus may scrape of a pod; CPU of the proxies and of the workers' containers. */
async function scrapesOf(system: Corelane): Promise<ScrapeCost[]> {
  const { pod } = system;
  const containers = [...system.proxies, ...pod.workers];
  const costs: ScrapeCost[] = [];
  for (const page of ['/corelane/metrics', '/corelane/metrics?detail=1']) {
    const get = () => pod.get(page, { port: PORTS.stats });
    const { body } = await get();
    const [before, begin] = [await cpuOf(containers), performance.now()];
    for (let n = 0; n < SCRAPES; n += 1) await get();
    const [between, tookMs] = [await cpuOf(containers), performance.now() - begin];
    // What they do meanwhile for nobody.
    await sleep(tookMs);
    const idleMs = (await cpuOf(containers)) - between;
    const series = body.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
    costs.push({ page, bytes: Buffer.byteLength(body), series, ms: (between - before - idleMs) / SCRAPES });
  }
  return costs;
}

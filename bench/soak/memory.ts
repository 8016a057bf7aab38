/** Memory of the operator and of the proxies of an honest RenderService, looked at again and again. */
import { setTimeout as delay } from 'node:timers/promises';
import { kubectl } from '../../e2e/harness/cluster/cluster.ts';
import { OPERATOR_NAMESPACE } from '../../e2e/harness/cluster/operator.ts';
import { LABEL_RENDER_SERVICE } from '../../operator/src/api/names.ts';
import { collectionPath, kinds } from '../../operator/src/kube/kinds.ts';
import type { Api } from './api.ts';
import { figure, operatorWritesIn } from './pages.ts';
import { HONEST } from './sequence.ts';
import type { Sample } from './verdicts.ts';

const LOOK_MS = 15_000;
/** Each look at a proxy is a kubectl. */
const PROXIES_EACH = 4;
const PROXIES = ['nginx', 'haproxy'] as const;
const MIB = 1024 ** 2;

/**
 * Metrics page of each operator pod, by its name.
 * @throws AggregateError when one of them does not answer
 */
export async function operatorPages(api: Api): Promise<Map<string, string>> {
  const { pages, errors } = await answers(api);
  if (errors.length > 0) throw new AggregateError(errors);
  return pages;
}

async function answers(api: Api): Promise<{ pages: Map<string, string>; errors: unknown[] }> {
  const collection = collectionPath(kinds.pod, OPERATOR_NAMESPACE);
  const pods = await api.metadata(collection, 'app.kubernetes.io/name=corelane');
  const pages = pods.map(async ({ name }) => {
    const page = await api.text(`${collection}/${name}:8080/proxy/metrics`);
    return [name, page] as const;
  });
  const all = await Promise.allSettled(pages);
  return {
    pages: new Map(all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))),
    errors: all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : [])),
  };
}

/** What all operator processes have written so far, by what. */
export async function operatorWrites(api: Api): Promise<Record<string, number>> {
  const all: Record<string, number> = {};
  for (const page of (await operatorPages(api)).values()) {
    for (const [what, count] of operatorWritesIn(page)) all[what] = (all[what] ?? 0) + count;
  }
  return all;
}

export class Memory {
  readonly rss: Sample[] = [];
  readonly heap: Sample[] = [];
  readonly proxies: Record<(typeof PROXIES)[number], Sample[]> = { nginx: [], haproxy: [] };
  /** When operator processes began, by which it was. */
  readonly starts = new Map<string, number>();
  readonly #api: Api;
  readonly #services: () => number;
  #isEnded = false;
  #looking: Promise<void> = Promise.resolve();

  /** @param services how many RenderServices there are now */
  constructor(api: Api, services: () => number) {
    this.#api = api;
    this.#services = services;
  }

  start(): void {
    this.#looking = this.#lookOn();
  }

  async stop(): Promise<void> {
    this.#isEnded = true;
    await this.#looking;
  }

  async #lookOn(): Promise<void> {
    for (let look = 0; !this.#isEnded; look += 1) {
      // Nobody may answer just now: then there is one look less.
      await this.#lookAtOperator().catch(() => undefined);
      if (look % PROXIES_EACH === 0) await this.#lookAtProxies().catch(() => undefined);
      for (let waitedMs = 0; waitedMs < LOOK_MS && !this.#isEnded; waitedMs += 500) await delay(500);
    }
  }

  async #lookAtOperator(): Promise<void> {
    for (const [pod, page] of (await answers(this.#api)).pages) {
      const startS = figure(page, 'process_start_time_seconds') ?? 0;
      const process = `${pod} since ${new Date(startS * 1000).toISOString()}`;
      this.starts.set(process, startS * 1000);
      if (figure(page, 'corelane_operator_leader') !== 1) continue;
      const sample = { atMs: Date.now(), process, services: this.#services() };
      this.rss.push({ ...sample, mib: (figure(page, 'process_resident_memory_bytes') ?? 0) / MIB });
      this.heap.push({ ...sample, mib: (figure(page, 'nodejs_heap_size_used_bytes') ?? 0) / MIB });
    }
  }

  async #lookAtProxies(): Promise<void> {
    const { namespace, name } = HONEST.steady;
    const pods = await this.#api.metadata(collectionPath(kinds.pod, namespace), `${LABEL_RENDER_SERVICE}=${name}`);
    for (const pod of pods) {
      for (const proxy of PROXIES) {
        const exec = ['-n', namespace, 'exec', pod.name, '-c', proxy, '--'];
        // Of processes that end meanwhile nothing is read.
        const text = await kubectl([...exec, 'sh', '-c', 'cat /proc/[0-9]*/status 2>/dev/null; true']);
        const kb = [...text.matchAll(/^RssAnon:\s+([0-9]+) kB$/gm)].reduce((sum, [, value]) => sum + Number(value), 0);
        // It is one, whatever else there is.
        const sample = { atMs: Date.now(), process: pod.name, services: 1 };
        this.proxies[proxy].push({ ...sample, mib: kb / 1024 });
      }
    }
  }
}

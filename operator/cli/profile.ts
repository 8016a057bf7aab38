/** `corelane profile`: a CPU profile or a heap snapshot of one worker in production. */
import { createWriteStream, rmSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import type { KubeConfig } from '@kubernetes/client-node';
import { PORTS, WORKERS_PER_POD_MAX } from '../src/api/names.ts';
import { Cluster } from './cluster.ts';
import type { Command } from './command.ts';
import { type CpuProfile, flameGraph, summary } from './flame-graph.ts';
import { wholeOf } from './options.ts';
import { getPodPage } from './pod-page.ts';
import { findTarget, type Target } from './profile-target.ts';
import { TryAgainError, UsageError } from './usage.ts';

const SECONDS_MAX = 60;
/** The worker may be about to render for long, and a heap snapshot of 1 GB takes a minute. */
const ANSWER_SECONDS_MAX = 30;
const HEAP_SECONDS_MAX = 300;

const help = `
Usage: corelane profile NAME [--namespace N] [--pod P] [--worker N] [--seconds N | --heap] [--output FILE]

Takes a CPU profile of one worker of the RenderService NAME while it serves. Writes FILE.cpuprofile (for Chrome
DevTools, VS Code, speedscope) and FILE.html, a flame graph that needs nothing else. Goes through the Kubernetes API;
needs the verb "list" on pods, and "get" and "create" on pods/portforward.

  -n, --namespace N   namespace (that of the kubeconfig's context)
      --pod P         pod (the first one that is ready)
      --worker N      number of the worker (0)
      --seconds N     1 to ${SECONDS_MAX} (10)
      --heap          a heap snapshot instead: FILE.heapsnapshot. The worker takes no requests meanwhile, its event loop
                      stands still, and it needs about twice the memory of its heap.
  -o, --output FILE   name of the files, without ending (POD-worker-N)

Exit code: 0; 64 for options that cannot be used; 75 for what may work later, because somebody else is taking a profile
of this worker or it is just starting; else 1.
`;

export const command: Command = {
  summary: 'CPU profile or heap snapshot of one worker',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        namespace: { type: 'string', short: 'n' },
        pod: { type: 'string' },
        worker: { type: 'string', default: '0' },
        seconds: { type: 'string', default: '10' },
        heap: { type: 'boolean', default: false },
        output: { type: 'string', short: 'o' },
      },
    });
    const [name, ...rest] = positionals;
    if (name === undefined || rest.length > 0)
      throw new UsageError('one name of a RenderService is needed; see corelane profile --help');
    const worker = wholeOf('worker', values.worker, { min: 0, max: WORKERS_PER_POD_MAX - 1 });
    const seconds = wholeOf('seconds', values.seconds, { min: 1, max: SECONDS_MAX });
    const cluster = new Cluster(values.namespace);
    try {
      const target = await findTarget(cluster, { name, pod: values.pod, worker });
      if (values.pod === undefined)
        console.error(`${target.pod} is the first pod that is ready; --pod and --worker choose others`);
      const output = values.output ?? `${target.pod}-worker-${worker}`;
      if (values.heap) await heapSnapshot(cluster.config, target, output);
      else await cpuProfile(cluster.config, target, seconds, output);
    } finally {
      await cluster.close();
    }
    return 0;
  },
};

async function ask(config: KubeConfig, { namespace, pod, worker }: Target, path: string, secondsMax: number) {
  const port = PORTS.firstWorkerRuntime + worker;
  const { status, body } = await getPodPage(config, { namespace, pod, port, path, secondsMax }).catch((error) => {
    if (!/connection refused/.test(error.message)) throw error;
    throw new Error(
      `the runtime of worker-${worker} in pod ${pod} does not answer: runtime.instrument is false, the image has no ` +
        'Node.js, NODE_OPTIONS does not reach it, or the container is just starting (kubectl describe renderservice ' +
        'tells, condition WorkersHealthy)',
    );
  });
  if (status === 200) return body;
  const said = `worker-${worker} of ${pod}: ${(await text(body)).trim()}`;
  throw status === 409 || status === 503 ? new TryAgainError(said) : new Error(said);
}

async function cpuProfile(config: KubeConfig, target: Target, seconds: number, output: string): Promise<void> {
  console.error(`Profiling worker-${target.worker} of ${target.pod} for ${seconds} s`);
  const json = await text(await ask(config, target, `/profile?seconds=${seconds}`, seconds + ANSWER_SECONDS_MAX));
  const profile: CpuProfile = JSON.parse(json);
  writeFileSync(`${output}.cpuprofile`, json);
  const title = `worker-${target.worker} of ${target.pod}`;
  writeFileSync(`${output}.html`, flameGraph(profile, title));
  console.error(summary(profile));
  console.log(`${output}.cpuprofile\n${output}.html`);
}

async function heapSnapshot(config: KubeConfig, target: Target, output: string): Promise<void> {
  console.error(`Taking a heap snapshot of worker-${target.worker} of ${target.pod}`);
  const file = `${output}.heapsnapshot`;
  const snapshot = await ask(config, target, '/heap', HEAP_SECONDS_MAX);
  try {
    await pipeline(snapshot, createWriteStream(file));
  } catch (error) {
    rmSync(file, { force: true }); // half of one is of no use
    throw error;
  }
  console.log(file);
}

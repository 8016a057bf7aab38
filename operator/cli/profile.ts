/** `corelane profile`: a CPU profile or a heap snapshot of one worker in production. */
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import type { KubeConfig } from '@kubernetes/client-node';
import { PORTS, WORKERS_PER_POD_MAX, workerName } from '../src/api/names.ts';
import { Cluster } from './cluster.ts';
import type { Command } from './command.ts';
import { type CpuProfile, flameGraph, summary } from './flame-graph.ts';
import { wholeOf } from './options.ts';
import { bodyText, getPodPage, SAID_BYTES_MAX } from './pod-page.ts';
import { findTarget, type Target } from './profile-target.ts';
import { replaceFile, replaceFileBy } from './replace-file.ts';
import { TryAgainError, UsageError } from './usage.ts';

const SECONDS_MAX = 60;
/** The worker may be about to render for long, and a heap snapshot of 1 GB takes a minute. */
const ANSWER_SECONDS_MAX = 30;
const HEAP_SECONDS_MAX = 300;
/** A minute of a large program has some 10 MB. */
const PROFILE_BYTES_MAX = 64 * 1024 ** 2;

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
      const output = values.output ?? fileName(target.pod, workerName(worker));
      if (values.heap) await heapSnapshot(cluster.config, target, output);
      else await cpuProfile(cluster.config, target, seconds, output);
    } finally {
      await cluster.close();
    }
    return 0;
  },
};

async function askRuntime(config: KubeConfig, { namespace, pod, worker }: Target, path: string, secondsMax: number) {
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
  const said = `worker-${worker} of ${pod}: ${(await bodyText(body, SAID_BYTES_MAX)).trim()}`;
  throw status === 409 || status === 503 ? new TryAgainError(said) : new Error(said);
}

async function cpuProfile(config: KubeConfig, target: Target, seconds: number, output: string): Promise<void> {
  console.error(`Profiling worker-${target.worker} of ${target.pod} for ${seconds} s`);
  const json = await takeProfile(config, target, seconds);
  const title = `worker-${target.worker} of ${target.pod}`;
  const { files, summary } = writeProfile(json, output, title);
  console.error(summary);
  console.log(files.join('\n'));
}

/** A CPU profile of a worker, as JSON. @throws Error that says what is in the way */
export async function takeProfile(config: KubeConfig, target: Target, seconds: number): Promise<string> {
  const body = await askRuntime(config, target, `/profile?seconds=${seconds}`, seconds + ANSWER_SECONDS_MAX);
  return bodyText(body, PROFILE_BYTES_MAX);
}

/** Of a profile, without ending. An API server that is none may call a pod as it likes. */
export function fileName(pod: string, worker: string): string {
  return `${pod}-${worker}`.replaceAll(/[^a-z0-9.-]+/gi, '-').replace(/^[.-]+/, '');
}

/** Writes a profile and its flame graph. */
export function writeProfile(json: string, output: string, title: string): { files: string[]; summary: string } {
  const profile: CpuProfile = JSON.parse(json);
  const files = [`${output}.cpuprofile`, `${output}.html`];
  replaceFile(`${output}.cpuprofile`, json);
  replaceFile(`${output}.html`, flameGraph(profile, title));
  return { files, summary: summary(profile) };
}

async function heapSnapshot(config: KubeConfig, target: Target, output: string): Promise<void> {
  console.error(`Taking a heap snapshot of worker-${target.worker} of ${target.pod}`);
  const file = `${output}.heapsnapshot`;
  const snapshot = await askRuntime(config, target, '/heap', HEAP_SECONDS_MAX);
  await replaceFileBy(file, (fresh) => pipeline(snapshot, createWriteStream(fresh)));
  console.log(file);
}

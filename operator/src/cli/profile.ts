/** `corelane profile`: a CPU profile or a heap snapshot of one worker in production. */
import { createWriteStream, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { LABEL_RENDER_SERVICE, PORTS, WORKERS_PER_POD_MAX } from '../api/names.ts';
import { flameGraph } from './flame-graph.ts';
import type { Command } from './main.ts';
import { getPodPage } from './pod-page.ts';
import { UsageError } from './usage.ts';

const SECONDS_MAX = 60;

const help = `
Usage: corelane profile NAME [--namespace N] [--pod P] [--worker N] [--seconds N | --heap] [--output FILE]

Takes a CPU profile of one worker of the RenderService NAME while it serves, through the Kubernetes API (needs "create"
on pods/portforward). Writes FILE.cpuprofile (Chrome DevTools, VS Code, speedscope) and FILE.html, a flame graph.

  -n, --namespace N   namespace (that of the kubeconfig's context)
      --pod P         pod (the first one that is ready)
      --worker N      number of the worker (0)
      --seconds N     1 to ${SECONDS_MAX} (10)
      --heap          a heap snapshot instead: FILE.heapsnapshot. The worker takes no requests meanwhile, its event loop
                      stands still, and it needs about twice the memory of its heap.
  -o, --output FILE   name of the files, without ending (POD-worker-N)
`;

interface Target {
  namespace: string;
  pod: string;
  worker: number;
}

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
    const worker = wholeOf('worker', values.worker, 0, WORKERS_PER_POD_MAX - 1);
    const seconds = wholeOf('seconds', values.seconds, 1, SECONDS_MAX);
    const config = new KubeConfig();
    config.loadFromDefault();
    const namespace = values.namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
    const pod = values.pod ?? (await firstPod(config, namespace, name));
    const target = { namespace, pod, worker };
    const output = values.output ?? `${pod}-worker-${worker}`;
    if (values.heap) await heapSnapshot(config, target, output);
    else await cpuProfile(config, target, seconds, output);
    return 0;
  },
};

function wholeOf(option: string, given: string, min: number, max: number): number {
  const value = given.trim() === '' ? Number.NaN : Number(given);
  if (!Number.isInteger(value) || value < min || value > max)
    throw new UsageError(`--${option} must be a whole number from ${min} to ${max}, not "${given}"`);
  return value;
}

async function firstPod(config: KubeConfig, namespace: string, name: string): Promise<string> {
  const labelSelector = `${LABEL_RENDER_SERVICE}=${name}`;
  const { items } = await config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace, labelSelector });
  const ready = items.find(({ status }) =>
    status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
  );
  const found = ready?.metadata?.name;
  if (!found) throw new Error(`RenderService ${namespace}/${name} has no pod that is ready`);
  return found;
}

async function ask(config: KubeConfig, { namespace, pod, worker }: Target, path: string) {
  const port = PORTS.firstWorkerRuntime + worker;
  const { status, body } = await getPodPage(config, { namespace, pod, port, path });
  if (status !== 200) throw new Error(`worker-${worker} of ${pod} answers ${status}: ${(await text(body)).trim()}`);
  return body;
}

async function cpuProfile(config: KubeConfig, target: Target, seconds: number, output: string): Promise<void> {
  console.error(`Profiling worker-${target.worker} of ${target.pod} for ${seconds} s`);
  const profile = await text(await ask(config, target, `/profile?seconds=${seconds}`));
  writeFileSync(`${output}.cpuprofile`, profile);
  const title = `worker-${target.worker} of ${target.pod}, ${seconds} s of CPU profile`;
  writeFileSync(`${output}.html`, flameGraph(JSON.parse(profile), title));
  console.log(`${output}.cpuprofile\n${output}.html`);
}

async function heapSnapshot(config: KubeConfig, target: Target, output: string): Promise<void> {
  console.error(`Taking a heap snapshot of worker-${target.worker} of ${target.pod}`);
  const file = `${output}.heapsnapshot`;
  await pipeline(await ask(config, target, '/heap'), createWriteStream(file));
  console.log(file);
}

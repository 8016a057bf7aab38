/** What the worker runtime costs: the same worker with and without it, at the same load, at the same time. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { median } from '../lib/stats.ts';
import { mounted } from './mounted-node.ts';

export interface Cost {
  /** Anonymous memory of all processes of a worker container: what only a kill gives back to a memory limit. */
  memoryMib: number;
  /** CPU of all processes of a worker container, in percent of one CPU. */
  cpuPercent: number;
}

const SECONDS = Number(process.env.SECONDS ?? 60);
/** Per second, for renders of about 15 ms each. */
const RATE = 10;
/** Work and not time: what a render takes on a busy machine differs by more than the runtime costs. */
const ROUNDS = 1_000_000;
/** The program's young generation, which V8 doubles by chance: small in both. */
const FLAG = '--max-semi-space-size=1';
/**
 * The heap of a program grows until it is collected: one look would be chance. The looks of the last half of the time.
 */
const LOOKS = 15;
/** 100 ticks of the kernel's clock are a second everywhere. */
const TICKS_PER_SECOND = 100;

/** Sums over the processes of a container: ticks of CPU and kB of memory. */
const LOOK = `for p in /proc/[0-9]*; do
  pid=\${p#/proc/}; [ "$pid" = $$ ] && continue
  awk '{ sub(/.*\\) /, ""); print "ticks", $12 + $13 }' $p/stat 2>/dev/null
  awk '/^Anonymous:/ { print "kb", $2 }' $p/smaps_rollup 2>/dev/null
done`;

async function look(pod: Pod): Promise<{ ticks: number; kb: number }> {
  const sums = { ticks: 0, kb: 0 };
  for (const line of (await docker('exec', pod.workers[0] ?? '', 'sh', '-c', LOOK)).split('\n')) {
    const [what, value] = line.split(' ');
    if (what === 'ticks' || what === 'kb') sums[what] += Number(value);
  }
  return sums;
}

/** Median of the memory in kB. */
async function memoryKb(pod: Pod): Promise<number> {
  const found: number[] = [];
  const pauseMs = (SECONDS / 2 / LOOKS) * 1000;
  for (let n = 0; n < LOOKS; n += 1) {
    await new Promise((resolve) => setTimeout(resolve, n === 0 ? (SECONDS / 2) * 1000 : pauseMs));
    found.push((await look(pod)).kb);
  }
  return median(found);
}

async function measure(pod: Pod, atMs: number): Promise<Cost> {
  const before = await look(pod);
  const began = performance.now();
  const memory = memoryKb(pod);
  const answers: Promise<unknown>[] = [];
  for (let n = 0; n < SECONDS * RATE; n += 1) {
    const waitMs = atMs + (n * 1000) / RATE - Date.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    answers.push(pod.get(`/?id=cost-${n}&work=${ROUNDS}`));
  }
  await Promise.all(answers);
  const after = await look(pod);
  const seconds = (performance.now() - began) / 1000;
  return {
    memoryMib: (await memory) / 1024,
    cpuPercent: ((after.ticks - before.ticks) / TICKS_PER_SECOND / seconds) * 100,
  };
}

/** Both pods run side by side, so that whatever else the machine does hits both. */
export async function costOfRuntime(node: string): Promise<{ withRuntime: Cost; without: Cost }> {
  const { path, options } = mounted(node);
  const worker = { command: [path, '/app/worker.mjs'], options };
  const pods = [
    await Pod.start({ workersPerPod: 1, runtime: { nodeFlags: [FLAG] } }, worker),
    await Pod.start({ workersPerPod: 1, runtime: { instrument: false } }, { ...worker, env: { NODE_OPTIONS: FLAG } }),
  ];
  try {
    const atMs = Date.now() + 1_000;
    const [withRuntime, without] = (await Promise.all(pods.map((pod) => measure(pod, atMs)))) as [Cost, Cost];
    return { withRuntime, without };
  } finally {
    await Promise.all(pods.map((pod) => pod.stop()));
  }
}

/**
 * Measures the operator's memory and CPU with many services, without a cluster:
 *   node bench/large-fleet.ts 1000x10/20 [RATE]
 * `services x pods / namespaces`, and events of pods a second in the last part (300). A process of its own stands for
 * the API server and for port 8999 of all pods, on this machine (Linux): what is measured is the operator's process,
 * the bundle with the flags of the image, and not how fast an API server is. `make bench-operator` has a real one.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { OperatorProcess } from '../operator/test/support/operator-process.ts';
import { parseShape, podsOf } from './operator/shape.ts';
import type { Order } from './operator/stand-in.ts';
import { between, Usage } from './operator/usage.ts';

const REST_S = Number(process.env.REST_S || 60);
const CHANGES = 20;
const [, , shapeText = '1000x10/20', rate = '300'] = process.argv;
const shape = parseShape(shapeText);
const standIn = fork(fileURLToPath(new URL('operator/stand-in.ts', import.meta.url)));

async function ask<T>(order: Order): Promise<T> {
  standIn.send(order);
  const [{ answer }] = (await once(standIn, 'message')) as [{ answer: T }];
  return answer;
}

async function start(kubeconfig: string, podName: string) {
  const began = performance.now();
  const settings = { kubeconfig, podName, podNamespace: 'operator', main: 'operator/dist/main.mjs' };
  const operator = await OperatorProcess.spawn(settings);
  const usage = new Usage(operator.pid, began);
  await operator.untilReady(120_000);
  const cachesS = (performance.now() - began) / 1_000;
  await operator.untilLeading();
  return { operator, usage, cachesS };
}

/** Until nobody has written for ten seconds. */
async function untilRest(): Promise<Record<string, number>> {
  const all: Record<string, number> = {};
  for (let quiet = 0; quiet < 2; ) {
    await delay(5_000);
    const writes = await ask<Record<string, number>>({ what: 'writes' });
    quiet = Object.keys(writes).length === 0 ? quiet + 1 : 0;
    for (const [what, count] of Object.entries(writes)) all[what] = (all[what] ?? 0) + count;
  }
  return all;
}

async function atRest(operator: OperatorProcess, usage: Usage) {
  await ask({ what: 'writes' });
  const sampled = () => operator.sum('corelane_operator_pod_samples_total', ({ result }) => result === 'ok');
  const before = await sampled();
  const from = usage.look();
  await delay(REST_S * 1_000);
  const { rssMib, coreShare } = between(usage.looks, from, usage.look());
  const mibOf = async (name: string) => Math.round((await operator.sum(name)) / 2 ** 20);
  return {
    ...{ rssMib: Math.round(rssMib), rssMibMax: Math.round(usage.rssMibMax) },
    heapMib: await mibOf('nodejs_heap_size_used_bytes'),
    heapTotalMib: await mibOf('nodejs_heap_size_total_bytes'),
    externalMib: await mibOf('nodejs_external_memory_bytes'),
    corePercent: Number((100 * coreShare).toFixed(1)),
    podsAsked: (await sampled()) - before,
    writes: await ask({ what: 'writes' }),
  };
}

async function changes(): Promise<{ medianMs: number; slowestMs: number }> {
  const times: number[] = [];
  for (let n = 0; n < CHANGES; n += 1) {
    times.push(await ask<number>({ what: 'change', service: n % Math.min(5, shape.services) }));
    await delay(500);
  }
  times.sort((one, other) => one - other);
  return { medianMs: Math.round(times[CHANGES / 2] as number), slowestMs: Math.round(times.at(-1) as number) };
}

const note = (what: string, value: unknown) => console.log(`${what}: ${JSON.stringify(value)}`);

try {
  standIn.send(shape);
  const [{ port }] = (await once(standIn, 'message')) as [{ port: number }];
  const kubeconfig = join(mkdtempSync(join(tmpdir(), 'large-fleet-')), 'kubeconfig');
  const cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'a' },
    clusters: [{ name: 'a', cluster }],
    users: [{ name: 'a', user: {} }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  note('fleet', { ...shape, all: podsOf(shape) });
  const first = await start(kubeconfig, 'operator-0');
  note('first start', { cachesS: Number(first.cachesS.toFixed(1)), writes: await untilRest() });
  note('at rest', await atRest(first.operator, first.usage));
  await first.operator.stop();
  await ask({ what: 'writes' });
  const second = await start(kubeconfig, 'operator-1');
  note('restart', { cachesS: Number(second.cachesS.toFixed(1)), writes: await untilRest() });
  note('at rest', await atRest(second.operator, second.usage));
  note('changes, all others at rest', await changes());
  await ask({ what: 'events', perSecond: Number(rate) });
  await delay(2_000);
  note(`changes, with ${rate} events of pods a second`, await changes());
  const { depth } = await second.operator.work();
  note('queue', depth);
  await ask({ what: 'events', perSecond: 0 });
  note('most memory', Math.round(second.usage.rssMibMax));
} finally {
  await OperatorProcess.killAll();
  standIn.kill();
}

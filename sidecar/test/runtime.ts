/** What tests of the worker runtime ask of a supervisor, and what keeps it from recycling. */
import { docker, logs, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** A page of a supervisor, asked for inside the pod as a port-forward would. */
export const page = (pod: Pod, worker: number, path: string) =>
  docker(
    ...['exec', '--env', 'NODE_OPTIONS=', pod.workers[worker] ?? '', 'node', '-e'],
    `fetch('http://127.0.0.1:${PORTS.firstWorkerRuntime + worker}${path}', { headers: { 'X-Corelane-Runtime': 'true' } }).then(async (r) => console.log(r.status + ' ' + await r.text()))`,
  );

/** A container that listens where a worker does while it is replaced; a worker may be at it just now. */
export async function takeTurn(pod: Pod): Promise<string> {
  const take = `const take = () => require('node:net').createServer().on('error', () => setTimeout(take, 10)).listen(${PORTS.firstWorkerRuntime + 99}, '127.0.0.1', () => console.log('taken')); take();`;
  const other = await start('--network', pod.network, '--entrypoint', 'node', NODE_IMAGE, '-e', take);
  await until('the turn is taken', async () => (await logs(other)).includes('taken'));
  return other;
}

/** Clients that hold what nginx has for them, and whether others are served all the same. */
import type { Socket } from 'node:net';
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { rawConnection } from './raw.ts';

export const KIB = 1024;

/** A pod with room for few. */
export const SMALL = {
  workersPerPod: 1,
  queue: { maxLength: 1000 },
  buffering: { request: { maxSize: '1Mi', memory: '8Ki' }, response: { memory: '64Ki', maxFileSize: '1Gi' } },
  sidecar: { nginx: { memory: '32Mi', memoryLimit: '64Mi', ephemeralStorageLimit: '64Mi' } },
} satisfies Partial<RenderServiceSpecInput>;

export interface Client {
  socket: Socket;
  received: string;
}
/** Those of the test that runs. */
export const clients: Client[] = [];

/** Ends all clients of a test. The limits hold for a moment more after a client has gone. */
export async function endClients(...pods: Pod[]): Promise<void> {
  for (const { socket } of clients.splice(0)) socket.destroy();
  for (const there of pods)
    await until('it takes bodies again', async () => (await post(there, 100 * KIB)).status === 200);
}

/** A body of so many bytes. */
export const post = (there: Pod, bytes: number) => there.get('/', { method: 'POST', body: Buffer.alloc(bytes, 'x') });

/** `count` clients that send this and then nothing more. With `reads: false` they read nothing, either. */
export async function stall(there: Pod, count: number, head: string, bytes = 0, { reads = true } = {}): Promise<void> {
  const body = Buffer.alloc(bytes, 'x');
  const open = async () => {
    const client: Client = { socket: await rawConnection(there.port(PORTS.http)), received: '' };
    client.socket.on('error', () => {});
    if (reads)
      client.socket.on('data', (chunk) => {
        client.received += chunk;
      });
    client.socket.write(head);
    client.socket.write(body);
    clients.push(client);
  };
  for (let left = count; left > 0; left -= 100) await Promise.all(Array.from({ length: Math.min(left, 100) }, open));
}

/** Clients that have been told this reason. */
export const refused = (reason: string) =>
  clients.filter(({ received }) => received.includes(`X-Corelane-Error: ${reason}`));

/** Process ids of nginx: they change when one was killed and started again. */
const processes = (there: Pod) =>
  docker('exec', there.nginx, 'sh', '-c', 'cat /proc/[0-9]*/comm /proc/[0-9]*/stat | grep nginx | cut -d" " -f1,22');

/** Those that each pod began with. */
const begun = new Map<Pod, string>();

/** Remembers the processes of a pod, for expectUnharmed. */
export async function remember(there: Pod): Promise<void> {
  begun.set(there, await processes(there));
}

/** Others are served, and nothing has ended. */
export async function expectUnharmed(there: Pod): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 20 }, (_unused, n) => there.get(`/?id=honest-${n}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect((await there.get('/ping')).status).toBe(200);
  expect(await processes(there)).toBe(begun.get(there));
  expect(await logs(there.nginx)).not.toMatch(/exited on signal|is started again|\[alert\]/);
  const { Running } = await there.state(there.nginx);
  expect(Running).toBe(true);
}

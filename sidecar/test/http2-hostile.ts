/** What tests of hostile streams and frames have in common. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { type Came, headers, open, request } from './apps/frames.mjs';

/** Streams of one connection at a time, in nginx. */
export const STREAMS = 128;

/** A pod with so little memory, and such long time-outs, that its places are what makes room. */
export const start = () =>
  Pod.start(
    {
      ...{ workersPerPod: 1, http2: { enabled: true }, queue: { maxLength: 1000 } },
      timeouts: { render: '10s', clientHeader: '5m', clientBody: '5m', clientSend: '5m' },
      sidecar: { nginx: { memory: '64Mi', memoryLimit: '128Mi' } },
    },
    // Millions of lines, which the engine would keep.
    { edit: (_file, text) => text.replace(/access_log \/dev\/stdout [^;]*;/, 'access_log off;') },
  );

/** Clients of that pod, and what they must not do to it. */
export function hostileClients(thePod: () => Pod) {
  const connections: Came[] = [];

  /** Change when one was killed and started again. */
  const processes = () =>
    docker(
      'exec',
      thePod().nginx,
      'sh',
      '-c',
      'cat /proc/[0-9]*/comm /proc/[0-9]*/stat | grep nginx | cut -d" " -f1,22',
    );

  let begun = '';
  /** What expectUnharmed compares with. */
  async function remember(): Promise<void> {
    begun = await processes();
  }

  /** Stops nginx' worker, or lets it go on. */
  const signal = (name: string) =>
    docker('exec', thePod().nginx, 'sh', '-c', `kill -s ${name} $(cat /proc/$(cat /tmp/nginx.pid)/task/*/children)`);

  function client(options: Partial<Parameters<typeof open>[0]> = {}): Came {
    const came = open({ port: thePod().port(PORTS.http), ...options });
    connections.push(came);
    return came;
  }

  /** Closes the connections of clients. */
  function closeAll(): void {
    for (const { socket } of connections.splice(0)) socket.destroy();
  }

  async function expectUnharmed(): Promise<void> {
    const h2 = client();
    h2.send(headers(1, request('/?id=honest')));
    const answers = await Promise.all(Array.from({ length: 10 }, (_unused, n) => thePod().get(`/?id=honest-${n}`)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    await until('an answer', () => h2.whole(1));
    expect(h2.status(1)).toBe(200);
    expect(await processes()).toBe(begun);
  }

  return { client, closeAll, expectUnharmed, remember, signal };
}

/**
 * What connections and heads cost of the memory of both proxies. Here because resident memory is a figure. It counts
 * what a process has ever written: what costs less comes first, and all is compared with the beginning.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { clients, endClients, expectUnharmed, remember, stall } from './budget.ts';
import { received } from './neighbours.ts';

const COUNT = 1_000;
const LINE = 'x'.repeat(29_000);
type Proxy = 'nginx' | 'haproxy';

let pod: Pod;
let idleKib: Record<Proxy, number>;
beforeAll(async () => {
  // Room for so many at a time.
  const sidecar = { nginx: { memoryLimit: '4Gi' }, haproxy: { memoryLimit: '1Gi' } };
  const [queue, timeouts] = [{ maxLength: 2 * COUNT }, { clientHeader: '5m' }];
  pod = await Pod.start({ workersPerPod: 1, queue, timeouts, sidecar });
  await remember(pod);
  idleKib = { nginx: await residentKib('nginx'), haproxy: await residentKib('haproxy') };
});
afterEach(() => endClients(pod));
afterAll(() => pod?.stop());

/** Of all processes of a proxy. */
async function residentKib(proxy: Proxy): Promise<number> {
  const look = `for status in /proc/[0-9]*/status; do grep -q "Name:.${proxy}$" $status && grep VmRSS $status; done; true`;
  const lines = await docker('exec', pod[proxy], 'sh', '-c', look);
  return [...lines.matchAll(/^VmRSS:\s+(\d+) kB$/gm)].reduce((sum, [, kib]) => sum + Number(kib), 0);
}

/**
 * What each of COUNT clients costs that send this and then nothing more, when `isThere` says so.
 * @param mostKib of each proxy that is looked at
 */
async function costs(
  what: string,
  bytes: string,
  isThere: () => Promise<boolean>,
  mostKib: Partial<Record<Proxy, number>>,
): Promise<void> {
  await stall(pod, COUNT, bytes);
  await until(what, isThere);
  for (const [proxy, most] of Object.entries(mostKib) as [Proxy, number][]) {
    const each = ((await residentKib(proxy)) - idleKib[proxy]) / COUNT;
    figure(`resident memory of ${proxy} for each of ${COUNT} ${what}`, each, 'KiB', `< ${most} KiB`);
    expect(each).toBeLessThan(most);
  }
}

/** Keeps the one worker busy until the function is called that this gives: then all that wait are served. */
async function busy(id: string): Promise<() => Promise<void>> {
  const held = pod.get(`/?hold=1&id=${id}`);
  await pod.begun(id);
  return async () => {
    pod.release(id);
    expect((await held).status).toBe(200);
    await until('all are answered', () => clients.every((client) => client.received.startsWith('HTTP/1.1 200')));
    await expectUnharmed(pod);
  };
}

/** The quarantine would hold most requests for a URL that it has not seen answered. */
async function isAnswered(): Promise<void> {
  expect((await pod.get('/?id=waits', { headers: { host: 'a' } })).status).toBe(200);
}

async function allWait(): Promise<boolean> {
  const queued = (proxy: string) => pod.metric(`haproxy_backend_current_queue{proxy="${proxy}"}`);
  return (await queued('line')) + (await queued('workers')) >= COUNT;
}

test('idle connections', async () => {
  const allAnswered = async () => clients.every((client) => client.received !== '');
  await costs('idle connections', 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n', allAnswered, { nginx: 4, haproxy: 1 });
});

test('requests that wait, with ordinary heads', async () => {
  await isAnswered();
  const finish = await busy('ordinary');
  const lines = Array.from({ length: 20 }, (_unused, n) => `X-${n}: ${'x'.repeat(40)}\r\n`).join('');
  const bytes = `GET /?id=waits HTTP/1.1\r\nHost: a\r\n${lines}\r\n`;
  // HAProxy writes at both ends of a buffer. What lies between costs nothing.
  await costs('requests that wait, of 1 kB', bytes, allWait, { nginx: 32, haproxy: 32 });
  await finish();
});

test('half heads of as many lines and bytes as there may be', async () => {
  const { headerLines } = budget(pod.spec);
  // A long name costs twice its bytes, a long value once.
  const lines = `${'a:\r\n'.repeat(headerLines - 20)}A${LINE}: a\r\nB${LINE}: a\r\nC${LINE}: a\r\n`;
  const bytes = `GET / HTTP/1.1\r\nHost: a\r\n${lines}`;
  const before = await received(pod);
  const allRead = async () => {
    // Columns tx_queue:rx_queue of those that are established: what nginx has not read.
    const queues = (await docker('exec', pod.nginx, 'cat', '/proc/net/tcp')).matchAll(
      / 01 [0-9A-F]{8}:([0-9A-F]{8}) /g,
    );
    const isRead = [...queues].every(([, unread = '']) => Number.parseInt(unread, 16) === 0);
    return isRead && (await received(pod)) >= before + COUNT * bytes.length;
  };
  // 26 KiB and twice three lines of 32 KiB, as render/model/budget.ts has it.
  await costs('half heads of 88 kB', bytes, allRead, { nginx: 218 });
  await expectUnharmed(pod);
});

test('requests that wait, with large heads', async () => {
  await isAnswered();
  const finish = await busy('large');
  const bytes = `GET /?id=waits HTTP/1.1\r\nHost: a\r\nX-A: ${LINE}\r\nX-B: ${LINE}\r\n\r\n`;
  // Four times the largest head; a buffer of 68 KiB and some connections.
  await costs('requests that wait, of 58 kB', bytes, allWait, { nginx: 256, haproxy: 100 });
  await finish();
});

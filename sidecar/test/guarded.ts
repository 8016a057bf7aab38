/** Programs that may send more than they have announced, and the connections to them. */
import { ANY_URL_KEEPS, Pod, type WorkerOptions } from '../../e2e/harness/engine/pod.ts';

/** A pod with one worker of that kind. */
export const start = (options: WorkerOptions) =>
  Pod.start(
    { workersPerPod: 1, ...ANY_URL_KEEPS, pooling: { enabled: false }, webSockets: { enabled: true } },
    options,
  );

const FORGED = encodeURIComponent('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');

/** What is seen of connections to the worker of that pod. */
export function guarding(thePod: () => Pod) {
  const isGuarded = async () =>
    (await thePod().metric('haproxy_server_status{proxy="workers-guarded",server="worker-0",state="UP"}')) === 1;

  /** One answer that has more than it says, and another client's request that has waited for the worker: its answer. */
  async function behindTooLong(name: string, headers: Record<string, string> = {}): Promise<string> {
    const [first, second] = await Promise.all([
      thePod().get(`/?id=${name}&ms=300&length=10&more=${FORGED}`, { headers }),
      thePod()
        .begun(name)
        .then(() => thePod().get(`/?id=behind-${name}&ms=300`)),
    ]);
    expect([first.status, first.body]).toEqual([200, 'x'.repeat(10)]);
    return JSON.parse(second.body).id;
  }

  /** The connections, by the port of their other end, over which these requests came. */
  async function connections(name: string, count: number): Promise<number> {
    const ids = Array.from({ length: count }, (_unused, n) => `${name}-${n}`);
    for (const id of ids) expect(JSON.parse((await thePod().get(`/?id=${id}`)).body).id).toBe(id);
    return new Set(ids.map((id) => thePod().events({ event: 'begin', id })[0]?.port)).size;
  }

  return { isGuarded, behindTooLong, connections };
}

const UPGRADE = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };

/** Asks a program that nothing guards for responses that are too long: each request gets its own answer. */
export async function expectOwnAnswers(pod: Pod): Promise<void> {
  const { isGuarded, behindTooLong, connections } = guarding(() => pod);
  expect(await connections('one', 5)).toBe(5);
  expect(await behindTooLong('too-long')).toBe('behind-too-long');
  expect(await behindTooLong('upgraded', UPGRADE)).toBe('behind-upgraded');
  expect(await isGuarded()).toBe(false);
}

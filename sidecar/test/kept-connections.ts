/** Connections to a worker that have been used before. */
import { ANY_URL_KEEPS, KEEPS_LONG, Pod, until } from '../../e2e/harness/engine/pod.ts';

/** A program that would close what is idle before HAProxy does. */
export const CLOSES_SOON = { KEEPS_ALIVE_MS: '1' };

/** How many of them are idle. */
export const IDLE = 'haproxy_server_idle_connections_current{proxy="workers",server="worker-0"}';

/** A pod that keeps them for long. */
export const start = () => Pod.start({ workersPerPod: 1, ...ANY_URL_KEEPS }, { env: CLOSES_SOON, ...KEEPS_LONG });

/** What is done to, and seen of, connections in that pod. */
export function keeping(thePod: () => Pod) {
  /** Two connections of each kind, both of which have been used: the next requests may use them again. */
  async function warm(): Promise<void> {
    const ids = [...Array(4).keys()].map((n) => `warm-${n}`);
    // A worker that has just been started again is not guarded at once, and until then none is kept.
    await until('they are kept', async () => {
      for (const pair of [ids.slice(0, 2), ids.slice(2)])
        await Promise.all(pair.map((id) => thePod().get(`/?ms=50&id=${id}`)));
      return (await thePod().metric(IDLE)) > 0;
    });
  }

  /** Each time that a worker began with one of these requests: whether it had seen the connection before. */
  function hadConnection(...ids: string[]): boolean[] {
    const seen = new Set<number | undefined>();
    const had: boolean[] = [];
    for (const { id = '', port } of thePod().events({ event: 'begin' })) {
      if (ids.includes(id)) had.push(seen.has(port));
      seen.add(port);
    }
    return had;
  }

  /** A request that its worker dies with, over a kept connection. */
  async function expectOneTry(method: string, path = '/'): Promise<void> {
    const id = `killer-${method}`;
    const { status, headers } = await thePod().get(`${path}?id=${id}&die=1`, { method });
    expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
    expect(hadConnection(id)).toEqual([true]);
    const line = await until('its line is written', async () =>
      (await thePod().accessLog()).find(({ uri }) => String(uri).includes(id)),
    );
    expect(line).toMatchObject({ worker: 'worker-0', tries: '502, 502' });
  }

  return { warm, hadConnection, expectOneTry };
}

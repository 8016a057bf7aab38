/** Browsers, the page that they get instead of another one, and a pod that has no room. */
import { type Answer, type Call, type Pod, until } from '../../e2e/harness/engine/pod.ts';

/** The page. */
export const SHELL = '<!doctype html><title>Läden</title><div id="app"></div>\n';
export const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';
const ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
/** What a browser sends when somebody follows a link, and what it sends else. */
const BROWSER = { accept: ACCEPT, 'user-agent': CHROME, 'sec-fetch-mode': 'navigate' };

/** The same, with more. */
export const browser = (headers: object = {}, call: Call = {}): Call => ({
  ...call,
  headers: { ...BROWSER, ...headers },
});

/** Status and reason. */
export const reason = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];

/** Status, reason, and which of both bodies it is. */
export function seen(answer: Answer): unknown[] {
  const { headers, body } = answer;
  const type = headers['content-type'];
  if (type === 'text/html; charset=utf-8' && body === SHELL) return [...reason(answer), 'shell'];
  if (type === 'application/json' && JSON.parse(body).error === headers['x-corelane-error'])
    return [...reason(answer), 'json'];
  return [...reason(answer), type, body];
}

/** What fills that pod. */
export function filling(thePod: () => Pod) {
  let fills = 0;

  /** Fills worker and queue of a pod that has one of each while `action` runs. */
  async function whileFull<T>(action: () => Promise<T>): Promise<T> {
    await until('the worker is up', () => thePod().isUp(0));
    fills += 1;
    const id = `busy-${fills}`;
    const busy = thePod().get(`/?hold=1&id=${id}`);
    await thePod().begun(id);
    const waits = thePod().get('/?id=waits');
    await thePod().queued(1);
    try {
      return await action();
    } finally {
      // It has waited for nobody.
      expect(thePod().events({ event: 'end', id })).toEqual([]);
      thePod().release(id);
      expect((await Promise.all([busy, waits])).map(({ status }) => status)).toEqual([200, 200]);
    }
  }

  return { whileFull };
}

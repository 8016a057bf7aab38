/** Clients of several classes, and a queue for them. */
import { type Answer, type Call, type Pod, until } from '../../e2e/harness/engine/pod.ts';

export const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';
export const asks = (headers: object = {}): Call => ({ headers: { 'user-agent': CHROME, ...headers } });
export const PERSON = asks();
export const PREFETCH = asks({ 'sec-purpose': 'prefetch' });
export const CRAWLER = asks({ 'user-agent': 'Googlebot/2.1 (+http://www.google.com/bot.html)' });

/** Counter of requests of a class that were refused. */
export const REFUSED_TOTAL = (name: string) => `haproxy_backend_http_requests_total{proxy="refused-${name}"}`;
/** Counter of all others, which adds pods. */
export const FULL_TOTAL = 'haproxy_frontend_intercepted_requests_total{proxy="front"}';
let fills = 0;

/** Requests that stand in the queue when this returns, in the order in which they came. */
export async function enqueue(there: Pod, calls: [id: string, call: Call][], before = 0): Promise<Promise<Answer>[]> {
  const answers: Promise<Answer>[] = [];
  for (const [id, call] of calls) {
    answers.push(there.get(`/?id=${id}`, call));
    await there.queued(before + answers.length);
  }
  return answers;
}

/** Keeps the only worker of a pod until `release` is called. */
export async function keepBusy(there: Pod) {
  // One that has come by way of the waiting room counts as one that waits.
  await until('the worker is up', () => there.isUp(0));
  fills += 1;
  const id = `busy-${fills}`;
  const answer = there.get(`/?hold=1&id=${id}`);
  await there.begun(id);
  return {
    async release() {
      there.release(id);
      expect((await answer).status).toBe(200);
    },
  };
}

/** Those of these ids that have been begun, in order. */
export const begun = (there: Pod, ids: string[]) =>
  there
    .events({ event: 'begin' })
    .map(({ id }) => id)
    .filter((id) => id !== undefined && ids.includes(id));

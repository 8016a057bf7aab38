/** Statuses below 200 of an application: hints come before an answer. */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { statuses } from './informational.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, accessLog: { enabled: false } });
});
afterAll(() => pod?.stop());

test.each([1, 20])('%d early hints before a page: it arrives, and so does the next one', async (hints) => {
  const ids = Array.from({ length: 20 }, (_unused, n) => `hints-${hints}-${n}`);
  const answers = await Promise.all(ids.map((id) => pod.get(`/?id=${id}&hints=${hints}`)));
  expect(answers.map(({ status, body }) => [status, JSON.parse(body).id])).toEqual(ids.map((id) => [200, id]));
  expect(answers.map(({ headers }) => headers.link)).toEqual(Array(20).fill(undefined));
});

test('hints without end are a 502, and cost no more memory than some', async () => {
  const answers = await statuses(
    pod,
    Array.from({ length: 5 }, (_unused, n) => `/?id=endless-${n}&hints=500`),
  );
  expect(answers).toEqual(Array(5).fill(expect.stringMatching(/^502 /)));
  expect(await statuses(pod, ['/?id=after-endless'])).toEqual(['200']);
});

test('with accessLog.enabled: false no request has a line, and the metrics have all', async () => {
  for (const id of ['one', 'two', 'three']) expect((await pod.get(`/?id=unlogged-${id}&status=404`)).status).toBe(404);
  // Lines would be here before: nginx writes them every 100 ms, and its page of metrics is a second old.
  await until('all are counted', async () => {
    const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
    return body.includes('corelane_requests_total{code="4xx",reason=""} 3\n');
  });
  expect(await pod.accessLog()).toEqual([]);
});

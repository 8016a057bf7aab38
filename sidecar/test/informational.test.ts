/**
 * Statuses below 200 of an application: hints come before an answer, and one that is all that comes costs nobody but
 * itself (I5).
 */
import { Pod } from '../../e2e/harness/engine/pod.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2 });
});
afterAll(() => pod?.stop());

const statuses = async (paths: string[]) => {
  const answers = await Promise.all(paths.map((path) => pod.get(path)));
  return answers.map(({ status, headers }) => [status, headers['x-corelane-error']].join(' ').trim());
};

// HAProxy refuses a 101 that nobody has asked for; after any other it waits for the page, and then the connection ends.
test.each([
  [100, 'worker-died'],
  [101, 'bad-response'],
  [102, 'worker-died'],
  [103, 'worker-died'],
])('a page that is answered %d and nothing else is a 502 at once, and others do not notice', async (odd, reason) => {
  const honest = Array.from({ length: 20 }, (_unused, n) => `/?id=honest-${odd}-${n}&ms=5`);
  const oddOnes = Array.from({ length: 6 }, (_unused, n) => `/?id=odd-${odd}-${n}&status=${odd}`);
  const begin = performance.now();
  const [ours, others] = await Promise.all([statuses(honest), statuses(oddOnes)]);
  expect(ours).toEqual(Array(20).fill('200'));
  expect(others).toEqual(Array(6).fill(`502 ${reason}`));
  expect(performance.now() - begin).toBeLessThan(8_000);
});

test.each([1, 20])('%d early hints before a page: it arrives, and so does the next one', async (hints) => {
  const ids = Array.from({ length: 20 }, (_unused, n) => `hints-${hints}-${n}`);
  const answers = await Promise.all(ids.map((id) => pod.get(`/?id=${id}&hints=${hints}`)));
  expect(answers.map(({ status, body }) => [status, JSON.parse(body).id])).toEqual(ids.map((id) => [200, id]));
  expect(answers.map(({ headers }) => headers.link)).toEqual(Array(20).fill(undefined));
});

test('hints without end are a 502, and cost no more memory than some', async () => {
  const answers = await statuses(Array.from({ length: 5 }, (_unused, n) => `/?id=endless-${n}&hints=500`));
  expect(answers).toEqual(Array(5).fill(expect.stringMatching(/^502 /)));
  expect(await statuses(['/?id=after-endless'])).toEqual(['200']);
});

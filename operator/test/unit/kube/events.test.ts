/** How many events there may be: of one object, and of all. */
import { EventRecorder } from '../../../src/kube/events.ts';
import type { Rest } from '../../../src/kube/rest.ts';
import { TokenBucket } from '../../../src/kube/token-bucket.ts';

const event = { type: 'Normal', reason: 'Test', action: 'Test', note: 'a note' } as const;
const metadata = (name: string) => ({ name, namespace: 'shop', uid: name, generation: 1, resourceVersion: '1' });

test('a bucket gives its burst, and then one at a time', () => {
  let now = 0;
  const bucket = new TokenBucket(2, 1_000, () => now);
  expect([bucket.take(), bucket.take(), bucket.take()]).toEqual([true, true, false]);
  now = 999;
  expect(bucket.take()).toBe(false);
  now = 1_000;
  expect([bucket.take(), bucket.take(), bucket.isFull]).toEqual([true, false, false]);
  now = 10_000;
  expect([bucket.isFull, bucket.take(), bucket.take(), bucket.take()]).toEqual([true, true, true, false]);
});

test('one object has 25 at once, all together 200; what is beyond is told to the log', async () => {
  const written: string[] = [];
  const dropped: string[] = [];
  // No API server: what is written here is an hour's worth.
  const rest = { request: async (_method: string, path: string) => written.push(path) } as unknown as Rest;
  const recorder = new EventRecorder({
    rest,
    instance: 'test',
    onError: (_key, error) => {
      throw error;
    },
    onDropped: (key) => dropped.push(key),
  });
  for (let n = 0; n < 30; n += 1) await recorder.record(metadata('loud'), event);
  expect([written.length, dropped]).toEqual([25, Array(5).fill('shop/loud')]);
  for (let n = 0; n < 500; n += 1) await recorder.record(metadata(`one-of-many-${n}`), event);
  expect(written.length).toBeGreaterThanOrEqual(200);
  // One more for each second that the loop has taken.
  expect(written.length).toBeLessThan(210);
});

test.each([
  ['a', 'a'.repeat(1_024)],
  ['é', 'é'.repeat(512)],
  ['€', '€'.repeat(341)],
  ['🚲', '🚲'.repeat(256)],
])('a note of a thousand %s is as long as the API takes, in bytes', async (letter, expected) => {
  const notes: unknown[] = [];
  const request = async (_method: string, _path: string, { body }: { body: { note: string } }) => notes.push(body.note);
  const onError = (_key: string, error: unknown) => {
    throw error;
  };
  const recorder = new EventRecorder({ rest: { request } as unknown as Rest, instance: 'test', onError });
  await recorder.record(metadata('long'), { ...event, note: letter.repeat(2_000) });
  expect(notes).toEqual([expected]);
});

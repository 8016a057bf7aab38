/** Renders that were given up and only wait: which are set aside, how many, and when each is forgotten. */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const { SetAside } = createRequire(import.meta.url)('../../runtime/set-aside.cjs');

interface FakeResponse {
  headersSent: boolean;
  end(text?: string): string;
}

const response = (headersSent = false): FakeResponse => ({ headersSent, end: (text = '') => `ended ${text}` });

/** With room for three, in a process whose event loop was idle for so long. */
function aside(idleMs: number) {
  const counts: number[] = [];
  const kept = new SetAside({ idleMs }, (count: number) => counts.push(count));
  kept.max = 3;
  return { kept, counts };
}

/** One that began 1 s ago and has 0.5 s. */
const render = (changes = {}) => ({
  beganAt: performance.now() - 1_000,
  renderMs: 500,
  response: response(),
  parts: new Set(),
  idleMs: 0,
  ...changes,
});

test.each([
  ['one that waited', 900, {}, true],
  ['one that waited for a tenth of its time', 100, {}, true],
  ['one that computed, or waited for the CPU', 20, {}, false],
  ['one that was cut off before its time', 900, { renderMs: 2_000 }, false],
  ['one that has begun to answer', 900, { response: response(true) }, false],
  ['one that waits for a request to its own program', 900, { parts: new Set([1]) }, false],
  ['a part of another one', 900, { parts: undefined }, false],
])('%s', (_what, idleMs, changes, expected) => {
  expect(aside(idleMs).kept.waits(render(changes))).toBe(expected);
});

test('without who measures none waits, and there is room for none', () => {
  const kept = new SetAside(undefined, () => {});
  kept.max = 3;
  expect([kept.waits(render()), kept.room]).toEqual([false, 0]);
});

test('so many at a time, and each until the program ends it', () => {
  const { kept, counts } = aside(900);
  const responses = [response(), response(), response()];
  for (const one of responses) kept.add(one);
  expect([kept.count, kept.room]).toEqual([3, 0]);
  kept.max = 1;
  expect(kept.room).toBe(0);
  const [first] = responses;
  expect([first?.end('well'), first?.end('twice')]).toEqual(['ended well', 'ended twice']);
  expect([kept.count, counts]).toEqual([2, [1, 2, 3, 2]]);
});

test('or until the program has forgotten it', async () => {
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  const turn = async () => {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const { kept } = aside(900);
  const known = response();
  kept.add(known);
  const addAndEnd = () => {
    const ended = response();
    kept.add(ended);
    ended.end();
  };
  // In a function of its own: a temporary value of this one stays as long as its frame.
  const addAndForget = () => kept.add(response());
  addAndEnd();
  addAndForget();
  expect(kept.count).toBe(2);
  for (const end = performance.now() + 10_000; kept.count > 1 && performance.now() < end; ) await turn();
  // One that has ended is not forgotten once more.
  for (let more = 0; more < 5; more += 1) await turn();
  expect([kept.count, known.end()]).toEqual([1, 'ended ']);
  expect(kept.count).toBe(0);
  // Each look through the memory of all of Jest takes a second on a busy machine.
}, 30_000);

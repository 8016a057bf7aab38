/** NODE_OPTIONS as start scripts leave it, and what the supervisor makes of it. */
import { createRequire } from 'node:module';

interface NodeOptions {
  ENTRY: string;
  entryFirst(env: Record<string, string>): string;
  hasPreloadInFront(text: string): boolean;
  isSaidBy(options: string[], name: string): boolean;
  overriding(env: Record<string, string>): string[];
  usersOptions(env: Record<string, string>): string[];
  withoutOverruled(flags: string[], options: string[]): string[];
}

const { ENTRY, entryFirst, hasPreloadInFront, isSaidBy, overriding, usersOptions, withoutOverruled }: NodeOptions =
  createRequire(import.meta.url)('../../runtime/node-options.cjs');
const [OLD, SEMI] = ['--max-old-space-size', '--max-semi-space-size'] as const;

test.each([
  ['', []],
  [ENTRY, []],
  [`${ENTRY} --trace-gc`, ['--trace-gc']],
  [`  --trace-gc   ${ENTRY}  `, ['--trace-gc']],
  [`-r ./pre.cjs ${ENTRY} --import x`, ['-r', './pre.cjs', '--import', 'x']],
  [`--require=./a ${ENTRY} -r ./b ${ENTRY}`, ['--require=./a', '-r', './b']],
])('options of the user: %j', (text, users) => {
  expect(usersOptions({ NODE_OPTIONS: text })).toEqual(users);
  expect(entryFirst({ NODE_OPTIONS: text })).toBe([ENTRY, ...users].join(' '));
});

test('between quotes a blank is none, and a backslash escapes; the quotes stay', () => {
  const own = ['-r', '"./my agent.cjs"', '--title="a \\" b"', '"--require=./x y"'];
  expect(usersOptions({ NODE_OPTIONS: [...own, ENTRY].join(' ') })).toEqual(own);
  // Node.js refuses both; nothing is lost.
  expect(usersOptions({ NODE_OPTIONS: `${ENTRY} "a b` })).toEqual(['"a b']);
  expect(usersOptions({ NODE_OPTIONS: `${ENTRY} "a\\` }).join('')).toBe('"a\\');
});

test('options of a variable that may be missing stand where they would without Corelane, and once', () => {
  const hidden = (CORELANE_USER_NODE_OPTIONS: string, NODE_OPTIONS: string) =>
    usersOptions({ CORELANE_USER_NODE_OPTIONS, NODE_OPTIONS });
  expect(hidden('--a --b', `--before ${ENTRY} --behind`)).toEqual(['--before', '--a', '--b', '--behind']);
  expect(hidden('--a --b', `${ENTRY} --a --b --behind`)).toEqual(['--a', '--b', '--behind']);
  expect(hidden('--a=1', `${ENTRY} --a=12`)).toEqual(['--a=1', '--a=12']);
  expect(hidden('$(NODE_OPTIONS)', ENTRY)).toEqual([]);
  // The supervisor that begins anew passes them on.
  const first = entryFirst({ CORELANE_USER_NODE_OPTIONS: '--a', NODE_OPTIONS: `-r ./x ${ENTRY}` });
  expect(hidden('--a', first)).toEqual(['-r', './x', '--a']);
});

test.each([
  [`-r ./x ${ENTRY}`, true],
  [`--require ./x ${ENTRY}`, true],
  [`--trace-gc "--require=./x" ${ENTRY}`, true],
  [`--import ./x ${ENTRY}`, false], // the supervisor runs none of these
  [`--trace-gc ${ENTRY} -r ./x`, false],
  ['-r ./x', false],
  [ENTRY, false],
])('whether a module is preloaded before the runtime: %j', (text, expected) => {
  expect(hasPreloadInFront(text)).toBe(expected);
});

test.each([
  [['--max-old-space-size=1'], [true, false]],
  [['--max_old_space_size=1'], [true, false]],
  [['"--max-old-space-size=1"'], [true, false]],
  [['--max-old-space-size-percentage=50'], [true, false]],
  [['--max-semi-space-size=1'], [false, true]],
  [['--max-heap-size=1'], [true, true]],
  [
    ['--max-old-space-sizes=1', '--title=--max-old-space-size=1', '-r'],
    [false, false],
  ],
])('%j say the size of the old space, of the semi space: %j', (options, expected) => {
  expect([OLD, SEMI].map((name) => isSaidBy(options, name))).toEqual(expected);
  expect(isSaidBy(options, '--title')).toBe(false);
});

test.each([
  [[], [], [`${OLD}=768`, `${SEMI}=32`]],
  // V8 aborts if it gets all three.
  [['--max-heap-size=300'], [], ['--max-heap-size=300']],
  [['--max_heap_size=300'], [], ['--max_heap_size=300']],
  [[], ['--max-heap-size=300'], []],
  [['--max-old-space-size-percentage=50'], [], [`${SEMI}=32`, '--max-old-space-size-percentage=50']],
  [[`${OLD}=100`], [], [`${SEMI}=32`, `${OLD}=100`]],
  [[`${OLD}=100`], [`${OLD}=200`], [`${SEMI}=32`]],
  [['--trace-gc', '--trace-gc'], ['--trace-gc'], [`${OLD}=768`, `${SEMI}=32`, '--trace-gc', '--trace-gc']],
])("sizes of Corelane's beside nodeFlags %j and NODE_OPTIONS %j", (nodeFlags, users, expected) => {
  expect(withoutOverruled([`${OLD}=768`, `${SEMI}=32`, ...nodeFlags], users)).toEqual(expected);
});

test('the size of heads is said by one option', () => {
  expect(isSaidBy(['--max_http_header_size=1'], '--max-http-header-size')).toBe(true);
  expect(isSaidBy(['--max-http-header-sizes=1', '--title=a'], '--max-http-header-size')).toBe(false);
});

test("Corelane's flags that stand behind the user's are known by name", () => {
  const flags = `${OLD}=300 --trace-gc`;
  const found = (before: string, own = flags) =>
    overriding({ NODE_OPTIONS: `${before} ${ENTRY} ${own}`, CORELANE_NODE_FLAGS: own });
  expect(found('--max_old_space_size=1')).toEqual([OLD]);
  expect(found(`${SEMI}=1 --trace-gc`)).toEqual([]);
  expect(found(`${OLD}=1 ${SEMI}=1`, `${OLD}=300 ${SEMI}=32`)).toEqual([OLD, SEMI]);
  expect(found('')).toEqual([]);
  expect(overriding({ NODE_OPTIONS: `${ENTRY} ${flags} ${OLD}=1`, CORELANE_NODE_FLAGS: flags })).toEqual([]);
  expect(overriding({})).toEqual([]);
});

test('many quotes and blanks are read once', () => {
  expect(usersOptions({ NODE_OPTIONS: '"'.repeat(200_001) })).toHaveLength(1);
  expect(usersOptions({ NODE_OPTIONS: ' '.repeat(200_000) })).toEqual([]);
});

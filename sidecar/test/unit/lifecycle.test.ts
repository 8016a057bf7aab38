/** The whole life of a worker: every event in every phase. */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

type Effect = [name: string, ...args: unknown[]];
interface Life {
  phase: string;
  cause?: string;
  everUp: boolean;
  upSinceMs?: number;
  replacingSinceMs?: number;
  stopSignal?: string;
  failures: number;
  backoffMs: number;
  lastExitCode: number;
  restarts: Record<string, number>;
}
type Event = { type: string; atMs?: number } & Record<string, unknown>;
interface Way {
  when?: { holds(life: Life, event: Event): boolean };
}
interface Lifecycle {
  FIRST: Life;
  TABLE: Record<string, Record<string, Way[]>>;
  next(life: Life, event: Event): { life: Life; effects: Effect[] };
  isLooping(life: Life, nowMs: number): boolean;
  isReplacing(life: Life, nowMs: number): boolean;
}

const RUNTIME = fileURLToPath(new URL('../../runtime/', import.meta.url));
const require = createRequire(import.meta.url);
const { FIRST, TABLE, next, isLooping, isReplacing }: Lifecycle = require('../../runtime/lifecycle.cjs');

const SERVER = { pid: 7 };
const ENDED = { type: 'ended', code: 1, signal: null, exitCode: 1 };

/** An event, and what is special about the life that it comes to. */
const EVENTS: Record<string, [event: Event, life?: Partial<Life>]> = {
  due: [{ type: 'due' }],
  listening: [{ type: 'listening' }],
  'listening, to be warmed': [{ type: 'listening', isCold: true }],
  warm: [{ type: 'warm', warmed: {} }],
  closed: [{ type: 'closed' }],
  'closed, below a launcher': [{ type: 'closed', below: 7 }],
  'closed, told to end': [{ type: 'closed' }, { cause: 'recycled' }],
  'closed, being killed': [{ type: 'closed' }, { cause: 'stalled' }],
  'launcher-late': [{ type: 'launcher-late', below: 7 }],
  stalled: [{ type: 'stalled', server: SERVER }],
  'captured, still silent': [{ type: 'captured', server: SERVER, isSilent: true }],
  'captured, killed before': [{ type: 'captured', server: SERVER, isSilent: true }, { cause: 'stalled' }],
  'captured, turns again': [{ type: 'captured', server: SERVER, isSilent: false }],
  recovered: [{ type: 'recovered', server: SERVER }],
  'recovered, told to end': [{ type: 'recovered', server: SERVER }, { cause: 'recycled' }],
  'recovered, being killed': [{ type: 'recovered', server: SERVER }, { cause: 'stalled' }],
  drain: [{ type: 'drain' }],
  undrained: [{ type: 'undrained' }],
  overdue: [{ type: 'overdue', server: SERVER }],
  'overdue, as before': [{ type: 'overdue', server: SERVER }, { cause: 'abandoned' }],
  abandoned: [{ type: 'abandoned', requests: [] }, { cause: 'abandoned' }],
  'abandoned, of another process': [{ type: 'abandoned', requests: [] }],
  kept: [{ type: 'kept' }, { cause: 'abandoned' }],
  'kept, of another process': [{ type: 'kept' }],
  recycled: [{ type: 'recycled' }],
  'recycled, overdue': [{ type: 'recycled' }, { cause: 'abandoned' }],
  attached: [{ type: 'attached', server: SERVER }],
  'attached, below a launcher': [{ type: 'attached', server: SERVER, below: 7 }],
  'attached, told to end': [{ type: 'attached', server: SERVER }, { cause: 'recycled' }],
  'attached, flags to leave out': [{ type: 'attached', server: SERVER, leftOut: ['--max-old-space-size'] }],
  stop: [{ type: 'stop', signal: 'SIGTERM' }],
  ended: [ENDED],
  'ended, a server, awaited': [{ ...ENDED, isExitAwaited: true }],
  'ended, a script': [ENDED, { everUp: false }],
  'ended, a script, awaited': [{ ...ENDED, isExitAwaited: true }, { everUp: false }],
};

/** Next phase (`=`: the same one) and what is done; `-`: nothing happens at all. */
const EXPECTED = `
event                          waiting     starting   warming     up          draining    stalled     stopping
due                            starting a  -          -           -           -           -           -
listening                      -           up b       -           -           -           -           -
listening, to be warmed        -           warming c  -           -           -           -           -
warm                           -           -          up d        -           -           -           -
closed                         -           =          starting e  starting e  starting e  starting e  -
closed, below a launcher       -           = f        starting g  starting g  starting g  starting g  -
closed, told to end            -           =          starting    starting    starting    starting    -
closed, being killed           -           =          starting    starting    starting    starting    -
launcher-late                  -           = h        -           -           -           -           -
stalled                        -           -          stalled i   stalled i   stalled i   -           = i
captured, still silent         -           = j        = j         = j         = j         = h         = h
captured, killed before        -           = j        = j         = j         = j         = j         = j
captured, turns again          -           = j        = j         = j         = j         = j         = j
recovered                      -           -          -           -           -           up k        -
recovered, told to end         -           -          -           -           -           draining k  -
recovered, being killed        -           -          -           -           -           =           -
drain                          -           -          -           draining    -           -           -
undrained                      -           -          -           -           up          -           -
overdue                        -           -          -           = l         -           -           -
overdue, as before             -           -          -           -           -           -           -
abandoned                      -           -          -           draining h  draining h  -           -
abandoned, of another process  -           -          -           -           -           -           -
kept                           -           =          =           =           up          =           -
kept, of another process       -           -          -           -           -           -           -
recycled                       -           -          -           -           = m         -           -
recycled, overdue              -           -          -           -           -           -           -
attached                       = n         = n        = n         = n         = n         = n         = n
attached, below a launcher     = n         = n        = n         = n         = n         = n         = o
attached, told to end          = p         = p        = p         = p         = p         = p         = p
attached, flags to leave out   = n         = u        = n         = n         = n         = n         = n
stop                           = q         stopping r stopping r  stopping r  stopping r  stopping r  = r
ended                          -           waiting s  waiting s   waiting s   waiting s   waiting s   = t
ended, a server, awaited       -           waiting s  waiting s   waiting s   waiting s   waiting s   = t
ended, a script                -           waiting s  waiting s   waiting s   waiting s   waiting s   = t
ended, a script, awaited       -           = t        = t         = t         = t         = t         = t
`;
const DONE: Record<string, string> = {
  a: 'start',
  b: 'forgetLauncher, endTurn, log up',
  c: 'forgetLauncher, warmUp',
  d: 'log warm, forgetLauncher, endTurn, log up',
  e: 'log down',
  f: 'awaitLauncher',
  g: 'log down, awaitLauncher',
  h: 'log kill, kill',
  i: 'capture',
  j: 'resume',
  k: 'resume, log recovered',
  l: 'replace',
  m: 'forward',
  n: 'lookWhetherReady',
  o: 'signalChild, lookWhetherReady',
  p: 'kill, lookWhetherReady',
  q: 'log stopping, exit',
  r: 'log stopping, forward',
  s: 'forgetLauncher, kill, log restart, startIn',
  t: 'log exit, exit',
  u: 'log flags, kill, lookWhetherReady',
};

const [head = [], ...rows] = EXPECTED.trim()
  .split('\n')
  .map((line) => [
    line.slice(0, 31).trim(),
    ...(line.slice(31).match(/[-=](?: [a-z])?(?= |$)|[a-z]+(?: [a-z](?= |$))?/g) ?? []),
  ]);
const PHASES = head.slice(1);

const nameOf = ([name, first]: Effect) => (name === 'log' ? `log ${first}` : name);
const lifeIn = (phase: string, special: Partial<Life> = {}): Life => ({ ...FIRST, everUp: true, phase, ...special });

/** What the table of the test says of a cell. */
function expected(phase: string, cell: string): { phase: string; done: string } {
  const [to, code] = cell.split(' ') as [string, string?];
  return { phase: to === '=' || to === '-' ? phase : to, done: code ? (DONE[code] ?? 'no such code') : '' };
}

test('the table of this test has all phases and all of its events', () => {
  expect(PHASES).toEqual(Object.keys(TABLE));
  expect(rows.map(([name]) => name)).toEqual(Object.keys(EVENTS));
  for (const row of rows) expect(row).toHaveLength(PHASES.length + 1);
});

describe.each(rows)('%s', (name, ...cells) => {
  const [event, special] = EVENTS[name] as [Event, Partial<Life>?];
  test.each(PHASES.map((phase, index) => [phase, cells[index] as string]))('%s: %s', (phase, cell) => {
    const before = lifeIn(phase, special);
    const { life, effects } = next(before, { atMs: 1_000, ...event });
    expect({ phase: life.phase, done: effects.map(nameOf).join(', ') }).toEqual(expected(phase, cell));
    if (cell === '-') expect(life).toBe(before);
  });
});

test('each way that the supervisor knows is taken', () => {
  const taken = new Set<Way>();
  for (const [event, special] of Object.values(EVENTS)) {
    for (const phase of PHASES) {
      const ways = TABLE[phase]?.[event.type] ?? [];
      const way = ways.find(({ when }) => when === undefined || when.holds(lifeIn(phase, special), event));
      if (way) taken.add(way);
    }
  }
  const all = Object.values(TABLE).flatMap((cells) => Object.values(cells).flat());
  expect(all.filter((way) => !taken.has(way))).toEqual([]);
});

/** One event after the other, each at its time. */
function live(...events: [atMs: number, type: string, facts?: Record<string, unknown>][]) {
  let life = FIRST;
  let effects: Effect[] = [];
  for (const [atMs, type, facts] of events) ({ life, effects } = next(life, { type, atMs, ...facts }));
  return { life, effects };
}
const crash = { code: 1, signal: null, exitCode: 1 };

test('back-off: at once, then 0.1 s doubling to 10 s; a worker that has been up for 10 s begins anew', () => {
  let life = FIRST;
  const waits: number[] = [];
  const crashAt = (atMs: number, upAtMs: number) => {
    for (const [at, type] of [[atMs, 'due'] as const, [upAtMs, 'listening'] as const])
      life = next(life, { type, atMs: at }).life;
    const ended = next(life, { type: 'ended', atMs: upAtMs + 9_999, ...crash });
    life = ended.life;
    waits.push(ended.effects.at(-1)?.[1] as number);
  };
  for (let n = 0; n < 10; n += 1) crashAt(n * 100_000, n * 100_000);
  expect(waits).toEqual([0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
  expect(isLooping(life, 2_000_000)).toBe(true);
  life = live([0, 'due'], [0, 'listening']).life;
  const healthy = { ...life, failures: 9 };
  expect([isLooping(healthy, 9_999), isLooping(healthy, 10_000)]).toEqual([true, false]);
  const { life: after, effects } = next(healthy, { type: 'ended', atMs: 10_000, ...crash });
  expect([after.failures, effects.at(-1)]).toEqual([1, ['startIn', 0]]);
});

test.each([
  ['exit', { code: 0, signal: null, exitCode: 0 }, undefined, 400],
  ['error', { code: 3, signal: null, exitCode: 3 }, undefined, 400],
  ['signal', { code: null, signal: 'SIGSEGV', exitCode: 139 }, undefined, 400],
  ['stalled', { code: null, signal: 'SIGKILL', exitCode: 137 }, 'stalled', 400],
  ['abandoned', { code: null, signal: 'SIGKILL', exitCode: 137 }, 'abandoned', 0],
  ['recycled', { code: 0, signal: null, exitCode: 0 }, 'recycled', 0],
])('a restart counts as %s', (reason, how, cause, afterMs) => {
  const life = { ...lifeIn('draining'), failures: 3, cause };
  const ended = next(life, { type: 'ended', atMs: 0, ...how });
  expect(ended.life.restarts).toEqual({ ...FIRST.restarts, [reason]: 1 });
  expect(ended.life.lastExitCode).toBe(how.exitCode);
  const { code, signal } = how;
  expect(ended.effects).toContainEqual(['log', 'restart', { reason, code, signal, afterMs }]);
});

test('a program that starts again with other flags is a server, whoever waits for its exit code, and no crash', () => {
  const { life } = live([0, 'due'], [1, 'attached', { server: SERVER, below: 7, leftOut: ['--max-old-space-size'] }]);
  const ended = next(life, {
    type: 'ended',
    atMs: 2,
    code: null,
    signal: 'SIGKILL',
    exitCode: 137,
    isExitAwaited: true,
  });
  expect([ended.life.phase, ended.life.restarts.recycled, ended.effects.at(-1)]).toEqual([
    'waiting',
    1,
    ['startIn', 0],
  ]);
});

test('the log names the memory limit as what has killed a process, unless the supervisor has', () => {
  const killed = { code: null, signal: 'SIGKILL', exitCode: 137, killedBy: 'the memory limit of the container' };
  const logged = (phase: string, cause?: string) => {
    const { effects } = next({ ...lifeIn(phase), cause }, { type: 'ended', atMs: 0, ...killed });
    return effects.find(([, event]) => event === 'restart')?.[2];
  };
  expect(logged('up')).toMatchObject({ reason: 'signal', killedBy: killed.killedBy });
  expect(logged('stalled', 'stalled')).toMatchObject({ reason: 'stalled', killedBy: undefined });
});

test('why a process is ended is forgotten with it, and when one comes up all the same', () => {
  const killed = live(
    [0, 'due'],
    [0, 'listening'],
    [5, 'stalled', { server: SERVER }],
    [6, 'captured', { server: SERVER, isSilent: true }],
  ).life;
  expect(killed.cause).toBe('stalled');
  // It could not be killed, and gets stuck once more.
  const again = next(killed, { type: 'closed', atMs: 7 }).life;
  expect(next(again, { type: 'listening', atMs: 8 }).life).toMatchObject({ phase: 'up', cause: undefined });
  const ended = next(killed, { type: 'ended', atMs: 7, ...crash }).life;
  expect(next(ended, { type: 'due', atMs: 8 }).life).toMatchObject({
    phase: 'starting',
    cause: undefined,
    upSinceMs: undefined,
  });
  expect(next(lifeIn('up', { cause: 'stalled' }), { type: 'stalled', server: SERVER }).life.cause).toBeUndefined();
});

test('a worker that is kept does not take back the kill that came in between', () => {
  expect(next(lifeIn('stalled', { cause: 'stalled' }), { type: 'kept' }).life.cause).toBe('stalled');
});

test('a stuck worker is told to HAProxy before it is killed, unless it is told to be down already', () => {
  expect(next(lifeIn('up'), { type: 'stalled', server: SERVER }).effects).toEqual([
    ['capture', SERVER, { tellsFirst: true }],
  ]);
  const { effects } = next(lifeIn('stopping'), { type: 'stalled', server: SERVER });
  expect(effects).toEqual([['capture', SERVER, { tellsFirst: false }]]);
});

test('a worker that is replaced because nobody waits counts as busy until it is up, 10 s at most', () => {
  const { life, effects } = next(lifeIn('up', { cause: 'abandoned' }), {
    type: 'abandoned',
    atMs: 500,
    requests: ['id'],
  });
  const because = expect.stringMatching(/timeouts\.render .*timeouts\.handler/);
  expect(effects).toContainEqual(['log', 'kill', { reason: 'abandoned', because, requests: ['id'] }]);
  expect([isReplacing(life, 10_499), isReplacing(life, 10_500)]).toEqual([true, false]);
  const starting = { ...life, phase: 'starting' };
  expect(isReplacing(next(starting, { type: 'listening', atMs: 600 }).life, 700)).toBe(false);
  expect(isReplacing(FIRST, 0)).toBe(false);
});

test('the last signal is the one that a late server of a launcher gets', () => {
  const { effects } = live(
    [0, 'due'],
    [1, 'stop', { signal: 'SIGTERM' }],
    [2, 'stop', { signal: 'SIGINT' }],
    [3, 'attached', { server: SERVER, below: 7 }],
  );
  expect(effects).toEqual([
    ['signalChild', 'SIGINT'],
    ['lookWhetherReady', SERVER],
  ]);
});

test('what changes in the supervisor is in its State', () => {
  const files = new Set(['supervise.cjs']);
  const texts = () => [...files].map((file) => readFileSync(`${RUNTIME}${file}`, 'utf8'));
  for (let before = 0; before < files.size; ) {
    before = files.size;
    for (const text of texts())
      for (const [, file = ''] of text.matchAll(/require\('\.\/([a-z]+\.cjs)'\)/g)) files.add(file);
  }
  expect(files.size).toBeGreaterThan(20);
  expect(texts().filter((text) => /^(let|var) /m.test(text))).toEqual([]);
});

test('every event that the runtime sends is known, and all that is to be done can be', () => {
  const texts = readdirSync(RUNTIME)
    .filter((file) => file.endsWith('.cjs'))
    .map((file) => readFileSync(`${RUNTIME}${file}`, 'utf8'));
  const sent = texts.flatMap((text) => [...text.matchAll(/dispatch(?:\(|, ms, )'([a-z-]+)'/g)].map(([, type]) => type));
  const known = Object.values(EVENTS).map(([{ type }]) => type);
  expect(new Set(sent)).toEqual(new Set(known));
  require('../../runtime/supervise.cjs');
  const { effects } = require('../../runtime/state.cjs');
  const wanted = Object.values(DONE).flatMap((done) => done.split(', ').map((name) => name.split(' ')[0]));
  expect(new Set(Object.keys(effects))).toEqual(new Set(wanted));
});

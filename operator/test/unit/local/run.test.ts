/** What computes in `corelane run`: tables, quantiles, costs of a fault, arguments, words. */
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { costOf } from '../../../cli/run/cost.ts';
import { inWords, Logs, lastWords, type WorkerLog } from '../../../cli/run/logs.ts';
import { runOptions } from '../../../cli/run/options.ts';
import { harmless } from '../../../cli/run/screen.ts';
import { faultsTable, workersTable } from '../../../cli/run/table.ts';
import { troubleOf, whyNoRuntime } from '../../../cli/run/trouble.ts';
import { viewLines } from '../../../cli/run/view.ts';
import { bucketsOf, bucketsSince, quantileMs, quantileOf } from '../../../live/quantile.ts';
import { milliseconds, seconds } from '../../../live/text.ts';
import { type Engine, isStale } from '../../../local/engine.ts';
import { until } from '../../../local/http.ts';
import type { RunPod } from '../../../local/run-pod.ts';
import { Exposition } from '../../../src/pods/exposition.ts';

describe('tables', () => {
  const row = {
    pod: 'a-render-service-with-a-very-long-name-indeed-12',
    worker: 'worker-63',
    state: 'crashes, exit 137 and more',
    requests: 12_345_678,
    busy: 1,
    restarts: 1_000,
    memoryBytes: 3 * 1024 ** 3,
    p50Ms: 9.94,
    p99Ms: 12_345,
  };

  test('of workers: unknown figures are a dash, the longest line fits a terminal', () => {
    const nothing = {
      requests: undefined,
      restarts: undefined,
      memoryBytes: undefined,
      p50Ms: undefined,
      p99Ms: undefined,
    };
    const lines = workersTable([row, { pod: 'shop-1', worker: 'worker-0', state: 'starting', busy: 0, ...nothing }]);
    expect(lines).toEqual([
      'POD                       WORKER     STATE                   REQUESTS  BUSY  RESTARTS    MEMORY     P50   P99',
      'a-render-service-with-a…  worker-63  crashes, exit 137 a…  12,345,678     1     1,000  3072 MiB  9.9 ms  12 s',
      'shop-1                    worker-0   starting                       -     0         -         -       -     -',
    ]);
  });

  test('of faults', () => {
    const lines = faultsTable([
      { fault: 'kill -9 worker-0 of shop-1', own: 'its page', othersLost: 0, backMs: 312 },
      { fault: 'x'.repeat(60), own: 'y'.repeat(60), othersLost: 123, backMs: undefined },
    ]);
    expect(lines).toEqual([
      `FAULT${' '.repeat(33)}ITS OWN REQUEST GOT${' '.repeat(17)}OTHERS LOST  BACK AFTER`,
      `kill -9 worker-0 of shop-1${' '.repeat(12)}its page${' '.repeat(38)}0       0.3 s`,
      `${'x'.repeat(35)}…  ${'y'.repeat(33)}…          123           -`,
    ]);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  test('all of it, without colours where there is no terminal', () => {
    const load = {
      perSecond: 5,
      ok: 9,
      failed: 1,
      lastFailure: '503 queue-full',
      skipped: 2,
      p50Ms: 5,
      p99Ms: undefined,
    };
    const head = ['http://localhost:8080', 'shop', ''];
    const view = { head, rows: [], queue: 3, refused: 1, load, faults: [], areWorkersIdle: false };
    const fault = { fault: 'kill -9 worker-0 of shop-1', own: 'its page', othersLost: 0, backMs: 312 };
    expect(viewLines({ ...view, faults: Array(9).fill(fault) }, false)).toEqual([
      '',
      'http://localhost:8080 · shop',
      ...workersTable([]),
      'queue 3 · refused 1 · load 5/s: ok 9 failed 1 (last: 503 queue-full) p50 5.0 ms p99 - not sent 2',
      '',
      ...faultsTable(Array(7).fill(fault)),
    ]);
    expect(viewLines({ ...view, areWorkersIdle: true }, false).at(-1)).toMatch(/^.{1,90} Set concurrency: Auto$/);
    expect(viewLines({ ...view, load: undefined }, true).slice(3)).toEqual([
      'queue 3 · refused 1',
      expect.stringContaining('[b] browser [d] dashboard [k] kill a worker'),
    ]);
  });

  test('times', () => {
    expect([0.04, 9.96, 10, 9_999, 10_000].map((ms) => milliseconds(ms))).toEqual([
      '0.0 ms',
      '10.0 ms',
      '10 ms',
      '9999 ms',
      '10 s',
    ]);
    expect([40, 9_940, 72_400].map(seconds)).toEqual(['0.0 s', '9.9 s', '72 s']);
  });
});

describe('quantiles', () => {
  const page = (counts: number[]) =>
    new Exposition(
      counts
        .map(
          (count, index) => `d_bucket{worker="0",concurrency="1",le="${['0.01', '0.1', '1', '+Inf'][index]}"} ${count}`,
        )
        .join('\n'),
    );
  const buckets = (...counts: number[]) => bucketsOf(page(counts), 'd', { worker: '0' });

  test('of what was counted since the earlier look, spread evenly within a bucket', () => {
    expect(quantileMs(0.5, buckets(0, 10, 10, 10))).toBeCloseTo(55);
    expect(quantileMs(0.5, bucketsSince(buckets(100, 110, 110, 110), buckets(100, 100, 100, 100)))).toBeCloseTo(55);
    expect(quantileMs(0.99, buckets(0, 0, 0, 10))).toBeCloseTo(1000); // beyond the last bound nobody knows
  });

  test('nothing counted, or a process that has begun anew', () => {
    expect(quantileMs(0.5, bucketsSince(buckets(5, 5, 5, 5), buckets(5, 5, 5, 5)))).toBeUndefined();
    expect(quantileMs(0.5, buckets())).toBeUndefined();
    expect(quantileMs(0.5, bucketsSince(buckets(0, 10, 10, 10), buckets(100, 100, 100, 100)))).toBeCloseTo(55);
  });

  test('of values', () => {
    expect(quantileOf(0.5, [3, 1, 2])).toBe(2);
    expect(quantileOf(0.99, [1, 2])).toBe(2);
    expect(quantileOf(0.5, [])).toBeUndefined();
  });
});

describe('what a fault cost', () => {
  const failure = (what: string, beganMs = 0) => ({ what, beganMs, endedMs: 200 });
  const cost = (...failures: ReturnType<typeof failure>[]) => costOf(failures, { struckMs: 100, places: 1 });

  test('no failure: whoever was in it has its page', () => {
    expect(cost()).toEqual({ own: 'its page', othersLost: 0 });
  });

  test('a worker has so many of its own as it has places; all others are lost', () => {
    expect(cost(failure('502 worker-died'))).toEqual({ own: '502 worker-died', othersLost: 0 });
    expect(cost(failure('502 worker-died'), failure('502 worker-died'))).toEqual({
      own: '502 worker-died',
      othersLost: 1,
    });
    expect(cost(failure('503 queue-timeout'))).toEqual({ own: 'its page', othersLost: 1 });
  });

  test('connections that a proxy had; who came later is lost', () => {
    expect(cost(failure('ECONNRESET', 50), failure('ECONNRESET', 60))).toEqual({
      own: 'ECONNRESET (2 requests)',
      othersLost: 0,
    });
    expect(cost(failure('ECONNRESET', 150))).toEqual({ own: 'its page', othersLost: 1 });
  });
});

describe('arguments', () => {
  const file = fileURLToPath(import.meta.url);
  const folder = fileURLToPath(new URL('.', import.meta.url));

  test('defaults, and chaos brings a load', () => {
    expect(runOptions([file])).toMatchObject({ isFolder: false, pods: 1, port: 8080, load: 0, env: [], logs: true });
    expect(runOptions([folder, '--chaos', '--watch'])).toMatchObject({ isFolder: true, load: 10, watch: true });
    expect(runOptions([file, '--chaos', '--load', '3', '--env', 'A=b=c']).env).toEqual([{ name: 'A', value: 'b=c' }]);
  });

  test.each([
    [[], 'one file with a RenderService, or one folder, is needed; see corelane run --help'],
    [['/nowhere'], 'there is no file or folder /nowhere'],
    [[file, '--watch'], '--watch needs a folder: an image does not change; [r] reads the file again'],
    [[file, '--pods', '0'], '--pods must be a number from 1 to 20, not "0"'],
    [[file, '--port', 'x'], '--port must be a number from 1 to 65535, not "x"'],
    [[file, '--env', 'A'], '--env must be NAME=VALUE, not "A"'],
    [[file, '--env-file', '/nowhere'], '--env-file: there is no file /nowhere'],
    [[file, '--env-file', folder], `--env-file: ${folder} is a folder`],
    [[file, '--env-file', '/dev/zero'], '--env-file: /dev/zero has more than 4 MB'],
    [[file, '--engine', 'lxc'], '--engine must be docker or podman, not "lxc"'],
    [[file, '--load', '100000'], '--load must be a number from 0 to 1000, not "100000"'],
  ])('%j is refused', (args, message) => {
    expect(() => runOptions(args)).toThrow(message);
  });
});

describe('logs', () => {
  const log = (more: Partial<WorkerLog>): WorkerLog => ({
    ...{ pod: { name: 'shop-1' } as RunPod, worker: 0, lines: [], wasUp: false, ends: 0, isBroken: false },
    ...more,
  });

  test('what the supervisor says, in words', () => {
    const words = [
      { event: 'restart', reason: 'error', code: 1, signal: null, afterMs: 200 },
      { event: 'restart', reason: 'stalled', code: null, signal: 'SIGKILL', afterMs: 0 },
      {
        event: 'restart',
        reason: 'signal',
        signal: 'SIGKILL',
        killedBy: 'the memory limit of the container',
        afterMs: 0,
      },
      { event: 'stalled', in: 'price /app/p.js:3' },
      { event: 'held', pid: 1, by: 'a heap snapshot' },
      { event: 'up', watched: true },
      { event: 'up', watched: false, message: 'the server on PORT is not watched' },
      { event: 'flags', refused: [] },
    ].map(inWords);
    expect(words).toEqual([
      'the program has ended (exit code 1), starts again after 0.2 s',
      'the program has ended (stalled, killed by SIGKILL), starts again at once',
      'the program has ended (signal, killed by the memory limit of the container), starts again at once',
      'stuck in price /app/p.js:3',
      'stands still for a heap snapshot',
      'up',
      'up; the server on PORT is not watched',
      undefined,
    ]);
  });

  test('a start fails when all workers end again and again, or listen elsewhere; not when one is up', () => {
    expect(troubleOf([])).toBeUndefined();
    expect(troubleOf([log({ ends: 3 }), log({ ends: 1 })])).toBeUndefined();
    expect(troubleOf([log({ ends: 3 }), log({ wasUp: true })])).toBeUndefined();
    expect(troubleOf([log({ problem: 'nothing listens on PORT=9002, but a server listens on 3000' })])).toBe(
      'the workers do not come up: nothing listens on PORT=9002, but a server listens on 3000',
    );
    const lines = ['/app/a.js:1', '', 'Error: no database', '    at node:internal/main', 'Node.js v24.0.0'];
    expect(troubleOf([log({ ends: 3, lines })])).toBe(
      'the program ends again and again before it listens on PORT; the last that worker-0 of shop-1 said:\n' +
        '    /app/a.js:1\n    Error: no database',
    );
  });

  test('an image without Node.js is told as one only if its container has lived on while it was looked into', async () => {
    const began = performance.now() - 60_000;
    const at = (StartedAt: string, Running = true) => ({ Running, ExitCode: 0, StartedAt });
    const said = async (hasNode: boolean, ...states: ReturnType<typeof at>[]) => {
      const pod = {
        spec: { runtime: { instrument: true } },
        workers: ['id'],
        hasNode: async () => hasNode,
        state: async () => states.shift() ?? at('gone', false),
      } as unknown as RunPod;
      return (await whyNoRuntime(pod, began))?.slice(0, 24);
    };
    expect(await said(false, at('1'), at('1'))).toBe('the image has no Node.js');
    expect(await said(true, at('1'), at('1'))).toBeUndefined();
    // It ends again and again: the engine has started it anew.
    expect(await said(false, at('1'), at('2'))).toBeUndefined();
    expect(await said(false, at('1'), at('1', false))).toBeUndefined();
    expect(await said(false, at('1', false))).toBeUndefined();
  });

  test('an end of the container is an end of the program: nobody may supervise it', async () => {
    const restarts = ['1', '3', 'gone'];
    const engine = {
      spawn: () => {
        const child = Object.assign(new EventEmitter(), { stdout: Readable.from([]), stderr: Readable.from([]) });
        setImmediate(() => child.emit('close', 0));
        return child;
      },
      run: async () => (restarts[0] === 'gone' ? Promise.reject(new Error('gone')) : restarts.shift()),
    } as unknown as Engine;
    const logs = new Logs(engine, () => {});
    logs.follow({ name: 'shop-1', workers: ['id'] } as unknown as RunPod);
    const [followed] = logs.workers;
    await until('the container is gone', () => logs.workers.length === 0);
    expect(followed?.ends).toBe(3);
  });

  test('last words are the last ones, without what Node.js adds', () => {
    expect(lastWords(log({ lines: ['1', '2', '    at x (node:fs:1)', '3'] }), 2)).toEqual(['    2', '    3']);
  });

  test('a line cannot move the cursor or name the window; colours stay', () => {
    expect(harmless('\u001b[31mred\u001b[0m')).toBe('\u001b[31mred\u001b[0m');
    expect(harmless('a\u001b[2J\u001b[1;1Hb\u001b]0;title\u0007c\u0008\rd\u009b5n')).toBe('abcd5n');
    expect(harmless('\u001b')).toBe('');
  });
});

test('an owner is stale when its process of this machine has ended', () => {
  expect(isStale(`${hostname()}.${process.pid}-0a1b2c`)).toBe(false);
  expect(isStale(`${hostname()}.4194303-0a1b2c-xyz`)).toBe(true);
  expect(isStale('another.host.4194303-0a1b2c')).toBe(false);
  expect(isStale('')).toBe(false);
});

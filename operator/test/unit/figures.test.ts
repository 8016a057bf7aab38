/** Tables of the docs that are made from measurements and from the code. */
import { withBlock } from '../../gen/block.ts';
import { besidePeers, type Drain, type Faults, type Fleet, firstCommands, overLoad } from '../../gen/figures.ts';

const outcome = (failedUnstarted: number, p99: number) => ({ failedUnstarted, overlaps: 0, latency: { p99 } });
const faults: Faults = {
  results: [
    { system: 'corelane', scenario: 'kill', outcome: outcome(0, 90) },
    { system: 'nginx', scenario: 'kill', outcome: outcome(93_670, 90) },
    { system: 'corelane', scenario: 'runaway', outcome: outcome(0, 90), runawayMs: [2561.9, 2113.5] },
    { system: 'pm2', scenario: 'runaway', outcome: outcome(0, 90), runawayMs: [2000, null] },
  ],
  chain: [{ system: 'corelane', method: 'GET', addedMs: 0.2243 }],
};
const point = (system: string, load: number, p99: number) => ({
  system,
  load,
  workersPerPod: 4,
  latency: { p99 },
  bound: { p99: 473.3 },
});
const fleet: Fleet = {
  points: [
    { ...point('corelane', 0.8, 9999), workersPerPod: 1 },
    ...['corelane', 'cluster', 'queue-proxy'].flatMap((system) => [
      point(system, 0.8, 485.06),
      point(system, 0.5, 472),
    ]),
  ],
};

const phase = (name: string, lost = 0, failed = {}) => ({ name, lost, failed });
const drain: Drain = {
  stories: [
    { story: 'drain', requests: 60_788, phases: [phase('rolling update'), phase('all')] },
    {
      story: 'faults',
      requests: 44_939,
      phases: [
        phase('HAProxy killed'),
        phase('nginx killed', 2, { ECONNRESET: 18 }),
        phase('all', 2, { ECONNRESET: 18, 502: 1 }),
      ],
    },
  ],
};

test('a figure that was not measured is left empty; one that never came is named so', () => {
  const lines = besidePeers(faults, fleet, drain).split('\n');
  const row = (begin: string) => lines.find((line) => line.startsWith(`| ${begin}`));
  expect(row('requests lost before')).toMatch(/\| 0 \| {2}\| {2}\| 93,670 \| {2}\|$/);
  expect(row('s until a worker')).toMatch(/\| 2\.1 to 2\.6 \| {2}\| never \| {2}\| {2}\|$/);
  expect(row('p99 of a fleet')).toMatch(/a perfect queue: 473\) \| 485 \| 485 \| {2}\| {2}\| 485 \|$/);
  expect(row('what the proxies add')).toMatch(/\| 0\.22 \|/);
});

test('each story on kind has its own requests and losses: a loss in one is not hidden in the sum of both', () => {
  const lines = besidePeers(faults, fleet, drain).split('\n').slice(-2);
  expect(lines[0]).toMatch(/^- 60,788 requests during rollouts.*: 0 failed, 0 lost\.$/);
  expect(lines[1]).toMatch(/^- 44,939 requests while workers.*: 19 failed, 2 lost \(nginx killed: 2\)\.$/);
});

test('a story without sums is an error', () => {
  const stories = [{ story: 'drain', requests: 1, phases: [] }];
  expect(() => besidePeers(faults, fleet, { stories })).toThrow('the story "drain" has no phase "all"');
});

describe('how long the first commands take', () => {
  const of = (name: string, seconds: number, result: string) =>
    firstCommands({ machine: { cores: 2, load: 4.21 }, parts: [{ name, seconds, result }] });

  test.each([
    ['run', 56.4, 'page: rendered', '`make run` up to the first page, nothing cached | 56 s |'],
    ['demo_cold', 483.3, 'demo: ok=1000 failed=0 overlaps=0', 'compiled | 8 min |'],
    ['test_cold', 1655, '5000 passed, 0 failed', 'compiled | 28 min |'],
    ['demo_cold', 483.3, 'failed with exit code 1: demo: ok=990 failed=0 overlaps=0', 'compiled | failed after 8 min '],
    ['test_cold', 1655, 'failed with exit code 2', 'compiled | failed after 28 min in the last measurement |'],
    ['run', 600, 'page: none', 'cached | failed after 10 min in the last measurement |'],
  ])('%s after %d s: %s', (...[name, seconds, result, row]) => {
    expect(of(name, seconds, result)).toContain(row);
  });

  test('what was not measured is named so', () => {
    expect(of('run', 56, 'page: rendered')).toContain('`make demo` after `make down` | not measured |');
    expect(of('run', 56, 'page: rendered')).toContain('on 2 cores without an image registry, load average 4.2');
  });
});

test('loads in their order, pods of one worker left out', () => {
  expect(overLoad(fleet).split('\n').slice(2)).toEqual([
    '| 0.5 | 473 | 472 | 472 | 472 |',
    '| 0.8 | 473 | 485 | 485 | 485 |',
  ]);
});

test('a part of a page is replaced, and must have a place', () => {
  const page = 'a\n<!-- x: begin (made) -->\nold\n<!-- x: end -->\nb\n';
  expect(withBlock(page, 'x', 'new $1')).toBe('a\n<!-- x: begin (made) -->\nnew $1\n<!-- x: end -->\nb\n');
  expect(() => withBlock(page, 'y', 'new')).toThrow('no place');
});

/** Tables of the docs that are made from measurements and from the code. */
import { withBlock } from '../../gen/block.ts';
import { besidePeers, type Faults, type Fleet, overLoad } from '../../gen/figures.ts';

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

test('a figure that nobody has measured is left empty; one that never came is said so', () => {
  const lines = besidePeers(faults, fleet, { summary: 'drain: requests=105727 lost=3 overlaps=0' }).split('\n');
  const row = (begin: string) => lines.find((line) => line.startsWith(`| ${begin}`));
  expect(row('unbegun requests lost')).toMatch(/\| 0 \| {2}\| {2}\| 93,670 \| {2}\|$/);
  expect(row('s until a worker')).toMatch(/\| 2\.1 to 2\.6 \| {2}\| never \| {2}\| {2}\|$/);
  expect(row('p99 of a fleet')).toMatch(/a perfect queue: 473\) \| 485 \| 485 \| {2}\| {2}\| 485 \|$/);
  expect(row('what the proxies add')).toMatch(/\| 0\.22 \|/);
  expect(lines.at(-1)).toContain('105,727 requests');
  expect(lines.at(-1)).toContain('3 lost');
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

/** The parts of `make bench-edge` that compute. */

import { heldAgainstList } from '../../sidecar/test/http-cache-tests/required.ts';
import type { CacheTest } from '../../sidecar/test/http-cache-tests/suite.ts';
import { begun, failedOf, p99Of, passedOf, requestsOf, residentKib, seenBy, throughputOf } from '../edge/compute.ts';
import { SCENARIOS } from '../edge/index.ts';
import { type EdgeReport, failedIn, lastLine, markdown, picture } from '../edge/report.ts';
import type { Section } from '../edge/scenario.ts';
import { atOnce, inTurn, turn } from '../edge/turns.ts';
import { laterSpec, unknownFields } from '../edge/version.ts';
import type { Record as LoadRecord } from '../lib/load.ts';

const record = (extra: Partial<LoadRecord>): LoadRecord => ({
  ...{ group: 'client', id: 'a', at: 0, ms: 1, status: 200 },
  ...extra,
});

describe('what a browser has seen', () => {
  const seen = (extra: Partial<LoadRecord>) => {
    const { requests, ...kinds } = seenBy([record(extra)]);
    expect(requests).toBe(1);
    return Object.entries(kinds)
      .filter(([, count]) => count > 0)
      .map(([kind]) => kind);
  };
  const html = { 'content-type': 'text/html; charset=utf-8' };
  const refused = { 'x-corelane-error': 'queue-full' };

  test.each<[kind: string, extra: Partial<LoadRecord>]>([
    ['pages', { headers: html }],
    ['pages', {}],
    ['shells', { status: 503, headers: { ...html, ...refused } }],
    ['shells', { status: 200, headers: { ...html, ...refused } }],
    ['json', { status: 503, headers: { 'content-type': 'application/json', ...refused } }],
    ['json', { status: 200, headers: { 'content-type': 'application/problem+json' } }],
    ['errors', { status: 502, headers: html }],
    ['errors', { status: 503, headers: refused }],
    ['errors', { status: 200, headers: html, error: 'closed' }],
    ['nothing', { status: 0, error: 'timeout' }],
  ])('%s: %j', (kind, extra) => expect(seen(extra)).toEqual([kind]));
});

test('only what was answered with 200, to its end, is timed; all else of the group has failed', () => {
  const records = [
    ...Array.from({ length: 100 }, (_unused, n) => record({ ms: n + 1 })),
    record({ ms: 1_000, status: 503 }),
    record({ ms: 1_000, error: 'closed' }),
    record({ ms: 1_000, group: 'other' }),
  ];
  expect(p99Of(records, 'client')).toBe(99);
  expect(failedOf(records, 'client')).toBe(2);
  expect(p99Of([], 'client')).toBeNaN();
});

test('renders are those that were begun since, of the page that is asked for', () => {
  const note = (event: 'begin' | 'end', at: number, id: string) => ({ worker: 0, pid: 1, at, event, id });
  const notes = [note('begin', 5, 'a'), note('begin', 10, 'a'), note('end', 11, 'a'), note('begin', 12, 'b')];
  expect(begun(notes, 10)).toBe(2);
  expect(begun(notes, 10, 'a')).toBe(1);
});

test('half the render twice as often is the same load', () => {
  const work = [{ at: 100, service: 80, choice: 0 }];
  expect(requestsOf(work, 0.5)).toEqual([{ path: '/?id={id}&steps=b40.000', atMs: 50, target: 0 }]);
});

describe('what wrk says', () => {
  const text = (more = '') => `Running 4s test @ http://127.0.0.1:9000/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   124.23ms  195.53ms   1.95s    94.30%
  Latency Distribution
     50%   65.40ms
     99%    1.20s 
  1238 requests in 4.06s, 27.50MB read
${more}Requests/sec:    305.04
Transfer/sec:      6.78MB
`;

  test('rate, p99 in ms, failures', () => {
    expect(throughputOf(text())).toEqual({ perSecond: 305.04, p99Ms: 1_200, failed: 0 });
    expect(throughputOf(text().replace('1.20s ', '850.00us')).p99Ms).toBeCloseTo(0.85);
    const broken = '  Socket errors: connect 1, read 2, write 0, timeout 9\n  Non-2xx or 3xx responses: 100\n';
    expect(throughputOf(text(broken)).failed).toBe(112);
  });

  test('no figures are an error', () => expect(() => throughputOf('unable to connect')).toThrow(/no figures/));
});

test('tests of a kind', () => {
  const tests = [
    { id: 'a', kind: 'required', passed: true },
    { id: 'b', kind: 'required', passed: false },
    { id: 'c', kind: 'optimal', passed: true },
  ];
  expect(passedOf(tests, 'required')).toEqual({ passed: 1, of: 2 });
});

test('required tests: what fails and is not in the list, what is in it and passes, and those that did not run', () => {
  const one = (id: string, passed: boolean, kind: CacheTest['kind'] = 'required') => ({ id, suite: 's', kind, passed });
  // None of the list: all of it passes.
  const { failing: none, unexpected: listed } = heldAgainstList([]);
  expect([none, listed.length, listed.at(-1)]).toEqual([[], 34, '0 of 165 tests ran']);
  const ids = listed.slice(0, -1);
  const others = Array.from({ length: 132 }, (_unused, index) => one(`other-${index}`, true));
  const asListed = [...ids.map((id) => one(id, false)), ...others, one('optimal', false, 'optimal')];
  expect(heldAgainstList(asListed)).toEqual({ failing: ids.toSorted(), unexpected: [] });
  const [first, ...rest] = asListed;
  const changed = [
    { ...(first as CacheTest), passed: true },
    one('other-0', false),
    ...rest.filter(({ id }) => id !== 'other-0'),
  ];
  expect(heldAgainstList(changed).unexpected).toEqual(['other-0', first?.id]);
});

test('memory of all processes', () => {
  const status = (kib: number) => `Name:\tnginx\nVmHWM:\t  9999 kB\nVmRSS:\t   ${kib} kB\nThreads:\t1\n`;
  expect(residentKib(status(100) + status(23))).toBe(123);
  expect(residentKib('')).toBe(0);
});

describe('fields that this version lacks', () => {
  test('their paths', () => {
    expect(unknownFields({ workersPerPod: 1 })).toEqual([]);
    expect(unknownFields(laterSpec({ nonsense: {}, queue: { maxLength: 1, nonsense: 2 } })).sort()).toEqual([
      'nonsense',
      'queue.nonsense',
    ]);
  });

  test('a wrong value is another mistake', () => {
    expect(() => unknownFields({ queue: { maxLength: -1 } })).toThrow(/queue\.maxLength/);
  });
});

test('all scenarios are planned for six minutes, and each draws a column that it has', () => {
  expect(SCENARIOS.reduce((sum, { seconds }) => sum + seconds, 0)).toBeLessThanOrEqual(360);
  expect(new Set(SCENARIOS.map(({ key }) => key)).size).toBe(SCENARIOS.length);
  for (const { columns, drawn } of SCENARIOS) expect(columns.map(({ key }) => key)).toContain(drawn);
});

describe('systems side by side', () => {
  const log: string[] = [];
  const system = (name: string) => ({ name, stop: async () => void log.push(`stop ${name}`) });
  const start = async (name: string) => {
    log.push(`start ${name}`);
    await Promise.resolve();
    return system(name);
  };
  const work = async ({ name }: { name: string }) => {
    log.push(`begin ${name}`);
    await Promise.resolve();
    log.push(`end ${name}`);
    if (name === 'bad') throw new Error('a bad one');
    return name;
  };
  beforeEach(() => void log.splice(0));

  test('all are started, then each has its turn, then all are stopped', async () => {
    expect(await inTurn(turn(start('a'), work), turn(start('b'), work))).toEqual(['a', 'b']);
    expect(log.join(', ')).toBe('start a, start b, begin a, end a, begin b, end b, stop a, stop b');
  });

  test('or all at once', async () => {
    expect(await atOnce(turn(start('a'), work), turn(start('b'), work))).toEqual(['a', 'b']);
    expect(log.join(', ')).toBe('start a, start b, begin a, begin b, end a, end b, stop a, stop b');
  });

  test.each([
    ['inTurn', inTurn],
    ['atOnce', atOnce],
  ])('%s: whatever breaks, all that were started are stopped', async (_name, side) => {
    await expect(side(turn(start('bad'), work), turn(start('b'), work))).rejects.toThrow('a bad one');
    expect(log.filter((line) => line.startsWith('stop'))).toEqual(['stop bad', 'stop b']);
    const broken: Promise<ReturnType<typeof system>> = Promise.reject(new Error('no such image'));
    await expect(side(turn(broken, work), turn(start('c'), work))).rejects.toThrow('no such image');
    expect(log.at(-1)).toBe('stop c');
  });
});

describe('the report', () => {
  const columns = [
    { key: 'rps', head: 'requests/s' },
    { key: 'ratio', head: 'ratio', digits: 2 },
  ];
  const section = (key: string, more: Partial<Section>): Section => ({
    ...{ key, title: key, text: 'What is done.', columns, drawn: 'rps', rows: [], figures: {}, failed: 0 },
    ...more,
  });
  const report = (...sections: Section[]): EdgeReport => ({
    machine: { cpus: 2, kernel: '6.1', node: 'v24', loadBefore: 0 },
    seconds: 1,
    sections,
  });

  test('the last line has what was measured, and a dash for the rest', () => {
    const sections = [
      section('slots', { figures: { slots_per_page: 1 } }),
      section('first', { figures: { first_byte_ms_added: 0.84 }, failed: 2 }),
      section('tests', { figures: { cache_tests_required: 129 }, failed: 1 }),
    ];
    expect(lastLine(report(...sections))).toBe(
      'edge: slots_per_page=1 first_byte_ms_added=0.8 cached_x=- herd_renders=- fleet_herd_renders=- cache_tests_required=129 failed=3',
    );
    expect(failedIn(report(...sections))).toBe(3);
    expect(failedIn(report(...sections, section('no count', { failed: Number.NaN })))).toBe(4);
  });

  test('tables, what is missing, what broke; the picture has what there are figures of', () => {
    const rows = [
      { system: 'Corelane', values: { rps: 1234.5, ratio: 1.8 } },
      { system: 'a peer', values: { rps: null, ratio: Number.NaN } },
    ];
    const sections = [
      section('measured', { rows }),
      section('later', { missing: ['cache.shared'] }),
      section('ill', { broken: 'no such image\nat line 1', failed: 1 }),
    ];
    const text = markdown(report(...sections));
    expect(text).toMatch(/\| Corelane +\| +123[45] \| +1\.80 \|/);
    expect(text).toMatch(/\| a peer +\| +- \| +- \|/);
    expect(text).toContain('`cache.shared` is not in this version: measured without.');
    expect(text).toContain('Broken: no such image\n');
    const svg = picture(report(...sections));
    expect(svg).toContain('Corelane');
    expect(svg).not.toContain('a peer');
    expect(svg).not.toContain('NaN');
  });
});

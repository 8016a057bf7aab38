/** The reader of `corelane explain`: it must name a fault from the text alone, and none where the text names none. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { requestCosts } from '../observe/cost.ts';
import { FAULTS } from '../observe/faults.ts';
import { alertsOf, panelsOf } from '../observe/of-tests.ts';
import { nameOf } from '../observe/reader.ts';
import { isRight, markdown, picture } from '../observe/report.ts';
import type { Trial } from '../observe/trial.ts';

const GOLDEN = fileURLToPath(new URL('../../operator/test/unit/live/golden/', import.meta.url));
const said = (file: string) => readFileSync(`${GOLDEN}${file}.txt`, 'utf8').split('\n');

test.each([
  ['all-is-well', undefined],
  ['stuck-render-now', 'endless loop'],
  ['stuck-renders-of-late', 'endless loop'],
  ['crash-loop', 'crash loop'],
  ['dead-dependency', 'dependency that is dead'],
  ['slow-renders-that-wait', 'dependency that is slow'],
  ['slow-renders-that-compute', 'pages that have become heavy'],
  ['throttled', 'CPU throttled'],
  ['one-slow-worker', 'one slow worker'],
  ['isolated-from-peers', 'a pod cut off from the others'],
  ['saturated', 'queue full from a burst'],
  ['saturated-and-refusing', 'queue full from a burst'],
  ['the-program-fails', 'the program answers 500'],
  ['refused-configuration', '?'],
])('%s is read as %s', (file, name) => {
  expect(nameOf(said(file))).toBe(name);
});

test('each fault has words in a golden file that name it', () => {
  const named = readdirSync(GOLDEN).map((file) => nameOf(said(file.replace('.txt', ''))));
  expect(Object.keys(FAULTS).filter((name) => !named.includes(name))).toEqual([]);
  expect(Object.keys(FAULTS)).toHaveLength(10);
});

const naming = (named: string | null) => ({ named, seconds: 6.2, lines: ['Now: x'] });
const trial = (changes: Partial<Trial>): Trial => ({
  ...{ injected: 'crash loop', calm: true, explain: naming('crash loop'), dashboard: naming('crash loop') },
  ...{ faultAtS: 10, series: { 'p99, s': [[1, 0.02]] } },
  ...changes,
});

test('another name by either, none, or words before there is a fault are wrong', () => {
  const trials = [
    trial({}),
    trial({ explain: naming('endless loop') }),
    trial({ dashboard: naming('endless loop') }),
    trial({ explain: naming(null) }),
    trial({ calm: false }),
  ];
  expect(trials.map(isRight)).toEqual([true, false, false, false, false]);
  const text = markdown({ seed: 7, trials, line: 'observe: x', machine: '2 CPUs' });
  expect(text).toMatch(/^1 of 5 faults were named rightly .* seed 7;/m);
  expect(text).toMatch(/^\| crash loop +\| +not within a minute \| +6\.2 \| +crash loop \| +6\.2 \| +no \|$/m);
  expect(text).toContain('](observe-crash-loop.png)');
  expect(picture(trials)).toContain('not named');
});

test('what is written is compared with nothing in the same round: a round beside other work says nothing', () => {
  const rounds = [
    [100, 103],
    [200, 206],
    [100, 140],
  ];
  expect(requestCosts(['nothing', 'all'], rounds)).toEqual([
    { variant: 'nothing', us: 400 / 3, moreUs: 0, ratio: 1 },
    { variant: 'all', us: 449 / 3, moreUs: 6, ratio: 1.03 },
  ]);
});

test('alerts and panels are those of the last runs, and none where there was none', () => {
  expect(panelsOf('dashboards: panels=61 variables=5 empty=0 failed=0\n')).toBe('panels=61 empty=0');
  expect(panelsOf(undefined)).toBe('panels=- empty=-');
  expect(alertsOf(undefined)).toBe('alerts_ok=- false=-');
  const result = (title: string, status: string) => ({ title, status });
  const assertionResults = [
    result('CorelaneSaturated', 'passed'),
    result('CorelanePodsIsolated', 'failed'),
    result('for an hour all is well', 'passed'),
  ];
  expect(alertsOf(JSON.stringify({ testResults: [{ assertionResults }] }))).toBe('alerts_ok=1 false=1');
});

/**
 * Rules of alerts, broken on purpose: promtool must notice each.
 *
 * A load test: it tests the tests, and each run of promtool takes CPU.
 */
import { rulesFile } from '../../operator/gen/alerts/rules.ts';
import { BROKEN } from './broken.ts';
import { CASES } from './cases.ts';
import { promtoolResults } from './runs.ts';

/** What promtool says of the case that must notice, by the name of what is broken. */
let results: Record<string, string>;

beforeAll(async () => {
  const runs = Object.entries(BROKEN).map(([name, { from, to, noticed }]) => ({
    name: `broken: ${name}`,
    one: CASES[noticed] as (typeof CASES)[string],
    rules: rulesFile().replaceAll(from, to),
  }));
  results = await promtoolResults(runs);
});

test.each(Object.entries(BROKEN))('broken: %s, which a case notices', (name, { from, noticed }) => {
  expect(rulesFile()).toMatch(new RegExp(from.source));
  expect(Object.keys(CASES)).toContain(noticed);
  expect(results[`broken: ${name}`]).toContain('FAILED');
  expect(results[`broken: ${name}`]).not.toMatch(/parse error|error loading/);
});

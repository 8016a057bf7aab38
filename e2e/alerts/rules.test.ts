/** The rules as promtool sees them: each alert fires for its fault, with its words, and for no other. */
import { ALL_ALERTS, ruleGroups, rulesFile } from '../../operator/gen/alerts/rules.ts';
import { CASES } from './cases.ts';
import { FAULTS } from './faults.ts';
import { promtoolResults } from './runs.ts';

/** What promtool says of each case, by its name. */
let results: Record<string, string>;

beforeAll(async () => {
  results = await promtoolResults(Object.entries(CASES).map(([name, one]) => ({ name, one, rules: rulesFile() })));
});

test('promtool check rules: nothing to complain of', () => {
  const count = ruleGroups().reduce((sum, { rules }) => sum + rules.length, 0);
  expect(results.check).toContain(`SUCCESS: ${count} rules found`);
});

test('every alert has a fault', () => {
  expect(Object.keys(FAULTS).sort()).toEqual([...new Set(ALL_ALERTS.map(({ name }) => name as string))].sort());
});

test.each(Object.keys(CASES))('%s', (name) => {
  expect(results[name]).toContain('SUCCESS');
});

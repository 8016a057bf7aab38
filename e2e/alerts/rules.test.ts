/** The rules as promtool sees them: each alert fires for its fault, with its words, and for no other. */
import { ALL_ALERTS, ruleGroups, rulesFile } from '../../operator/gen/alerts/rules.ts';
import { BROKEN } from './broken.ts';
import { CASES, promtoolTest } from './cases.ts';
import { FAULTS } from './faults.ts';
import { inImage, prometheusImage } from './promtool.ts';

/** What promtool says of each file of tests, by its name. */
let results: Record<string, string>;

/** Cases with the rules as they are, and broken ones with the case that must notice. */
const runs = [
  ...Object.entries(CASES).map(([name, one]) => ({ name, one, rules: rulesFile() })),
  ...Object.entries(BROKEN).map(([name, { from, to, noticed }]) => ({
    name: `broken: ${name}`,
    one: CASES[noticed] as (typeof CASES)[string],
    rules: rulesFile().replaceAll(from, to),
  })),
];

beforeAll(async () => {
  const files: Record<string, string> = { 'rules.yaml': rulesFile() };
  for (const [index, { one, rules }] of runs.entries()) {
    files[`${index}-rules.yaml`] = rules;
    files[`${index}.yaml`] = promtoolTest(one, `${index}-rules.yaml`);
  }
  const script = `
    promtool check rules --lint=all --lint-fatal rules.yaml || exit 1
    for ((i = 0; i < ${runs.length}; i++)); do
      echo "=== $i"; promtool test rules $i.yaml 2>&1 || true
    done`;
  const output = await inImage(await prometheusImage(), files, script);
  const parts = output.split(/^=== \d+\n/m);
  results = Object.fromEntries(
    ['check', ...runs.map(({ name }) => name)].map((name, index) => [name, parts[index] ?? '']),
  );
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

test.each(Object.entries(BROKEN))('broken: %s, which a case notices', (name, { from, noticed }) => {
  expect(rulesFile()).toMatch(new RegExp(from.source));
  expect(Object.keys(CASES)).toContain(noticed);
  expect(results[`broken: ${name}`]).toContain('FAILED');
  expect(results[`broken: ${name}`]).not.toMatch(/parse error|error loading/);
});

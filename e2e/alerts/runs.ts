/** Runs of `promtool test rules`, for the tests of the rules and of what notices a broken one. */
import { rulesFile } from '../../operator/gen/alerts/rules.ts';
import { type CASES, promtoolTest } from './cases.ts';
import { inImage, prometheusImage } from './promtool.ts';

interface Run {
  name: string;
  one: (typeof CASES)[string];
  rules: string;
}

/** What promtool says of each run, by its name, and of the rules as they are, by the name `check`. */
export async function promtoolResults(runs: Run[]): Promise<Record<string, string>> {
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
  return Object.fromEntries(
    ['check', ...runs.map(({ name }) => name)].map((name, index) => [name, parts[index] ?? '']),
  );
}

/** Reads the results of the last `make test-dashboards` and `make test-alerts` in this clone. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Results {
  testResults: { assertionResults: { title: string; status: string }[] }[];
}

/** @returns parts of the last line, with `-` for what was not run */
export function ofTests(state: string): { panels: string; alerts: string } {
  return {
    panels: panelsOf(read(join(state, 'dashboards/line'))),
    alerts: alertsOf(read(join(state, 'results/alerts.json'))),
  };
}

function read(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** @param line `dashboards: panels=N variables=N empty=N failed=N` */
export function panelsOf(line: string | undefined): string {
  const part = (name: string) => new RegExp(`\\b${name}=\\d+`).exec(line ?? '')?.[0] ?? `${name}=-`;
  return `${part('panels')} ${part('empty')}`;
}

/**
 * A fault whose test bears the name of its alert has raised that one and no other. Where a test has failed an alert was
 * silent, or one was raised in vain; the hour in which all is well is among them.
 * @param text Jest's results
 */
export function alertsOf(text: string | undefined): string {
  if (text === undefined) return 'alerts_ok=- false=-';
  const all = (JSON.parse(text) as Results).testResults.flatMap(({ assertionResults }) => assertionResults);
  const right = all.filter(({ title, status }) => status === 'passed' && title.startsWith('Corelane'));
  return `alerts_ok=${right.length} false=${all.filter(({ status }) => status === 'failed').length}`;
}

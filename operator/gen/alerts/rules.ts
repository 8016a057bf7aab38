/** All rules of Prometheus that Corelane ships, as Prometheus reads them. */
import { stringify } from 'yaml';
import { BUDGETS } from './budgets.ts';
import { OF_OPERATOR } from './operator.ts';
import { RECORDINGS } from './recordings.ts';
import type { Alert, Group } from './rule.ts';
import { OF_FLEET, OF_SPEC, VISITORS } from './services.ts';

const ALERTS: Group<Alert>[] = [
  { name: 'corelane.objectives', rules: BUDGETS },
  { name: 'corelane.visitors', rules: VISITORS },
  { name: 'corelane.workers', rules: OF_FLEET },
  { name: 'corelane.applied', rules: OF_SPEC },
  { name: 'corelane.operator', rules: OF_OPERATOR },
];

/** Every alert; one name has several rules where it has several windows. */
export const ALL_ALERTS: Alert[] = ALERTS.flatMap(({ rules }) => rules);

/** Where the pages of the alerts are, `%s` for the name of an alert; the chart has it as prometheusRule.runbookUrl. */
export const RUNBOOK_URL = 'https://github.com/corelane/corelane/blob/main/docs/runbooks/%s.md';

function ruleOf({ name, expr, for: pending, severity, labels, summary, description }: Alert) {
  return {
    alert: name,
    expr,
    ...(pending ? { for: pending } : {}),
    labels: { severity, ...labels },
    annotations: { summary, description, runbook_url: RUNBOOK_URL.replace('%s', name) },
  };
}

/** What a rules file of Prometheus has. */
export function ruleGroups() {
  return [...RECORDINGS, ...ALERTS.map(({ name, rules }) => ({ name, rules: rules.map(ruleOf) }))];
}

const HEAD = `\
# Recording rules and alerts of Corelane, as Prometheus reads them (rule_files); the chart makes a PrometheusRule of
# them. docs/alerts.md explains them. Made by "make generate" from operator/gen/alerts; do not edit.
`;

/** The rules file. */
export function rulesFile(): string {
  return HEAD + stringify({ groups: ruleGroups() }, { aliasDuplicateObjects: false, lineWidth: 0 });
}

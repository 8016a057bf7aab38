/** What several places say of the alerts, each in its own language. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { ALL_ALERTS, RUNBOOK_URL, ruleGroups } from '../../gen/alerts/rules.ts';
import { HAPROXY_SERIES, POD_SERIES } from '../../gen/alerts/scraped.ts';
import { OPERATOR_METRICS } from '../../gen/metrics/operator.ts';
import { POD_METRICS } from '../../gen/metrics/pod.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const RUNBOOKS = 'docs/runbooks';
const NAMES = [...new Set(ALL_ALERTS.map(({ name }) => name as string))].sort();

/** Labels of targets: the monitors of the chart, and the configuration in docs/metrics.md, give them. */
const OF_TARGETS = ['namespace', 'renderservice', 'revision', 'pod', 'job'];
/** What a description asks for where it is there. */
const ONLY_WITH_DETAIL = ['corelane_worker_last_stall_timestamp_seconds'];

/** Labels by series: of metrics as they are scraped, and of what is recorded. */
function knownSeries(): Map<string, readonly string[]> {
  const known = new Map<string, readonly string[]>([['up', []]]);
  for (const { name, type, labels, detail } of [...POD_METRICS, ...OPERATOR_METRICS]) {
    if (detail && !ONLY_WITH_DETAIL.includes(name)) continue;
    if (type !== 'histogram') known.set(name, labels);
    else for (const part of ['count', 'sum', 'bucket']) known.set(`${name}_${part}`, [...labels, 'le']);
  }
  return known;
}

/** Series that a text names, with the labels in their braces. */
function seriesIn(text: string): { name: string; labels: string[] }[] {
  const found = text.matchAll(/\b((?:(?:renderservice|revision):|corelane_)[a-z0-9_:]+|up(?=\{))(?:\{([^}]*)\})?/g);
  return [...found].map(([, name, braces = '']) => ({
    name: name as string,
    labels: [...braces.replaceAll('\\"', '"').matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label]) => label as string),
  }));
}

test('every series that a rule reads is there, with the labels that it is chosen by', () => {
  const known = knownSeries();
  const wrong = ({ name, labels }: { name: string; labels: string[] }) => {
    const has = known.get(name);
    if (!has) return [`${name} is not there, or only with detail`];
    return labels.filter((label) => ![...has, ...OF_TARGETS].includes(label)).map((label) => `${name}{${label}}`);
  };
  const reads = ruleGroups().flatMap(({ rules }) =>
    rules.map((rule) => {
      const found = seriesIn('alert' in rule ? `${rule.expr} ${rule.annotations.description}` : rule.expr);
      if ('record' in rule) known.set(rule.record, ['objective']);
      return found;
    }),
  );
  expect(reads.filter((all) => all.length === 0)).toEqual([]);
  expect(reads.flat().flatMap(wrong)).toEqual([]);
  expect(new Set(reads.flat().map(({ name }) => name)).size).toBeGreaterThan(25);
});

test("of a pod's page its own series are taken, and none that the operator has or that is recorded", () => {
  const isTaken = (name: string) => new RegExp(`^(?:${POD_SERIES})$`).test(name);
  const ofPods = POD_METRICS.flatMap(({ name, type }) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => name + part) : [name],
  );
  expect(ofPods.filter((name) => !isTaken(name))).toEqual([]);
  const recorded = ruleGroups().flatMap(({ rules }) =>
    rules.flatMap((rule) => ('record' in rule ? [rule.record] : [])),
  );
  const others = [...OPERATOR_METRICS.map(({ name }) => name), ...recorded, 'up', 'ALERTS', 'haproxy_process_idle'];
  expect(others.filter(isTaken)).toEqual([]);
  const places = ['charts/corelane/templates/_helpers.tpl', 'docs/metrics.md'];
  expect(places.filter((place) => !read(place).includes(`regex: "${POD_SERIES}", action: keep`))).toEqual([]);
  expect(read('charts/corelane/templates/monitors.yaml')).toContain(`regex: "${HAPROXY_SERIES}", action: keep`);
});

test('an alert has one line for a pager, says more than that, and wakes somebody only for what visitors notice', () => {
  for (const { name, severity, summary, description } of ALL_ALERTS) {
    const line = summary.replaceAll(/\{\{.*?\}\}/g, 'storefront');
    expect([name, line.length < 100 && !summary.includes('\n') && !summary.endsWith('.')]).toEqual([name, true]);
    expect([name, description.endsWith('.')]).toEqual([name, true]);
    expect(['critical', 'warning']).toContain(severity);
  }
  const wakes = ALL_ALERTS.filter(({ severity }) => severity === 'critical').map(({ name }) => name);
  expect(new Set(wakes)).toEqual(
    new Set([
      ...['CorelaneAvailabilityBudgetBurn', 'CorelaneLatencyBudgetBurn', 'CorelaneNoWorkerUp'],
      ...['CorelaneRequestsFail', 'CorelaneOperatorNoLeader'],
    ]),
  );
});

test('every alert has a runbook, and every runbook an alert', () => {
  const pages = readdirSync(join(root, RUNBOOKS)).filter((file) => file !== 'README.md');
  expect(pages.sort()).toEqual(NAMES.map((name) => `${name}.md`));
});

test.each(NAMES)('the runbook of %s: its link, its parts, its commands', (name) => {
  const rules = ruleGroups().flatMap((group) => group.rules.filter((rule) => 'alert' in rule && rule.alert === name));
  for (const rule of rules)
    expect(rule).toMatchObject({ annotations: { runbook_url: RUNBOOK_URL.replace('%s', name) } });
  const [, path = ''] = /\/blob\/main\/(.*)$/.exec(RUNBOOK_URL.replace('%s', name)) ?? [];
  expect([path, existsSync(join(root, path))]).toEqual([path, true]);
  const page = read(`${RUNBOOKS}/${name}.md`);
  expect(page.split('\n')[0]).toBe(`# ${name}`);
  const parts = ['Meaning', 'Impact', 'Look', 'Causes', 'Change', 'Wake somebody'];
  expect([...page.matchAll(/^## (.*)$/gm)].map(([, part]) => part)).toEqual(parts);
  const [, commands = ''] = /^## Look\n\n```console\n(.*?)```/ms.exec(page) ?? [];
  expect(commands.match(/^\$ /gm)).toHaveLength(3);
  // Severity and time, as the rules have them.
  for (const { severity, for: pending } of ALL_ALERTS.filter((alert) => alert.name === name)) {
    expect(page).toContain(severity);
    if (pending) expect(page).toContain(pending);
  }
});

test('queries in the runbooks name metrics that are there', () => {
  const known = knownSeries();
  for (const { name, labels } of POD_METRICS) known.set(name, labels);
  for (const { rules } of ruleGroups()) for (const rule of rules) if ('record' in rule) known.set(rule.record, []);
  const pages = [...NAMES.map((name) => `${RUNBOOKS}/${name}.md`), `${RUNBOOKS}/README.md`, 'docs/alerts.md'];
  const wrong = pages.flatMap((page) =>
    seriesIn(read(page))
      .filter(({ name }) => !known.has(name))
      .map(({ name }) => `${page}: ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('the chart knows the alerts by name, and where their pages are', () => {
  const schema = JSON.parse(read('charts/corelane/values.schema.json')) as {
    definitions: { alertName: { enum: string[] } };
  };
  expect(schema.definitions.alertName.enum).toEqual(NAMES);
  const values = parse(read('charts/corelane/values.yaml')) as { prometheusRule: { runbookUrl: string } };
  expect(values.prometheusRule.runbookUrl).toBe(RUNBOOK_URL);
});

test('the list in docs/alerts.md has every alert', () => {
  const listed = [...read('docs/alerts.md').matchAll(/^\| \[(Corelane\w+)\]/gm)].map(([, name]) => name as string);
  expect(listed.toSorted()).toEqual(NAMES);
});

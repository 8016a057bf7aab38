/** Dashboards: what Grafana must be able to read, and that their queries name what there is. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { ruleGroups } from '../../gen/alerts/rules.ts';
import { DASHBOARDS, dashboardFiles } from '../../gen/dashboards/dashboards.ts';
import { grafanaDashboard } from '../../gen/dashboards/grafana.ts';
import { OPERATOR_METRICS } from '../../gen/metrics/operator.ts';
import { POD_METRICS } from '../../gen/metrics/pod.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: Place;
  datasource?: { type: string; uid: string };
  targets?: { refId: string; expr: string; legendFormat: string }[];
  transformations?: { id: string; options: { renameByName?: Record<string, string> } }[];
}

const boards = DASHBOARDS.map((board) => JSON.parse(JSON.stringify(grafanaDashboard(board)))) as {
  uid: string;
  title: string;
  schemaVersion: number;
  tags: string[];
  templating: { list: { name: string; type: string; definition?: string }[] };
  annotations: { list: { expr: string }[] };
  panels: Panel[];
}[];
const named = boards.map((board) => [board.uid, board] as const);

/** Of the node and of the process: not Corelane's, so not in its tables. */
const OF_OTHERS = [
  ...['container_cpu_cfs_throttled_periods_total', 'container_cpu_cfs_periods_total'],
  ...['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'],
  ...['ALERTS', 'up'],
];
/** That targets have, or other exporters. */
const OF_TARGETS = [
  'namespace',
  'renderservice',
  'revision',
  'pod',
  'job',
  'container',
  'alertname',
  'alertstate',
  'severity',
];

/** Labels by series. */
function knownSeries(): Map<string, readonly string[]> {
  const known = new Map<string, readonly string[]>(OF_OTHERS.map((name) => [name, []]));
  for (const { name, type, labels } of [...POD_METRICS, ...OPERATOR_METRICS]) {
    if (type !== 'histogram') known.set(name, labels);
    else for (const part of ['count', 'sum', 'bucket']) known.set(`${name}_${part}`, [...labels, 'le']);
  }
  for (const { rules } of ruleGroups())
    for (const rule of rules) if ('record' in rule) known.set(rule.record, ['objective']);
  return known;
}

/** Series of a query with the labels that they are chosen by: every name before a brace, and those of Corelane. */
function seriesIn(text: string): { name: string; labels: string[] }[] {
  const found = text.matchAll(/([a-zA-Z_:][\w:]*)\{([^}]*)\}|\b((?:corelane_|renderservice:|revision:)[\w:]+)/g);
  return [...found].map(([, name, braces = '', bare]) => ({
    name: (name ?? bare) as string,
    labels: [...braces.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label as string),
  }));
}

function queriesOf({ panels, annotations, templating }: (typeof boards)[number]): string[] {
  return [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...annotations.list.map(({ expr }) => expr),
    ...templating.list.flatMap(({ definition = [] }) => definition),
  ];
}

test.each(named)('%s: every query names series that there are, and labels that these have', (_uid, board) => {
  const known = knownSeries();
  const wrong = queriesOf(board).flatMap((query) => {
    const found = seriesIn(query);
    if (found.length === 0) return [`no series in ${query}`];
    return found.flatMap(({ name, labels }) => {
      const has = known.get(name);
      if (!has) return [`${name} is not there`];
      return labels.filter((label) => ![...has, ...OF_TARGETS].includes(label)).map((label) => `${name}{${label}}`);
    });
  });
  expect(queriesOf(board).length).toBeGreaterThan(15);
  expect(wrong).toEqual([]);
});

test.each(named)('%s: panels have numbers of their own, places that do not overlap, and words', (_uid, { panels }) => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const overlaps = (a: Place, b: Place) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
  for (const [index, { title, gridPos, id, type, description, targets = [], datasource }] of panels.entries()) {
    expect(id).toBeGreaterThan(0);
    expect([title, gridPos.x >= 0 && gridPos.x + gridPos.w <= 24 && gridPos.h > 0]).toEqual([title, true]);
    const others = panels.slice(index + 1).filter((other) => overlaps(gridPos, other.gridPos));
    expect([title, others.map((other) => other.title)]).toEqual([title, []]);
    if (type === 'row' || type === 'text') continue;
    expect([title, description?.endsWith('.')]).toEqual([title, true]);
    expect(datasource).toEqual({ type: 'prometheus', uid: '$datasource' });
    expect(targets.length).toBeGreaterThan(0);
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    for (const { refId, legendFormat } of targets) {
      expect(refId).toMatch(/^[A-Z]$/);
      expect(legendFormat).not.toBe('');
    }
  }
});

test.each(named)('%s: what Grafana knows it by, and what it is chosen with', (uid, board) => {
  expect(board).toMatchObject({ schemaVersion: 39, tags: ['corelane'] });
  expect(uid).toMatch(/^corelane-[a-z]{1,30}$/);
  const [first, ...others] = board.templating.list;
  expect(first).toMatchObject({ name: 'datasource', type: 'datasource' });
  for (const { definition } of others) expect(definition).toMatch(/^label_values\(corelane_\w+(\{.*\})?, \w+\)$/);
  const names = new Set(board.templating.list.map(({ name }) => name));
  const used = queriesOf(board).flatMap((query) => [...query.matchAll(/\$(\w+)/g)].map(([, name]) => name as string));
  expect(used.filter((name) => !names.has(name) && name !== '__rate_interval')).toEqual([]);
  expect([...names].filter((name) => name !== 'datasource' && !used.includes(name))).toEqual([]);
});

test.each(named)('%s: a table names the column of each query', (_uid, { panels }) => {
  for (const { type, targets = [], transformations = [] } of panels) {
    if (type !== 'table') continue;
    const names = transformations.flatMap(({ options }) => Object.entries(options.renameByName ?? {}));
    const columns = targets.map(({ refId }) => (targets.length === 1 ? 'Value' : `Value #${refId}`));
    expect(names).toEqual(targets.map(({ legendFormat }, index) => [columns[index], legendFormat]));
  }
});

test('links between dashboards lead to some that there are', () => {
  const text = Object.values(dashboardFiles()).join();
  const uids = [...text.matchAll(/\/d\/([\w-]+)/g)].map(([, uid]) => uid as string);
  expect(uids.length).toBeGreaterThan(1);
  for (const uid of uids) expect(boards.map((board) => board.uid)).toContain(uid);
});

test("the chart's files are as the code makes them, and off unless somebody wants them", () => {
  for (const [file, text] of Object.entries(dashboardFiles())) expect(read(file)).toBe(text);
  const { grafanaDashboards } = parse(read('charts/corelane/values.yaml'));
  expect(grafanaDashboards).toMatchObject({ enabled: false, labels: { grafana_dashboard: '1' } });
});

test('docs/dashboards.md tells of every row of "why is p99 up", by its title', () => {
  const page = read('docs/dashboards.md');
  const rows = boards[0]?.panels.filter(({ type }) => type === 'row') ?? [];
  expect(rows.length).toBeGreaterThan(5);
  for (const { title } of rows) expect(page).toContain(title.replace(/^\d+ · /, '').replace(/\? .*$/, '?'));
});

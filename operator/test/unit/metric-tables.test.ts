/** What several places say of the metrics, each in its own language. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OPERATOR_METRICS } from '../../gen/metrics/operator.ts';
import { POD_METRICS } from '../../gen/metrics/pod.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

test('nginx knows all reasons that X-Corelane-Error may have, and counts those that it does not know as one', () => {
  const [, list = ''] = /\breasons\[\] = \{(.*?)\n\};/s.exec(read('sidecar/nginx/metrics.c')) ?? [];
  const known = [...list.matchAll(/ngx_string\("([^"]+)"\)/g)].map(([, reason]) => reason as string);
  const [, table = ''] = /^## Errors$(.*?)^## /ms.exec(read('sidecar/README.md')) ?? [];
  const cells = table.split('\n').flatMap((line) => /^\| \(?[0-9]{3}\)? \| ([^|]+) \|/.exec(line)?.[1] ?? []);
  const written = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, reason]) => reason as string));
  expect(written.length).toBeGreaterThan(20);
  expect(known.toSorted()).toEqual([...new Set([...written, 'other'])].sort());
});

test("HAProxy takes from nginx' page what nginx has, and nothing else", () => {
  const [c, cache, spans, lua] = ['nginx/metrics.c', 'nginx/cache.c', 'nginx/spans.c', 'haproxy/metrics/nginx.lua'].map(
    (file) => read(`sidecar/${file}`),
  ) as [string, string, string, string];
  const inC = (text: string, name: string) =>
    [...(new RegExp(`\\b${name}\\[[A-Z]*\\] = \\{(.*?)\\};`, 's').exec(text)?.[1] ?? '').matchAll(/"([^"]*)"/g)].map(
      ([, value]) => value,
    );
  const inLua = (name: string) =>
    [...(new RegExp(`^local ${name} = \\{(.*?)\\}`, 'ms').exec(lua)?.[1] ?? '').matchAll(/'([^']*)'/g)].map(
      ([, value]) => value,
    );
  expect(inC(c, 'reasons').length).toBeGreaterThan(20);
  expect(inLua('REASONS')).toEqual(inC(c, 'reasons'));
  expect(inLua('CODES')).toEqual(inC(c, 'codes'));
  expect(inLua('BOUNDS')).toEqual([...inC(c, 'bounds'), '+Inf']);
  expect(inLua('RESULTS')).toEqual(inC(cache, 'results'));
  const told = [...spans.matchAll(/\{result=\\"([a-z]+)\\"\}/g)].map(([, result]) => result);
  expect(inLua('TOLD')).toEqual(told);
  const families = [
    ...c.matchAll(/"(corelane_[a-z_]+)"/g),
    ...[...cache.matchAll(/# TYPE (corelane_[a-z_]+)/g), ...spans.matchAll(/# TYPE (corelane_[a-z_]+)/g)],
  ];
  const written = new Set(families.map(([, name]) => name as string));
  const variables = ['corelane_total_seconds', 'corelane_metrics', 'corelane_served_as'];
  expect([...lua.matchAll(/^ {2}(corelane_[a-z_]+) =/gm)].map(([, name]) => name).sort()).toEqual(
    [...written].filter((name) => !variables.includes(name)).sort(),
  );
});

test.each([
  ['pod', POD_METRICS],
  ['operator', OPERATOR_METRICS],
])('each metric of the %s is named as Prometheus wants it, once', (_what, rows) => {
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
  for (const { name, type, labels, meaning } of rows) {
    expect(name).toMatch(/^corelane_[a-z_]+$/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    expect(labels.filter((label) => !/^[a-z]+$/.test(label))).toEqual([]);
    // One cell of a table.
    expect(meaning).toMatch(/^[^|\n]+$/);
  }
});

test('the pages of the docs name no metric that there is not', () => {
  const rows = [...POD_METRICS, ...OPERATOR_METRICS];
  const names = new Set(
    rows.flatMap(({ name, type }) =>
      type === 'histogram' ? [name, ...['_bucket', '_sum', '_count'].map((end) => name + end)] : [name],
    ),
  );
  const pages = ['README.md', ...globSync('docs/{*,how-to/*,frameworks/*}.md', { cwd: root })];
  const unknown = pages.flatMap((page) =>
    // Behind a colon it is a series that is recorded (alerts.test.ts has these), behind @ a location of nginx.
    [...read(page).matchAll(/(?<![:@])\bcorelane_(?:worker|request|cache|queue|peers|operator|scaling)[a-z_]*/g)]
      .map(([name]) => name)
      .filter((name) => !names.has(name))
      .map((name) => `${page}: ${name}`),
  );
  expect(pages.length).toBeGreaterThan(30);
  expect(unknown).toEqual([]);
});

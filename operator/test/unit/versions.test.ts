/** docs/versions.md says of versions what the files say that decide about them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const page = read('docs/versions.md');
const found = (pattern: RegExp, path: string) => pattern.exec(read(path))?.[1];

test.each([
  ['| Kubernetes | ', found(/kubeVersion: ">=(\d+\.\d+)\.0-0"/, 'charts/corelane/Chart.yaml'), ', the first'],
  [
    'stable; the chart refuses older ones | ',
    found(/^KUBERNETES_VERSION=v(.*)$/m, 'e2e/cluster/versions.env'),
    ', in every run',
  ],
  ['| Node.js for the command line | ', found(/"node": ">=(.*)"/, 'package.json'), ': its'],
  ['[the protocol](protocol.md) (now ', found(/PROTOCOL_VERSION (?:")?(\d+)/, 'sidecar/entrypoint/entrypoint.h'), ')'],
])('%s%s%s', (before, version, after) => {
  expect(version).toBeDefined();
  expect(page).toContain(`${before}${version}${after}`);
});

test('chart, its appVersion and the packages have one version', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(JSON.parse(read('package-lock.json')).version).toBe(version);
  expect(found(/^version: (.*)$/m, 'charts/corelane/Chart.yaml')).toBe(version);
  expect(found(/^appVersion: (.*)$/m, 'charts/corelane/Chart.yaml')).toBe(version);
});

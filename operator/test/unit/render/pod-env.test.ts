/** What the operator writes for the programs of the sidecar image, which look at every line of it. */
import { readFileSync } from 'node:fs';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { renderConfig } from '../../../src/render/index.ts';
import { PROTOCOL_VERSION } from '../../../src/render/pod-env.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const ENTRYPOINT_H = new URL('../../../../sidecar/entrypoint/entrypoint.h', import.meta.url);
const TOKENS_OF_TESTS = 'sidecar/test/apps/peer-tokens.mjs';
const PAGE = new URL('../../../../docs/protocol.md', import.meta.url);

test.each([
  ['the sidecar image of the same commit', ENTRYPOINT_H, /^#define PROTOCOL_VERSION (\d+)$/m],
  ['the tests that pass for a pod', TOKENS_OF_TESTS, /^const PROTOCOL_VERSION = '(\d+)';$/m],
])('%s: the version of the protocol is that of the operator', (_what, file, line) => {
  const [, version] = line.exec(readFileSync(file, 'utf8')) ?? [];
  expect(Number(version)).toBe(PROTOCOL_VERSION);
});

test('its page is of that version, and tells why it is another one than the one before', () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toContain(`This page is **version ${PROTOCOL_VERSION}** of the protocol.`);
  expect(page).toMatch(
    new RegExp(`^- Version ${PROTOCOL_VERSION} has .* An image of version ${PROTOCOL_VERSION - 1} `, 'm'),
  );
});

test('every line is a comment or NAME=VALUE', () => {
  const lines = renderConfig(renderServiceSpec.parse({ template }))['pod.env'].split('\n').slice(0, -1);
  expect(lines.filter((line) => !/^(#.*|CORELANE_[A-Z_]+=[A-Za-z0-9._:/-]+)$/.test(line))).toEqual([]);
});

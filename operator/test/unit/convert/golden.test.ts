/**
 * Conversions of `golden/*.in.yaml`: the RenderService in `*.out.yaml`, what is said in `*.findings.txt`.
 * `UPDATE_GOLDEN=1` rewrites both.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { sorted } from '../../../check/finding.ts';
import { findingLine } from '../../../cli/findings.ts';
import { convert, isOpen, refusedKind } from '../../../convert/index.ts';
import { parseManifests } from '../../../convert/manifests.ts';
import { convertGolden, GOLDEN, type GoldenCase, goldenNames, readGolden } from './golden.ts';

const names = goldenNames();

/** What is said, as `corelane convert` prints it, and its exit code. */
function said({ manifests, deployment, conversion }: GoldenCase): string {
  const findings = conversion?.findings ?? manifests.flatMap((manifest) => refusedKind(manifest) ?? []);
  const lines = sorted(findings).map((finding) => findingLine(finding, manifests, `Deployment/${deployment?.name}`));
  return [...lines, `exit code ${isOpen(findings, false) ? 2 : 0}`, '', ...(conversion?.plan ?? []), ''].join('\n');
}

function expectGolden(file: string, content: string | undefined): void {
  const place = new URL(file, GOLDEN);
  if (process.env.UPDATE_GOLDEN) {
    if (content === undefined) rmSync(place, { force: true });
    else writeFileSync(place, content);
  }
  expect(existsSync(place) ? readGolden(file) : undefined).toBe(content);
}

test('there are cases', () => expect(names.length).toBeGreaterThan(20));

test.each(names)('%s', (name) => {
  const golden = convertGolden(name);
  expectGolden(`${name}.out.yaml`, golden.conversion?.text);
  expectGolden(`${name}.findings.txt`, said(golden));
});

test('what is listed as runnable has an image that examples/storefront makes', () => {
  const runnable = readGolden('runnable.txt').trim().split('\n');
  expect(runnable.length).toBeGreaterThan(2);
  for (const name of runnable) {
    const [container] = parse(readGolden(`${name}.out.yaml`)).spec.template.spec.containers;
    expect({ name, image: container.image }).toEqual({ name, image: 'corelane.local/storefront:dev' });
  }
});

const BOTH = { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv4'] };
const REQUIRED = { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] };
const ONE = { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] };
test.each<[string, object, object | undefined, object?]>([
  ['one family, which the cluster has chosen', ONE, undefined, { uid: '1' }],
  ['one family, which somebody has written', ONE, { ipFamilies: ['IPv6'] }],
  ['both, in their order', BOTH, BOTH],
  ['both, of which one is not written', { ...REQUIRED, ipFamilies: ['IPv6'] }, REQUIRED],
  ['both, in the order of the cluster', { ipFamilyPolicy: 'RequireDualStack' }, { ipFamilyPolicy: 'RequireDualStack' }],
  [
    'both where they are to be had, in a cluster of one',
    { ...BOTH, ipFamilies: ['IPv4'] },
    { ipFamilyPolicy: 'PreferDualStack' },
    { uid: '1' },
  ],
])('a Service with %s', (_what, families, expected, ofServer = {}) => {
  const labels = { app: 'shop' };
  const containers = [{ name: 'web', image: 'shop:1', ports: [{ containerPort: 3000 }] }];
  const template = { metadata: { labels }, spec: { containers } };
  const metadata = { name: 'shop' };
  const objects = [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { selector: { matchLabels: labels }, template } },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { ...metadata, ...ofServer } },
      spec: { selector: labels, ports: [{ port: 80 }], ...families },
    },
  ];
  const text = objects.map((object) => stringify(object)).join('---\n');
  const [deployment, ...others] = parseManifests(text, 'shop.yaml');
  if (!deployment) throw new Error('no manifest');
  const { service } = parse(convert(deployment, others, { name: 'shop-render' }).text ?? '').spec;
  expect(service).toEqual(expected);
});

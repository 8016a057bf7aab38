/**
 * Conversions of `golden/*.in.yaml`: the RenderService in `*.out.yaml`, what is said in `*.findings.txt`.
 * `UPDATE_GOLDEN=1` rewrites both.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { sorted } from '../../../check/finding.ts';
import { findingLine } from '../../../cli/findings.ts';
import { isOpen, refusedKind } from '../../../convert/index.ts';
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

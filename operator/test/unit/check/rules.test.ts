/** What is found in RenderServices, and that the table of codes knows all that is found. */
import { CODES, type Code } from '../../../check/codes.ts';
import type { Finding } from '../../../check/finding.ts';
import { checkRenderService } from '../../../check/index.ts';
import { refusedKind } from '../../../convert/index.ts';
import { convertGolden, goldenNames } from '../convert/golden.ts';
import { CASES, type CheckCase, checkCase } from './cases.ts';

function findings(one: CheckCase): Finding[] {
  const { resource, surroundings } = checkCase(one);
  return checkRenderService(resource, surroundings).findings;
}

test.each(CASES.map((one) => [one.what, one] as const))('%s', (_what, one) => {
  const isNoise = ({ code, level }: Finding) => code === 'C007' && level === 'info';
  const found = findings(one)
    .filter((finding) => !isNoise(finding))
    .map(({ code, level, path }) => `${code} ${level} ${path}`);
  expect(found.sort()).toEqual([...one.found].sort());
});

describe('the table of codes', () => {
  const golden = goldenNames().flatMap((name) => {
    const { manifests, conversion } = convertGolden(name);
    return conversion?.findings ?? manifests.flatMap((manifest) => refusedKind(manifest) ?? []);
  });
  const all = [...golden, ...CASES.flatMap((one) => findings(one))];
  const levels = (code: Code) => [...new Set(all.filter((one) => one.code === code).map(({ level }) => level))].sort();

  test.each(Object.keys(CODES) as Code[])('%s has the levels that its findings have, each seen in a case', (code) => {
    expect(levels(code)).toEqual([...CODES[code].levels].sort());
  });

  test('what is said is sentences for one line', () => {
    for (const { what, why, wayOut } of all) {
      expect(`${what}|${why}`).not.toMatch(/[.!?](\||$)/);
      expect(wayOut).toMatch(/^[A-Z0-9].*[^.]\.$/);
      expect(`${what}${why}${wayOut}`).not.toMatch(/\n|undefined|NaN|\[object/);
    }
  });
});

test('what could not be looked at is not said to be fine', () => {
  const { resource, surroundings } = checkCase({ what: '', found: [] });
  const { skipped, looked } = checkRenderService(resource, surroundings);
  expect(skipped.map(({ code }) => code).sort()).toEqual(['C003', 'C006', 'C013', 'C014', 'C020', 'C024']);
  expect(looked).toEqual(expect.arrayContaining(['C001', 'C003', 'C019']));
});

/**
 * Whatever stands in a manifest, `convert` and `check` find something, or refuse it in words; no rule throws. Values of
 * golden files are replaced by others, by chance.
 */
import { stringify } from 'yaml';
import { checkRenderService } from '../../../check/index.ts';
import { findingLine } from '../../../cli/findings.ts';
import { convert, isDeployment } from '../../../convert/index.ts';
import { ManifestError } from '../../../convert/kubectl-yaml.ts';
import { isRecord, type Manifest, manifestOf, parseManifests } from '../../../convert/manifests.ts';
import { isRenderService, surroundingsOf } from '../../../convert/surroundings.ts';
import { Random } from '../../../simulate/random.ts';
import type { RenderServiceResource } from '../../../src/api/resource.ts';
import { convertGolden, goldenNames, readGolden } from './golden.ts';

const WRONG = [
  null,
  0,
  -1,
  1e300,
  2 ** 31,
  true,
  '',
  'x',
  '1e400',
  '\u0000\u001b[2J',
  'a'.repeat(2_000),
  [],
  {},
  [null],
  [[]],
  { a: {} },
];
const ROUNDS = 20;

/** Every place in a value: the object or list, and the key. */
function places(value: unknown): [parent: Record<string, unknown>, key: string][] {
  if (typeof value !== 'object' || value === null) return [];
  const own = value as Record<string, unknown>;
  return Object.keys(own).flatMap((key) => [[own, key] as [Record<string, unknown>, string], ...places(own[key])]);
}

/** Objects of a golden file in which up to three values are wrong. */
function broken(text: string, random: Random): Manifest[] {
  const values = parseManifests(text, 'a.yaml').map(({ value }) => structuredClone(value));
  for (let count = 1 + Math.floor(3 * random.fraction()); count > 0; count--) {
    const all = values.flatMap((value) => places(value));
    const [parent, key] = all[Math.floor(random.fraction() * all.length)] as (typeof all)[number];
    const wrong = WRONG[Math.floor(random.fraction() * WRONG.length)];
    // Its kind and name are what it was found by.
    if (!['kind', 'apiVersion', 'metadata', 'name'].includes(key)) parent[key] = structuredClone(wrong);
  }
  return values.filter((value) => isRecord(value)).map((value) => manifestOf(value, 'a.yaml'));
}

/** What is said of all of them; an error only where it is one for the user. */
function look(manifests: Manifest[]): string[] {
  const all = manifests.flatMap((manifest) => {
    const others = manifests.filter((one) => one !== manifest);
    if (isDeployment(manifest)) return convert(manifest, others, { workersPerPod: 'auto' }).findings;
    if (!isRenderService(manifest)) return [];
    const resource = manifest.value as unknown as RenderServiceResource;
    return checkRenderService(resource, surroundingsOf(manifest, others)).findings;
  });
  return all.map((finding) => findingLine(finding, manifests, ''));
}

/** What is converted, and what it becomes, beside the objects that were around it. */
const files = goldenNames().flatMap((name): [file: string, text: string][] => {
  const input = readGolden(`${name}.in.yaml`);
  const output = convertGolden(name).conversion?.text;
  return [
    [`${name}.in.yaml`, input],
    ...(output ? ([[`${name}.out.yaml`, `${output}---\n${input}`]] as [string, string][]) : []),
  ];
});

test.each(files)('%s with wrong values', (name, text) => {
  const random = new Random(name.length);
  for (let round = 0; round < ROUNDS; round++) {
    const manifests = broken(text, random);
    try {
      for (const line of look(manifests)) expect(line).toMatch(/^C0\d\d [^\p{Cc}]*$/u);
    } catch (error) {
      if (error instanceof ManifestError) continue;
      throw new Error(`${(error as Error).stack}\n${stringify(manifests.map(({ value }) => value))}`);
    }
  }
});

/**
 * No field of a pod template disappears without a finding on it, and none is invented: for Deployments by chance, out
 * of Kubernetes' own schema.
 */
import { stringify } from 'yaml';
import type { Finding } from '../../../check/finding.ts';
import { type Conversion, convert } from '../../../convert/index.ts';
import { isRecord, type Path, parseManifests, pathSteps, pathText } from '../../../convert/manifests.ts';
import { DeploymentGenerator, PAGES } from './deployments.ts';

/** Without it a container with the name of a proxy might stand before the application: nothing would be written. */
const SERVICES = parseManifests(
  stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'front' },
    spec: { selector: { app: 'shop' }, ports: [{ port: 80, targetPort: PAGES.name }] },
  }),
  'service.yaml',
);
const SEEDS = Array.from({ length: 300 }, (_unused, index) => index);

interface Leaf {
  /** As text: variables by their names. */
  path: string;
  value: unknown;
}

/** Everything at the ends of a value: scalars, null, empty lists and maps. */
function leaves(value: unknown, path: Path): Leaf[] {
  const children = Array.isArray(value)
    ? value.map((item, index): [string | number, unknown] => [
        path.at(-1) === 'env' && isRecord(item) ? String(item.name) : index,
        item,
      ])
    : isRecord(value)
      ? Object.entries(value)
      : [];
  if (children.length === 0) return [{ path: pathText(path), value }];
  return children.flatMap(([key, child]) => leaves(child, [...path, key]));
}

/** The value at a path; undefined where there is none. */
function at(root: unknown, path: string): unknown {
  return pathSteps(path).reduce<unknown>((node, step) => {
    if (Array.isArray(node))
      return typeof step === 'number' ? node[step] : node.findLast((item) => item?.name === step);
    return isRecord(node) ? node[step] : undefined;
  }, root);
}

/**
 * Whether a finding speaks of a leaf: of itself, or of something around it that is gone altogether, or that has been
 * replaced as a whole: a selector, what stands there twice.
 */
function isExplained({ path }: Leaf, findings: Finding[], after: unknown): boolean {
  return findings.some((finding) =>
    [finding.path, ...(finding.also ?? [])].some((said) => {
      if (said === path) return true;
      const isAround = path.startsWith(`${said}.`) || path.startsWith(`${said}[`);
      return (
        isAround && (at(after, said) === undefined || /\.(labelSelector|hostAliases)$|\.env\[[^\]]*\]$/.test(said))
      );
    }),
  );
}

const same = (one: unknown, other: unknown) =>
  // A fraction gets quotes.
  typeof one === 'number' && !Number.isInteger(one)
    ? String(one) === other
    : JSON.stringify(one) === JSON.stringify(other);

interface Outcome {
  before: unknown;
  after: unknown;
  conversion: Conversion;
}

function outcome(seed: number): Outcome {
  const before = new DeploymentGenerator(seed).deployment();
  // Of every second one an API server has added its defaults.
  if (seed % 2 === 0) before.metadata = { name: 'shop', uid: 'a' };
  const text = stringify(before, { schema: 'yaml-1.1', ...(seed % 3 === 0 && { collectionStyle: 'flow' as const }) });
  const [manifest] = parseManifests(text, 'deployment.yaml');
  if (!manifest) throw new Error('no manifest');
  const workersPerPod = ([undefined, 'auto', 3] as const)[seed % 3];
  const conversion = convert(manifest, SERVICES, { workersPerPod });
  const [written] = conversion.text === undefined ? [] : parseManifests(conversion.text, 'renderservice.yaml');
  return { before, after: written?.value, conversion };
}

const outcomes = SEEDS.map((seed) => ({ seed, ...outcome(seed) }));
const converted = outcomes.filter(({ after }) => after !== undefined);

test('most of them can be converted, and they have many fields', () => {
  expect(converted.length).toBeGreaterThan(SEEDS.length / 3);
  const count = converted.reduce((sum, { before }) => sum + leaves(before, []).length, 0);
  expect(count).toBeGreaterThan(30 * converted.length);
});

test('what is read is what was written, in the YAML that Kubernetes reads', () => {
  for (const { before } of outcomes) {
    const [manifest] = parseManifests(stringify(before, { schema: 'yaml-1.1' }), 'deployment.yaml');
    expect(JSON.parse(JSON.stringify(manifest?.value))).toEqual(JSON.parse(JSON.stringify(before)));
  }
});

test('nothing of a template is lost or changed without a finding', () => {
  const lost = converted.flatMap(({ seed, before, after, conversion }) =>
    leaves(at(before, 'spec.template'), ['spec', 'template'])
      .filter(({ path, value }) => !same(value, at(after, path)))
      .filter((leaf) => !isExplained(leaf, conversion.findings, after))
      .map(({ path, value }) => ({ seed, path, value, after: at(after, path) })),
  );
  expect(lost).toEqual([]);
});

test('nothing is in the new template that was not in the old one', () => {
  const invented = converted.flatMap(({ seed, before, after, conversion }) =>
    leaves(at(after, 'spec.template'), ['spec', 'template'])
      .filter(({ path, value }) => !same(at(before, path), value))
      // What has been emptied stays as what it was.
      .filter(
        ({ path, value }) => !(at(before, path) !== undefined && isRecord(value) && Object.keys(value).length === 0),
      )
      .filter((leaf) => !isExplained(leaf, conversion.findings, before) && !isExplained(leaf, conversion.findings, {}))
      .map(({ path, value }) => ({ seed, path, value })),
  );
  expect(invented).toEqual([]);
});

test('a Deployment that is refused says why, with an error', () => {
  const refused = outcomes.filter(({ after }) => after === undefined);
  const silent = refused.filter(({ conversion }) => !conversion.findings.some(({ level }) => level === 'error'));
  expect(silent.map(({ seed }) => seed)).toEqual([]);
});

/** What the operator's image says is in its bundle. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bom, bundleBom } from '../../gen/sbom.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const lock = json(join(root, 'package-lock.json'));

describe('the SBOM of the bundle', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sbom-'));
  let bom: Bom;

  beforeAll(() => {
    execFileSync(join(root, 'operator/gen/bundle.sh'), [folder]);
    bom = json(join(folder, 'main.cdx.json'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each([
    '@kubernetes/client-node',
    'pino',
    'prom-client',
    'undici',
    'zod',
    // Dependencies of dependencies, too.
    'ws',
    '@pinojs/redact',
  ])('names %s with its locked version, licence and hash', (name) => {
    const { version, license, integrity } = lock.packages[`node_modules/${name}`];
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const found = bom.components.filter((component) => component.purl === purl);
    expect(found).toHaveLength(1);
    expect(found[0]?.licenses).toEqual([{ license: { id: license } }]);
    const hex = found[0]?.hashes[0]?.content ?? '';
    expect(`sha512-${Buffer.from(hex, 'hex').toString('base64')}`).toBe(integrity);
  });

  test('names no package of the tests: none is in the bundle', () => {
    const names = bom.components.map(({ group, name }) => (group ? `${group}/${name}` : name));
    expect(names.filter((name) => lock.packages[`node_modules/${name}`]?.dev)).toEqual([]);
    // The command line has it, the operator has not.
    expect(names).not.toContain('yaml');
  });
});

const files = (...names: string[]) => ({
  outputs: { 'main.mjs': { inputs: Object.fromEntries(names.map((name) => [name, { bytesInOutput: 1 }])) } },
});

test('a package inside of another one is a component of its own', () => {
  const integrity = `sha512-${Buffer.alloc(64).toString('base64')}`;
  const locked = { version: '2.0.0', license: 'MIT', integrity };
  const packages = { 'node_modules/a/node_modules/@b/c': locked };
  const lock = { version: '1.0.0', packages };
  const bom = bundleBom(files('src/main.ts', 'node_modules/a/node_modules/@b/c/d/e.js'), lock, 'app');
  expect(bom.components.map(({ purl }) => purl)).toEqual(['pkg:npm/%40b/c@2.0.0']);
});

test('a package that is not locked is an error, not a gap', () => {
  expect(() => bundleBom(files('node_modules/a/b.js'), { version: '1.0.0', packages: {} }, 'app')).toThrow(
    /node_modules\/a\b/,
  );
});

/**
 * What is in a bundle, as CycloneDX: a scanner of the operator's image sees one file without a name in it.
 *   node operator/gen/sbom.ts METAFILE NAME >main.cdx.json
 * METAFILE is what esbuild tells of the bundle; versions, licences and hashes are those of package-lock.json.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface LockedPackage {
  version: string;
  license?: string;
  integrity?: string;
}

/** What esbuild tells of a bundle, as far as it is used here. */
export interface Metafile {
  outputs: Record<string, { inputs: Record<string, { bytesInOutput: number }> }>;
}

/** The parts of a CycloneDX document that are used here. */
export interface Bom {
  bomFormat: 'CycloneDX';
  specVersion: '1.6';
  version: 1;
  metadata: { component: { type: 'application'; name: string; version: string } };
  components: Component[];
}

interface Component {
  type: 'library';
  'bom-ref': string;
  group?: string;
  name: string;
  version: string;
  purl: string;
  licenses: ({ license: { id: string } } | { expression: string })[];
  hashes: { alg: 'SHA-512'; content: string }[];
}

const MODULES = 'node_modules/';

/** Paths (`node_modules/a`) of the packages of which something is in the bundle, sorted. */
export function packagesOf(meta: Metafile): string[] {
  const paths = new Set<string>();
  for (const { inputs } of Object.values(meta.outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      const path = packagePath(file);
      if (path && bytesInOutput > 0) paths.add(path);
    }
  }
  return [...paths].sort();
}

/**
 * The packages of the bundle of an application. It has no date and no serial number: the same bundle gives the same
 * document. Throws if a package is not in the lock file, or has no licence or hash there.
 */
export function bundleBom(
  meta: Metafile,
  lock: { version: string; packages: Record<string, LockedPackage> },
  name: string,
): Bom {
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name, version: lock.version } },
    components: packagesOf(meta).map((path) => component(path, lock.packages[path])),
  };
}

/** `node_modules/a/node_modules/@b/c` of `node_modules/a/node_modules/@b/c/d/e.js`; nothing for a file of our own. */
function packagePath(file: string): string | undefined {
  const start = file.lastIndexOf(MODULES) + MODULES.length;
  if (start < MODULES.length) return;
  const [first = '', second = ''] = file.slice(start).split('/');
  return file.slice(0, start) + (first.startsWith('@') ? `${first}/${second}` : first);
}

function component(path: string, locked: LockedPackage | undefined): Component {
  const fullName = path.slice(path.lastIndexOf(MODULES) + MODULES.length);
  const { version, license, integrity } = locked ?? {};
  if (!version || !license || !integrity?.startsWith('sha512-')) {
    throw new Error(`package-lock.json has no version, licence or sha512 of ${path}, which is in the bundle`);
  }
  const [name = '', group] = fullName.split('/').reverse();
  const purl = `pkg:npm/${group ? `${encodeURIComponent(group)}/` : ''}${name}@${version}`;
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group && { group }),
    name,
    version,
    purl,
    licenses: [/ (AND|OR|WITH) /.test(license) ? { expression: license } : { license: { id: license } }],
    hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [metafile, name] = process.argv.slice(2);
  if (!metafile || !name) throw new Error('usage: sbom.ts METAFILE NAME');
  const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'));
  const bom = bundleBom(JSON.parse(readFileSync(metafile, 'utf8')), lock, name);
  process.stdout.write(`${JSON.stringify(bom, undefined, 1)}\n`);
}

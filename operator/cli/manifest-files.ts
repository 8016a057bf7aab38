/** Manifests from files and standard input. */
import { ManifestError, readYaml, TEXT_LENGTH_MAX } from '../convert/kubectl-yaml.ts';
import { type Manifest, parseManifests, withoutLists } from '../convert/manifests.ts';
import { textOf } from '../local/text-file.ts';
import { UsageError } from './usage.ts';

/**
 * All objects of the files; `-` is standard input.
 * @throws UsageError for a file that is not there, no YAML, or no manifest
 */
export function readManifests(files: string[]): Manifest[] {
  if (files.filter((file) => file === '-').length > 1) throw new UsageError('-f - stands there twice');
  return files.flatMap((file) => asUsageError(() => parseManifests(read(file), nameOf(file))));
}

/**
 * All values of a file, which need be no Kubernetes objects; `-` is standard input.
 * @throws UsageError for a file that is not there, or no YAML
 */
export function readValues(file: string): unknown[] {
  const documents = asUsageError(() => readYaml(read(file), nameOf(file)));
  return documents.flatMap(({ value }) => withoutLists(value)).map(({ value }) => value);
}

function nameOf(file: string): string {
  return file === '-' ? 'stdin' : file;
}

function read(file: string): string {
  // Descriptor 0: /dev/stdin fails on a closed pipe.
  const text = textOf(file === '-' ? 0 : file, TEXT_LENGTH_MAX);
  if (text === undefined) throw new ManifestError(`${nameOf(file)} is larger than ${TEXT_LENGTH_MAX / 1e6} MB`);
  return text;
}

/** Runs `step`; what is wrong with a file is wrong with the arguments. */
export function asUsageError<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    const { code, message, path } = error as NodeJS.ErrnoException;
    if (error instanceof ManifestError) throw new UsageError(message);
    if (code === 'ENOENT') throw new UsageError(`there is no file ${path}`);
    if (code === 'EISDIR') throw new UsageError('-f takes files, no folders: -f a.yaml -f b.yaml');
    throw error;
  }
}

/** What a user names: `deployment/storefront`, `renderservice/shop`, or only a name. */
export function objectName(text: string, kinds: Record<string, string>): { kind?: string; name: string } {
  const [first = '', second, ...rest] = text.split('/');
  const kind = second === undefined ? undefined : kinds[first.toLowerCase()];
  if (rest.length > 0 || (second !== undefined && kind === undefined) || (second ?? first) === '') {
    const known = [...new Set(Object.values(kinds))].map((one) => `${one.toLowerCase()}/NAME`).join(' or ');
    throw new UsageError(`"${text}" must be ${known}`);
  }
  return { kind, name: second ?? first };
}

/** Names of kinds as kubectl knows them. */
export const DEPLOYMENT_KINDS = {
  deployment: 'Deployment',
  deployments: 'Deployment',
  deploy: 'Deployment',
  'deployment.apps': 'Deployment',
};

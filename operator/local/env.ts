/** The environment of the workers: ConfigMaps and Secrets of the file, what the user adds. Computes only. */
import { parseEnv } from 'node:util';
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import type { FieldError } from '../src/api/resource.ts';

/** A ConfigMap or a Secret, decoded. */
export interface DataObject {
  kind: 'ConfigMap' | 'Secret';
  name: string;
  data: Record<string, string>;
}

interface Context {
  /** Of the container, for messages. */
  path: string;
  metadata: { name: string; namespace: string };
  /** The user's own, which win. */
  set: V1EnvVar[];
}

interface Resolved {
  env: V1EnvVar[];
  errors: FieldError[];
  leftOut: string[];
}

/** Of a variable, as the API server takes it: visible ASCII. */
const NAME = /^[ -<>-~]+$/;

/** A value in which no `$(NAME)` is replaced: kubelet looks for these only where a value stands in the file. */
const literal = (value: string) => value.replaceAll('$', '$$$$');

/** As kubelet does it: envFrom first, env over it; then what the user sets on the command line. */
export function resolvedEnv(
  { env = [], envFrom = [] }: V1Container,
  objects: DataObject[],
  context: Context,
): Resolved {
  const errors: FieldError[] = [];
  const leftOut: string[] = [];
  const isSet = (name: string) => context.set.some((own) => own.name === name);
  const find = (kind: DataObject['kind'], name: string) =>
    objects.find((object) => object.kind === kind && object.name === name);

  const sources = envFrom.flatMap(({ prefix = '', configMapRef, secretRef }, index) => {
    const kind = configMapRef ? 'ConfigMap' : 'Secret';
    const { name = '', optional } = configMapRef ?? secretRef ?? {};
    const object = find(kind, name);
    if (!object && !optional) errors.push({ path: `${context.path}.envFrom[${index}]`, message: missing(kind, name) });
    return Object.entries(object?.data ?? {}).flatMap(([key, value]) => {
      const name = `${prefix}${key}`;
      if (NAME.test(name)) return [{ name, value: literal(value) }];
      leftOut.push(`${context.path}.envFrom[${index}]: "${name}" can be no variable`);
      return [];
    });
  });

  const own = env.flatMap((entry, index): V1EnvVar[] => {
    const { name } = entry;
    const found = isSet(name) ? undefined : lookUp(entry, find, context.metadata);
    if (found === undefined) return [];
    if ('value' in found) return [{ name, value: found.value }];
    const path = `${context.path}.env[${index}] (${name})`;
    if ('missing' in found) errors.push({ path, message: `${found.missing}, or give --env ${name}=VALUE` });
    else leftOut.push(`${path}: there is no pod to ask; --env ${name}=VALUE sets it`);
    return [];
  });

  const set = context.set.map(({ name, value = '' }) => ({ name, value: literal(value) }));
  const names = new Set([...own, ...set].map(({ name }) => name));
  const all = [...sources.filter(({ name }) => !names.has(name)), ...own, ...set];
  for (const { name } of all.filter(({ name, value }) => `${name}${value}`.includes('\0')))
    errors.push({ path: `${context.path}.env (${name})`, message: 'has a byte 0, which no variable can have' });
  return { env: all, errors, leftOut };
}

type Found = { value: string } | { missing: string } | { unknown: true };

/** The value of one variable; undefined for one that is optional and not there. */
function lookUp(
  { value, valueFrom }: V1EnvVar,
  find: (kind: DataObject['kind'], name: string) => DataObject | undefined,
  metadata: Context['metadata'],
): Found | undefined {
  if (!valueFrom) return { value: value ?? '' };
  const { configMapKeyRef, secretKeyRef, fieldRef } = valueFrom;
  const reference = configMapKeyRef ?? secretKeyRef;
  if (!reference) {
    const path = fieldRef?.fieldPath ?? '';
    const known = Object.hasOwn(FIELDS, path) ? FIELDS[path]?.(metadata) : undefined;
    return known === undefined ? { unknown: true } : { value: known };
  }
  const kind = configMapKeyRef ? 'ConfigMap' : 'Secret';
  const { name = '', key, optional } = reference;
  const data = find(kind, name)?.data ?? {};
  const found = Object.hasOwn(data, key) ? data[key] : undefined;
  if (found !== undefined) return { value: literal(found) };
  return optional ? undefined : { missing: missing(kind, name, key) };
}

/** Fields of a pod that mean something without Kubernetes. */
const FIELDS: Record<string, (metadata: Context['metadata']) => string> = {
  'metadata.name': ({ name }) => name,
  'metadata.namespace': ({ namespace }) => namespace,
  'spec.nodeName': () => 'localhost',
};

function missing(kind: string, name: string, key?: string): string {
  const what = key === undefined ? `no ${kind} ${name}` : `no ${kind} ${name} with the key ${key}`;
  return `there is ${what} in the file: put it there`;
}

/** Variables of a file, exactly as `node --env-file` reads it: it skips lines that set none. */
export function envOfFile(text: string): V1EnvVar[] {
  return Object.entries(parseEnv(text)).flatMap(([name, value = '']) => (name === '' ? [] : [{ name, value }]));
}

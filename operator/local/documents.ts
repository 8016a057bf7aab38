/**
 * A file with a RenderService, and the ConfigMaps and Secrets beside it, as what is to run on this machine. Computes
 * only. The spec is checked by the operator's own rules, so an error has the path and the words that kubectl has.
 */
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import { z } from 'zod';
import { ManifestError } from '../convert/kubectl-yaml.ts';
import { type Manifest, parseManifests } from '../convert/manifests.ts';
import { KIND } from '../src/api/names.ts';
import { quotesMissing, withQuotesMissing } from '../src/api/quotes.ts';
import { type FieldError, fieldPath, parseRenderService } from '../src/api/resource.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';
import { workerTemplate } from '../src/api/worker-template.ts';
import { type DataObject, resolvedEnv } from './env.ts';
import { leftOut, withoutHost } from './left-out.ts';

/** What is to run. */
export interface Service {
  /** Of the RenderService. */
  name: string;
  spec: RenderServiceSpec;
  /** The container that becomes the workers, its environment resolved. */
  worker: V1Container;
  /** The page of the ConfigMap that `fallback` names. */
  shell?: string | undefined;
  /** What the file asks for and this machine has not, a line each. */
  leftOut: string[];
}

export interface LoadOptions {
  /** What the user calls the file, for messages. */
  source: string;
  /** Wins over spec.workersPerPod. */
  workers?: number;
  /** Wins over the image of the file, which needs none then; '' where it is not known yet. */
  image?: string;
  /** Variables that win over those of the file. */
  env?: V1EnvVar[];
}

/** Something in the user's file or folder cannot be used; the message says where and what would be right. */
export class InputError extends Error {}

/** Texts by name; null is an empty one, as the API server takes it. */
const texts = z
  .record(
    z.string(),
    z
      .string()
      .nullable()
      .transform((text) => text ?? ''),
  )
  .nullish();
const metadataOf = z.looseObject({
  name: z.string(),
  namespace: z.string().nullish(),
  labels: texts,
  annotations: texts,
});
const named = z.looseObject({ metadata: metadataOf });
const dataObject = named.extend({ data: texts, stringData: texts });

/** How the name of an image begins: one that begins with "-" would be an option of the engine. */
export const IMAGE = /^[A-Za-z0-9]/;
const NO_IMAGE = 'must be the name of an image: write it, give --image, or run the folder of the program';

const key = z.looseObject({ name: z.string(), key: z.string(), optional: z.boolean().optional() });
const source = z.looseObject({ name: z.string(), optional: z.boolean().optional() });
/** What is used of the worker's container; the API server would check the rest of it. */
const usedOfContainer = z.looseObject({
  name: z.string(),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  workingDir: z.string().optional(),
  env: z
    .array(
      z.looseObject({
        name: z.string().regex(/^[^=\0]+$/, 'must be a name'),
        value: z.string().optional(),
        valueFrom: z.looseObject({ configMapKeyRef: key.optional(), secretKeyRef: key.optional() }).optional(),
      }),
    )
    .optional(),
  volumeMounts: z
    .array(
      z.looseObject({ name: z.string(), mountPath: z.string().regex(/^\/[^:]*$/, 'must be a path without a colon') }),
    )
    .optional(),
  envFrom: z
    .array(
      z.looseObject({ prefix: z.string().optional(), configMapRef: source.optional(), secretRef: source.optional() }),
    )
    .optional(),
  resources: z
    .looseObject({
      limits: z.record(z.string(), z.union([z.string(), z.number()]).transform(String)).optional(),
      requests: z.record(z.string(), z.union([z.string(), z.number()]).transform(String)).optional(),
    })
    .optional(),
  securityContext: z
    .looseObject({
      runAsUser: z.int().optional(),
      runAsGroup: z.int().optional(),
      capabilities: z
        .looseObject({ add: z.array(z.string()).optional(), drop: z.array(z.string()).optional() })
        .optional(),
    })
    .optional(),
});

/**
 * @param text the file
 * @throws InputError when it cannot be used
 */
export function loadDocuments(text: string, options: LoadOptions): Service {
  const { source } = options;
  const objects = objectsOf(text, source);
  const resource = theRenderService(objects, source);
  const { name, namespace } = readAs(named, resource, source).metadata;
  const metadata = { name, namespace: namespace ?? 'default', uid: '', generation: 1, resourceVersion: '' };
  const spec = withWorkers(resource.value.spec, options.workers);
  const parsed = parseRenderService({ apiVersion: '', kind: KIND, metadata, spec });
  if (!parsed.ok) throw refused(source, resource, parsed.errors);
  const checked = parsed.renderService.spec;
  const { containers } = checked.template.spec as { containers: V1Container[] };
  const container = workerTemplate(containers) as V1Container;
  const at = ['spec', 'template', 'spec', 'containers', containers.indexOf(container)];
  const used = usedOfContainer.safeParse(withoutNulls(container), { error: withQuotesMissing });
  const image = options.image ?? container.image;
  const noImage = options.image === undefined ? whyNoImage(image) : undefined;
  const errors = [
    ...(noImage ? [{ path: fieldPath([...at, 'image']), message: noImage }] : []),
    ...errorsOf(used.error, at),
  ];
  if (!used.success || errors.length > 0) throw refused(source, resource, errors);
  const path = fieldPath(at);
  const given: V1Container = { ...used.data, ...ofPod(checked, used.data), image };
  const whole = withoutHost(given);
  const data = dataObjects(objects, source);
  const { shell, missing } = shellOf(checked, data);
  const env = resolvedEnv(whole, data, { path, metadata, set: options.env ?? [] });
  if (env.errors.length > 0) throw refused(source, resource, env.errors);
  const { envFrom: _envFrom, ...worker } = whole;
  return {
    name,
    spec: checked,
    worker: { ...worker, env: env.env },
    shell,
    leftOut: [...leftOut(checked, given, path), ...env.leftOut, ...missing],
  };
}

function objectsOf(text: string, source: string): Manifest[] {
  try {
    return parseManifests(text, source);
  } catch (error) {
    if (error instanceof ManifestError) throw new InputError(error.message);
    throw error;
  }
}

function theRenderService(objects: Manifest[], source: string): Manifest {
  const found = objects.filter(({ kind }) => kind === KIND);
  const [resource, second] = found;
  if (resource && second) {
    const names = found.map(({ name }) => name).join(', ');
    throw new InputError(
      `${source} has ${found.length} RenderServices (${names}): put the one to run in a file of its own`,
    );
  }
  if (resource) return resource;
  const kinds = [...new Set(objects.map(({ kind }) => kind))].join(', ');
  throw new InputError(
    `${source} has no RenderService${kinds ? `, only ${kinds}` : ''}; README.md shows the smallest one`,
  );
}

function whyNoImage(image: unknown): string | undefined {
  return typeof image === 'string' && IMAGE.test(image) ? undefined : (quotesMissing(image) ?? NO_IMAGE);
}

/** An object by its schema. @throws InputError with the paths of what is wrong */
function readAs<T extends z.ZodType>(schema: T, object: Manifest, source: string): z.output<T> {
  const parsed = schema.safeParse(object.value, { error: withQuotesMissing });
  if (!parsed.success) throw refused(source, object, errorsOf(parsed.error, []));
  return parsed.data;
}

/** @param at path of what was checked */
function errorsOf(error: z.ZodError | undefined, at: PropertyKey[]): FieldError[] {
  return (error?.issues ?? []).map(({ path, message }) => ({ path: fieldPath([...at, ...path]), message }));
}

function withWorkers(spec: unknown, workers: number | undefined): unknown {
  return workers === undefined ? spec : { ...(spec as object), workersPerPod: workers };
}

function refused(source: string, { kind, name }: Manifest, errors: FieldError[]): InputError {
  const lines = errors.map(({ path, message }) => `  ${path}: ${message}`);
  return new InputError([`${source}: ${kind} ${name} cannot be used`, ...lines].join('\n'));
}

/** What the pod says for its containers where they say nothing. */
function ofPod(
  { template }: RenderServiceSpec,
  { securityContext }: V1Container,
): Pick<V1Container, 'securityContext'> {
  const pod = template.spec?.securityContext;
  if (!pod) return {};
  const { runAsUser, runAsGroup } = pod;
  return {
    securityContext: {
      ...(runAsUser != null && { runAsUser }),
      ...(runAsGroup != null && { runAsGroup }),
      ...securityContext,
    },
  };
}

/** The page of `fallback.configMap`: pods run without it, here as there. */
function shellOf({ fallback }: RenderServiceSpec, objects: DataObject[]): { shell?: string; missing: string[] } {
  const wanted = fallback?.configMap;
  if (!wanted) return { missing: [] };
  const { name, key } = wanted;
  const found = objects.find((object) => object.kind === 'ConfigMap' && object.name === name);
  if (found && Object.hasOwn(found.data, key)) return { shell: found.data[key] as string, missing: [] };
  return {
    missing: [
      `spec.fallback.configMap: there is no ConfigMap ${name} with the key ${key} in the file; browsers get JSON`,
    ],
  };
}

function dataObjects(objects: Manifest[], source: string): DataObject[] {
  return objects
    .filter(({ kind }) => kind === 'ConfigMap' || kind === 'Secret')
    .map((object) => {
      const kind = object.kind as DataObject['kind'];
      const { data, stringData } = readAs(dataObject, object, source);
      const plain = Object.entries(data ?? {}).map(([key, value]) => [key, kind === 'Secret' ? decoded(value) : value]);
      return { kind, name: object.name, data: { ...Object.fromEntries(plain), ...stringData } };
    });
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}

/** As the API server takes them: null is the same as nothing. */
function withoutNulls<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_key, one) => (one === null ? undefined : one)));
}

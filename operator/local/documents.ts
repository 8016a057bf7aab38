/**
 * A file with a RenderService, and the ConfigMaps and Secrets beside it, as what is to run on this machine. Computes
 * only. The spec is checked by the operator's own rules, so an error has the path and the words that kubectl has.
 */
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import { z } from 'zod';
import { KIND } from '../src/api/names.ts';
import { type FieldError, parseRenderService } from '../src/api/resource.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';
import { workerTemplate } from '../src/api/worker-template.ts';
import { type DataObject, resolvedEnv } from './env.ts';
import { leftOut, withoutHost } from './left-out.ts';
import { parseYaml } from './yaml.ts';

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
  /** Variables that win over those of the file. */
  env?: V1EnvVar[];
}

/** Something in the user's file or folder cannot be used; the message says where and what would be right. */
export class InputError extends Error {}

const strings = z.record(z.string(), z.string()).nullish();
const dataObject = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  data: strings,
  stringData: strings,
});

/** How the name of an image begins. */
export const IMAGE = /^[A-Za-z0-9]/;
const NO_IMAGE = 'must be the name of an image';

const key = z.looseObject({ name: z.string(), key: z.string(), optional: z.boolean().optional() });
const source = z.looseObject({ name: z.string(), optional: z.boolean().optional() });
/** What is used of the worker's container; the API server would check the rest of it. */
const usedOfContainer = z.looseObject({
  name: z.string(),
  // One that begins with "-" would be an option of the engine.
  image: z.string({ error: NO_IMAGE }).regex(IMAGE, NO_IMAGE),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  workingDir: z.string().optional(),
  env: z
    .array(
      z.looseObject({
        name: z.string().regex(/^[^=\0]+$/, 'must be a name'),
        value: z.string({ error: 'must be a string: put it in quotes' }).optional(),
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

interface Document {
  kind?: unknown;
  metadata?: { name?: unknown; namespace?: unknown };
  spec?: unknown;
}

/**
 * @param text the file
 * @throws InputError when it cannot be used
 */
export function loadDocuments(text: string, options: LoadOptions): Service {
  const documents = parse(text, options.source);
  const resource = theRenderService(documents, options.source);
  const { name, namespace } = resource.metadata as { name: string; namespace?: string };
  const metadata = { name, namespace: namespace ?? 'default', uid: '', generation: 1, resourceVersion: '' };
  const spec = withWorkers(resource.spec, options.workers);
  const parsed = parseRenderService({ apiVersion: '', kind: KIND, metadata, spec });
  if (!parsed.ok) throw refused(options.source, name, parsed.errors);
  const checked = parsed.renderService.spec;
  const { containers } = checked.template.spec as { containers: V1Container[] };
  const container = workerTemplate(containers) as V1Container;
  const path = `spec.template.spec.containers[${containers.indexOf(container)}]`;
  const used = usedOfContainer.safeParse(withoutNulls(container));
  if (!used.success) {
    const errors = used.error.issues.map((issue) => ({
      path: issue.path.reduce<string>(
        (all, part) => all + (typeof part === 'number' ? `[${part}]` : `.${String(part)}`),
        path,
      ),
      message: issue.message,
    }));
    throw refused(options.source, name, errors);
  }
  const given: V1Container = { ...used.data, ...ofPod(checked, used.data) };
  const whole = withoutHost(given);
  const objects = dataObjects(documents, options.source);
  const { shell, missing } = shellOf(checked, objects);
  const env = resolvedEnv(whole, objects, { path, metadata, set: options.env ?? [] });
  if (env.errors.length > 0) throw refused(options.source, name, env.errors);
  const { envFrom: _envFrom, ...worker } = whole;
  return {
    name,
    spec: checked,
    worker: { ...worker, env: env.env },
    shell,
    leftOut: [...leftOut(checked, given, path), ...env.leftOut, ...missing],
  };
}

function parse(text: string, source: string): Document[] {
  try {
    return parseYaml(text).filter((one) => typeof one === 'object' && one !== null) as Document[];
  } catch (error) {
    throw new InputError(`${source} is no YAML: ${(error as Error).message}`);
  }
}

function theRenderService(documents: Document[], source: string): Document {
  const found = documents.filter(({ kind }) => kind === KIND);
  const [resource, second] = found;
  if (resource && second) {
    const names = found.map(({ metadata }) => metadata?.name).join(', ');
    throw new InputError(
      `${source} has ${found.length} RenderServices (${names}): put the one to run in a file of its own`,
    );
  }
  if (!resource) {
    const kinds = [...new Set(documents.map(({ kind }) => String(kind ?? 'something without a kind')))].join(', ');
    throw new InputError(
      `${source} has no RenderService${kinds ? `, only ${kinds}` : ''}; README.md shows the smallest one`,
    );
  }
  if (typeof resource.metadata?.name !== 'string')
    throw refused(source, undefined, [{ path: 'metadata.name', message: 'must be a name' }]);
  return resource;
}

function withWorkers(spec: unknown, workers: number | undefined): unknown {
  return workers === undefined ? spec : { ...(spec as object), workersPerPod: workers };
}

function refused(source: string, name: string | undefined, errors: FieldError[]): InputError {
  const lines = errors.map(({ path, message }) => `  ${path}: ${message}`);
  return new InputError(
    [`${source}: RenderService ${name ?? ''} cannot be used`.replace('  ', ' '), ...lines].join('\n'),
  );
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

function dataObjects(documents: Document[], source: string): DataObject[] {
  return documents
    .filter(({ kind }) => kind === 'ConfigMap' || kind === 'Secret')
    .map((document) => {
      const parsed = dataObject.safeParse(document);
      const kind = document.kind as DataObject['kind'];
      if (!parsed.success) throw new InputError(`${source}: a ${kind} needs metadata.name, and text in data`);
      const { metadata, data, stringData } = parsed.data;
      const plain = Object.entries(data ?? {}).map(([key, value]) => [key, kind === 'Secret' ? decoded(value) : value]);
      return { kind, name: metadata.name, data: { ...Object.fromEntries(plain), ...stringData } };
    });
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}

/** As the API server takes them: null is the same as nothing. */
function withoutNulls<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_key, one) => (one === null ? undefined : one)));
}

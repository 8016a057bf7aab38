/**
 * Raw JSON requests to an API server, independent of the operator's own client, which the tests are about. kubectl is
 * for what a user does; this is for looking, which tests do hundreds of times.
 */
import { readFileSync } from 'node:fs';
import { Agent, type RequestOptions, request } from 'node:https';
import { parse } from 'yaml';

/** An object as plain JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
export type Json = any;

/** An answer other than 2xx. */
export class StatusError extends Error {
  readonly code: number;
  /** The Status object of the API server. */
  readonly status: Json;

  constructor(code: number, status: Json) {
    super(status?.message ?? `HTTP ${code}`);
    this.code = code;
    this.status = status;
  }
}

/** Group, version and plural of the kinds that tests look at. */
const PATHS = {
  RenderService: ['apis/corelane.dev/v1alpha1', 'renderservices'],
  Deployment: ['apis/apps/v1', 'deployments'],
  ReplicaSet: ['apis/apps/v1', 'replicasets'],
  ConfigMap: ['api/v1', 'configmaps'],
  Secret: ['api/v1', 'secrets'],
  Service: ['api/v1', 'services'],
  ServiceAccount: ['api/v1', 'serviceaccounts'],
  Pod: ['api/v1', 'pods'],
  PodDisruptionBudget: ['apis/policy/v1', 'poddisruptionbudgets'],
  NetworkPolicy: ['apis/networking.k8s.io/v1', 'networkpolicies'],
  Event: ['apis/events.k8s.io/v1', 'events'],
  Lease: ['apis/coordination.k8s.io/v1', 'leases'],
  Role: ['apis/rbac.authorization.k8s.io/v1', 'roles'],
  RoleBinding: ['apis/rbac.authorization.k8s.io/v1', 'rolebindings'],
} as const;

export type KindName = keyof typeof PATHS;

/** Path of a collection, or of one object in it. */
export function pathOf(kind: KindName, namespace: string, name?: string): string {
  const [root, plural] = PATHS[kind];
  return `/${root}/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;
}

export class ApiClient {
  readonly #options: RequestOptions;

  /** @param user in whose place it acts, in no group */
  constructor(kubeconfig: string, user?: string) {
    const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Json;
    const { server, 'certificate-authority-data': authority } = clusters[0].cluster;
    const { hostname, port } = new URL(server);
    this.#options = {
      hostname,
      port,
      ca: Buffer.from(authority, 'base64'),
      headers: {
        authorization: `Bearer ${users[0].user.token}`,
        accept: 'application/json',
        ...(user && { 'impersonate-user': user }),
      },
      agent: new Agent({ keepAlive: true, maxSockets: 8 }),
      timeout: 20_000,
    };
  }

  get(path: string): Promise<Json> {
    return this.request('GET', path);
  }

  post(path: string, body: unknown): Promise<Json> {
    return this.request('POST', path, body);
  }

  put(path: string, body: unknown): Promise<Json> {
    return this.request('PUT', path, body);
  }

  /** JSON merge patch. */
  patch(path: string, body: unknown): Promise<Json> {
    return this.request('PATCH', path, body, 'application/merge-patch+json');
  }

  delete(path: string): Promise<Json> {
    return this.request('DELETE', path);
  }

  /** The object, or undefined when there is none. */
  async find(path: string): Promise<Json | undefined> {
    try {
      return await this.get(path);
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return undefined;
      throw error;
    }
  }

  /** @throws StatusError for an answer other than 2xx */
  request(method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<Json> {
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    const headers = { ...this.#options.headers, 'content-type': contentType } as Record<string, string>;
    const outgoing = request({ ...this.#options, method, path, headers }, async (response) => {
      try {
        const text = (await response.toArray()).join('');
        const code = response.statusCode ?? 0;
        const json = text.startsWith('{') ? JSON.parse(text) : { message: text };
        if (code >= 200 && code < 300) resolve(json);
        else reject(new StatusError(code, json));
      } catch (error) {
        reject(error);
      }
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer for 20 s`)));
    outgoing.on('error', reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }
}

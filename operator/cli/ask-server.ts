/**
 * `corelane check --server`: what the API server and its admission say of a RenderService, of each object that the
 * operator makes of it, and of one of its pods, before anything is applied. All requests are dry runs, which write
 * nothing.
 */
import type { Refusal, ServerAnswers } from '../check/workload.ts';
import type { Manifest } from '../convert/manifests.ts';
import { API_VERSION, KIND, LABEL_RENDER_SERVICE, NGINX_CONTAINER, PLURAL } from '../src/api/names.ts';
import { parseStored } from '../src/api/resource.ts';
import { assertOwned } from '../src/kube/apply.ts';
import { kinds } from '../src/kube/kinds.ts';
import { ApiError } from '../src/kube/rest.ts';
import type { KubeObject } from '../src/kube/types.ts';
import { desiredObjects, type PlannedObject } from '../src/plan/index.ts';
import { objectWayOut, podWayOut } from '../src/pods/problems.ts';
import { Cluster, type Draft, ifNotAllowed } from './cluster.ts';
import { version } from './version.ts';

/** The user may not do this; admission has not been asked. */
const NO_RIGHT = /is forbidden: User "[^"]*" cannot [a-z]+ resource/;
/** A webhook that would have to act outside of the API server. */
const NO_DRY_RUN = /does not support dry run/;

/** Asks about a RenderService of a file. @param namespace where it names none */
export async function askServer({ value }: Manifest, namespace: string | undefined): Promise<ServerAnswers> {
  const { metadata, spec } = value as { metadata: KubeObject['metadata']; spec: unknown };
  const cluster = new Cluster(metadata.namespace ?? namespace);
  try {
    return await new Questions(cluster).about(metadata, spec);
  } finally {
    await cluster.close();
  }
}

class Questions {
  readonly #cluster: Cluster;
  readonly #refusals: Refusal[] = [];
  readonly #notAsked: string[] = [];

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async about({ name, labels, annotations }: KubeObject['metadata'], spec: unknown): Promise<ServerAnswers> {
    const draft = { apiVersion: API_VERSION, kind: KIND, metadata: { name, labels, annotations }, spec };
    const made = await this.#ask(`RenderService "${name}"`, PLURAL, draft);
    if (this.#refusals.length === 0) {
      const { metadata } = made ?? (await this.#found(name)) ?? draft;
      // Every object has the labels of the RenderService, and a policy may ask for them.
      await this.#aboutPlan({ ...metadata, labels: { ...metadata.labels, ...labels } }, spec);
    }
    return { refusals: this.#refusals, notAsked: this.#notAsked };
  }

  /** The resource as it is, for those who may not write one. */
  async #found(name: string): Promise<KubeObject | undefined> {
    return await this.#cluster.find(kinds.renderService, name).catch(ifNotAllowed);
  }

  /** What the operator makes of it; a spec that it refuses is a finding of its own. */
  async #aboutPlan({ name = '', uid = '', labels = {} }: Draft['metadata'], spec: unknown): Promise<void> {
    const known = { name, namespace: this.#cluster.namespace, uid, labels, generation: 1, resourceVersion: '' };
    const parsed = parseStored({ apiVersion: API_VERSION, kind: KIND, metadata: known, spec });
    if (!parsed.ok) return;
    const access = { namespace: 'corelane', monitoring: [] };
    const planned = desiredObjects(parsed.renderService, { image: await this.#sidecarImage() }, access);
    for (const object of planned) await this.#aboutObject(object, uid !== '');
    const deployment = planned.find(({ kind }) => kind === kinds.deployment.kind);
    if (deployment) await this.#aboutPod(name, deployment);
  }

  /** That of another RenderService here, which a policy about images lets pass; else that of this version. */
  async #sidecarImage(): Promise<string> {
    const query = { labelSelector: LABEL_RENDER_SERVICE };
    const found = await this.#cluster.list('apps/v1', 'Deployment', 'deployments', query).catch(ifNotAllowed);
    const proxies = (found ?? []).flatMap(({ value }) =>
      (templateOf(value).spec.initContainers ?? []).filter(({ name }) => name === NGINX_CONTAINER),
    );
    return proxies[0]?.image ?? `ghcr.io/corelane/sidecar:${version()}`;
  }

  async #aboutObject(object: PlannedObject, isOwnerKnown: boolean): Promise<void> {
    const { kind, metadata } = object;
    const known = Object.values(kinds).find((one) => one.kind === kind);
    if (!known) throw new Error(`no path for kind ${kind}`);
    const live = isOwnerKnown ? await this.#cluster.find(known, metadata.name).catch(ifNotAllowed) : undefined;
    try {
      if (live) assertOwned(live, object as KubeObject);
    } catch (error) {
      this.#refusals.push({ what: sentence((error as Error).message) });
      return;
    }
    // The owner may be one of a dry run.
    const { ownerReferences: _owner, ...others } = metadata;
    await this.#ask(`${kind} "${metadata.name}"`, known.plural, { ...object, metadata: others }, objectWayOut);
  }

  /** What LimitRanges, quotas, Pod Security and policies about pods say; of a Deployment they say nothing. */
  async #aboutPod(name: string, deployment: PlannedObject): Promise<void> {
    const { metadata, spec } = templateOf(deployment);
    const pod: Draft = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, generateName: `${name}-` },
      spec,
    };
    await this.#ask('a pod', kinds.pod.plural, pod, (message) => podWayOut(message, spec));
  }

  /** The object as it would become; undefined where it would be refused, or cannot be asked about. */
  async #ask(
    what: string,
    plural: string,
    draft: Draft,
    wayOutOf: (message: string) => string | undefined = () => undefined,
  ): Promise<Draft | undefined> {
    try {
      return await this.#cluster.dryRun(plural, draft);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { message } = error;
      if (NO_RIGHT.test(message) || NO_DRY_RUN.test(message)) this.#notAsked.push(what);
      else this.#refusals.push({ what: `${what} would be refused: ${sentence(message)}`, wayOut: wayOutOf(message) });
      return undefined;
    }
  }
}

interface Template {
  metadata: object;
  spec: { initContainers?: { name: string; image?: string }[]; containers?: { name: string }[] };
}

function templateOf(deployment: Record<string, unknown>): Template {
  return (deployment.spec as { template: Template }).template;
}

/** Without its end, behind which more is said. */
function sentence(text: string): string {
  return text.replace(/[.!?\s]+$/, '');
}

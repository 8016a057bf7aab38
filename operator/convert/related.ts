/** Which of the objects that were read belong to the Deployment. */
import type {
  V1ConfigMap,
  V1Deployment,
  V1Ingress,
  V1LimitRange,
  V1PersistentVolumeClaim,
  V1PodDisruptionBudget,
  V1Service,
  V2HorizontalPodAutoscaler,
} from '@kubernetes/client-node';
import type { Finding } from '../check/finding.ts';
import { PARTS, type ReadKind, wrongParts } from '../check/parts.ts';
import type { ScaledObject, VerticalPodAutoscaler } from '../check/workload.ts';
import { type Closer, closersOf, isUnreadCloser } from './closers.ts';
import { isNamedForPages, pagePort } from './leads.ts';
import { withoutMadeByKeda } from './made-by-keda.ts';
import { isRecord, type Manifest } from './manifests.ts';
import { isMonitorOf } from './monitors.ts';
import { matches } from './selectors.ts';

/** An object with the manifest that it was read from. */
export interface Found<T> {
  manifest: Manifest;
  value: T;
}

/** Another workload of the namespace, whose pods a Service may select, too. */
export interface Workload {
  /** Kind and name. */
  object: string;
  /** Of its pods. */
  labels: Record<string, string>;
}

export interface Related {
  /** The one that pages most likely come by is the first. */
  services: Found<V1Service>[];
  /** Deployments and others that were given and that nobody else has made. */
  workloads: Workload[];
  ingresses: Found<V1Ingress>[];
  autoscalers: Found<V2HorizontalPodAutoscaler>[];
  scaledObjects: Found<ScaledObject>[];
  verticalAutoscalers: Found<VerticalPodAutoscaler>[];
  budgets: Found<V1PodDisruptionBudget>[];
  claims: V1PersistentVolumeClaim[];
  configMaps: V1ConfigMap[];
  limitRanges: V1LimitRange[];
  /** Policies that select the pods of the Deployment, or those of a RenderService. */
  closers: Closer[];
  /** Policies of which nobody knows what they select. */
  unreadClosers: Manifest[];
  /** ServiceMonitors and PodMonitors of the Deployment. */
  monitors: Manifest[];
  /** About documents that were not used. */
  findings: Finding[];
}

/** Istio's root namespace, where nobody has chosen another one. */
const ISTIO_ROOT = 'istio-system';
/** Documents that a RenderService has nothing to do with are told together; each kind by its first few names. */
const NAMED_MAX = 12;

function isReadKind(kind: string): kind is ReadKind {
  return Object.hasOwn(PARTS, kind);
}

/** @param others all that was read but the Deployment itself */
export function relatedTo(deployment: V1Deployment, others: Manifest[]): Related {
  const sorter = new Sorter(deployment, others);
  return sorter.related();
}

class Sorter {
  readonly #deployment: V1Deployment;
  readonly #usable: Manifest[] = [];
  readonly #used = new Set<Manifest>();
  readonly #findings: Finding[] = [];

  constructor(deployment: V1Deployment, others: Manifest[]) {
    this.#deployment = deployment;
    for (const manifest of withoutMadeByKeda(others)) {
      const wrong = isReadKind(manifest.kind) ? wrongParts(manifest.kind, manifest.value) : [];
      if (wrong.length === 0 && this.#isInNamespace(manifest)) this.#usable.push(manifest);
      if (wrong.length > 0) this.#findings.push(unreadable(manifest, wrong));
    }
  }

  related(): Related {
    const labels = this.#deployment.spec?.template.metadata?.labels ?? {};
    const name = this.#deployment.metadata?.name;
    const isMeant = (target?: { kind?: string; name?: string }) =>
      target?.name === name && (target?.kind ?? 'Deployment') === 'Deployment';
    const services = this.#of<V1Service>('Service', ({ spec }) => {
      const selector = spec?.selector ?? {};
      // One of type ExternalName is a name in DNS, whatever it selects.
      const isOfPods = Object.keys(selector).length > 0 && spec?.type !== 'ExternalName';
      return isOfPods && matches({ matchLabels: selector }, labels);
    });
    const serviceNames = [name, ...services.map(({ manifest }) => manifest.name)];
    const ingresses = this.#of<V1Ingress>('Ingress', (ingress) =>
      backends(ingress).some((one) => serviceNames.includes(one)),
    );
    const claimed = (this.#deployment.spec?.template.spec?.volumes ?? []).map(
      ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName,
    );
    const labelsOfServices = services.map(({ value }) => value.metadata?.labels ?? {});
    const related = {
      services: pagesFirst(services, { name, entered: ingresses.flatMap(({ value }) => backends(value)) }),
      workloads: this.#usable.flatMap((manifest) => workloadOf(manifest) ?? []),
      ingresses,
      autoscalers: this.#of<V2HorizontalPodAutoscaler>('HorizontalPodAutoscaler', ({ spec }) =>
        isMeant(spec?.scaleTargetRef),
      ),
      scaledObjects: this.#of<ScaledObject>('ScaledObject', ({ spec }) => isMeant(spec?.scaleTargetRef)),
      verticalAutoscalers: this.#of<VerticalPodAutoscaler>('VerticalPodAutoscaler', ({ spec }) =>
        isMeant(spec?.targetRef),
      ),
      budgets: this.#of<V1PodDisruptionBudget>('PodDisruptionBudget', ({ spec }) =>
        matches(spec?.selector ?? {}, labels),
      ),
      claims: this.#of<V1PersistentVolumeClaim>('PersistentVolumeClaim', ({ metadata }) =>
        claimed.includes(metadata?.name),
      ).map(({ value }) => value),
      configMaps: this.#of<V1ConfigMap>('ConfigMap', () => true).map(({ value }) => value),
      limitRanges: this.#of<V1LimitRange>('LimitRange', () => true).map(({ value }) => value),
      closers: this.#closers(labels),
      unreadClosers: this.#marked(isUnreadCloser),
      monitors: this.#marked((manifest) => isMonitorOf(manifest, labelsOfServices, labels)),
    };
    return { ...related, findings: [...this.#findings, ...this.#rest()] };
  }

  #of<T>(kind: ReadKind, isWanted: (value: T) => boolean): Found<T>[] {
    const found = this.#usable.filter((manifest) => manifest.kind === kind && isWanted(manifest.value as T));
    for (const manifest of found) this.#used.add(manifest);
    return found.map((manifest) => ({ manifest, value: manifest.value as T }));
  }

  #closers(labels: Record<string, string>): Closer[] {
    const found = this.#usable.flatMap((manifest) => closersOf(manifest));
    const wanted = found.filter(({ takes, isForNew, services }) => isForNew || takes(labels) || services.length > 0);
    for (const { manifest } of wanted) this.#used.add(manifest);
    return wanted;
  }

  /** Manifests that something is said about. */
  #marked(isWanted: (manifest: Manifest) => boolean): Manifest[] {
    const found = this.#usable.filter(isWanted);
    for (const manifest of found) this.#used.add(manifest);
    return found;
  }

  #isInNamespace({ value }: Manifest): boolean {
    const own = this.#deployment.metadata?.namespace;
    const other = isRecord(value.metadata) ? value.metadata.namespace : undefined;
    // Policies of Istio's root namespace are for all namespaces.
    const isForAll = other === ISTIO_ROOT && String(value.apiVersion).startsWith('security.istio.io/');
    return own === undefined || other === undefined || own === other || isForAll;
  }

  *#rest(): Generator<Finding> {
    const unused = this.#usable.filter((manifest) => !this.#used.has(manifest));
    const names = unused.map(({ kind, name }) => `${kind}/${name}`);
    if (names.length === 0) return;
    const more = names.length > NAMED_MAX ? [`and ${names.length - NAMED_MAX} more`] : [];
    yield {
      code: 'C017',
      level: 'info',
      object: [...names.slice(0, NAMED_MAX), ...more].join(', '),
      path: '',
      what: 'not part of the RenderService',
      why: 'A kind of its own, or for other pods',
      wayOut: 'Keep it as it is.',
    };
  }
}

/** An object with a pod template; undefined for all others, and for what another one has made, as ReplicaSets are. */
function workloadOf({ kind, name, value: { metadata, spec } }: Manifest): Workload | undefined {
  const template = isRecord(spec) ? spec.template : undefined;
  const ofPods = isRecord(template) ? template.metadata : undefined;
  const isMade = isRecord(metadata) && Array.isArray(metadata.ownerReferences);
  if (isMade || !isRecord(ofPods) || !isRecord(ofPods.labels)) return undefined;
  return { object: `${kind}/${name}`, labels: ofPods.labels as Record<string, string> };
}

function unreadable({ kind, name }: Manifest, wrong: string[]): Finding {
  return {
    code: 'C017',
    level: 'warning',
    object: `${kind}/${name}`,
    path: '',
    what: `not used: ${wrong[0]}`,
    why: 'The API server would refuse it, too',
    wayOut: 'Mend it and convert again.',
  };
}

/**
 * The Services, first the one that pages most likely come by: an Ingress leads to it, its port is named for pages, it
 * has a usual port, or the name of the Deployment. Among equals the order stays.
 */
function pagesFirst(
  services: Found<V1Service>[],
  { name, entered }: { name: string | undefined; entered: string[] },
): Found<V1Service>[] {
  const rank = ({ manifest, value }: Found<V1Service>) => {
    const port = pagePort(value);
    const isNamed = isNamedForPages(port?.name) || isNamedForPages(port?.targetPort);
    const isUsual = port?.port === 80 || port?.port === 443;
    return [entered.includes(manifest.name), isNamed, isUsual, manifest.name === name].reduce(
      (sum, holds) => 2 * sum + Number(holds),
      0,
    );
  };
  return services.toSorted((one, other) => rank(other) - rank(one));
}

/** Names of the Services that an Ingress leads to. */
export function backends({ spec }: V1Ingress): string[] {
  const found: string[] = [];
  JSON.stringify(spec ?? {}, (key, value) => {
    if (key === 'service' && isRecord(value) && typeof value.name === 'string') found.push(value.name);
    return value;
  });
  return found;
}

/** A Deployment, and what stands around it, as a RenderService: `corelane convert`. Pure: text in, text out. */
import type { V1Container, V1Deployment, V1PodSpec } from '@kubernetes/client-node';
import type { Code } from '../check/codes.ts';
import { type Finding, reaches } from '../check/finding.ts';
import { checkWorkload } from '../check/index.ts';
import { wrongParts } from '../check/parts.ts';
import { hasSeveralProcesses } from '../check/processes.ts';
import { refusals } from '../check/refusals.ts';
import { type ImageConfig, type Surroundings, unknownSurroundings } from '../check/workload.ts';
import { API_VERSION, KIND } from '../src/api/names.ts';
import { parseRenderService, type RenderServiceResource } from '../src/api/resource.ts';
import { writeBudget, writeService } from './around.ts';
import { writeScaling } from './autoscalers.ts';
import { writeCapacity } from './capacity.ts';
import { keepClosed } from './closers.ts';
import { followContainers } from './container-names.ts';
import { metadataFields, specFields } from './deployment.ts';
import { Draft } from './draft.ts';
import { refuseFronts } from './fronts.ts';
import { ManifestError } from './kubectl-yaml.ts';
import { type Pods, pagePort, targetOf } from './leads.ts';
import { isRecord, type Manifest } from './manifests.ts';
import { followPorts } from './named-ports.ts';
import { type Related, relatedTo } from './related.ts';
import {
  moveLabels,
  quoteFractions,
  removeDefaults,
  removeDuplicates,
  removeNothing,
  removeOldMetadata,
  removeRefused,
} from './template.ts';
import { trafficPlan } from './traffic-plan.ts';
import { chooseWorker, removeTakenOver, renameContainers } from './worker.ts';

export interface ConvertOptions {
  /** Name of the RenderService; that of the Deployment unless given. */
  name?: string;
  namespace?: string;
  /** Container that renders. */
  container?: string;
  workersPerPod?: number | 'auto';
  /** Sizes of the nodes, where they are known. */
  nodes?: Surroundings['nodes'];
  images?: Record<string, ImageConfig>;
  /** Kinds that the user may not list: whether there are such objects is not known. */
  unread?: string[];
}

export interface Conversion {
  /** YAML of the RenderService; undefined where it is withheld. */
  text?: string;
  /** Why there is no text. */
  withheld?: string;
  findings: Finding[];
  /** Commands that move traffic, with comments; none where there is no text. */
  plan: string[];
  looked: Code[];
  skipped: { code: Code; why: string }[];
}

/**
 * @param deployment the one to convert
 * @param others all else that was read
 * @throws ManifestError for what is no Deployment
 */
export function convert(deployment: Manifest, others: Manifest[], options: ConvertOptions = {}): Conversion {
  const wrong = wrongParts('Deployment', deployment.value);
  if (wrong.length > 0)
    throw new ManifestError(`${deployment.file}: Deployment ${deployment.name} is none: ${wrong.join('; ')}`);
  const value = deployment.value as V1Deployment;
  const related = relatedTo(value, others);
  const draft = new Draft(deployment);
  const { name = deployment.name } = options;
  if (name !== deployment.name) draft.replace(['metadata', 'name'], name);
  const namespace = options.namespace ?? value.metadata?.namespace;
  sayUnread(draft, options.unread ?? []);
  metadataFields(draft);
  specFields(draft, value, isFromServer(value));
  const pods = template(draft, value, related, { ...options, name });
  const plan = trafficPlan({ draft, related, others, pods, name, isChosen: options.name !== undefined, namespace });
  return finish(draft, related, plan, options);
}

/** Kinds without which nobody knows what leads to the old pods, and what closes them. */
const DECISIVE = /^(Service|PodDisruptionBudget|Server)$|(Policy|Authentication)$/;

function sayUnread(draft: Draft, unread: string[]): void {
  const kinds = [...new Set(unread)].filter((kind) => DECISIVE.test(kind));
  if (kinds.length === 0) return;
  draft.say('', {
    code: 'C010',
    level: 'decide',
    what: `you may not list ${kinds.join(', ')}`,
    why: 'What leads to the old pods, or closes them, may be there, and is not looked at',
    wayOut: 'Let somebody who may list them convert, or give them with -f.',
  });
}

/** Whether an API server has had the object, and has added its defaults: also `kubectl get -o yaml`. */
function isFromServer({ metadata }: V1Deployment): boolean {
  return metadata?.uid !== undefined;
}

/** Every step on the pod template, and what is reckoned from it. @returns the pods as they were */
function template(
  draft: Draft,
  value: V1Deployment,
  related: Related,
  options: ConvertOptions & { name: string },
): Pods {
  const before = value.spec?.template.metadata?.labels ?? {};
  removeNothing(draft);
  if (isFromServer(value)) removeDefaults(draft);
  quoteFractions(draft);
  removeDuplicates(draft);
  removeOldMetadata(draft);
  removeRefused(draft);
  const page = pagePort(related.services[0]?.value);
  const targetPort = page?.targetPort ?? page?.port;
  const worker = chooseWorker(draft, { container: options.container, name: draft.source.name, targetPort });
  const pods = podsOf(value, worker, page);
  refuseFronts(draft, related.services, pods, options.name);
  const container = draft.container(worker);
  const several = hasSeveralProcesses(container, options.images?.[container.image ?? '']);
  removeTakenOver(draft, worker, targetPort);
  const renamed = renameContainers(draft, worker);
  const keys = [
    ...Object.keys(value.spec?.selector?.matchLabels ?? {}),
    ...related.services.flatMap((service) => Object.keys(service.value.spec?.selector ?? {})),
  ];
  moveLabels(draft, keys, options.name);
  const { closers, unreadClosers: unread } = related;
  const services = related.services.map(({ manifest }) => manifest.name);
  keepClosed(draft, { closers, unread }, { before, pods, services, name: options.name });
  const replicas = value.spec?.replicas ?? undefined;
  const nodeCpu = options.nodes?.toSorted((one, other) => other.cpu - one.cpu)[0]?.cpu;
  const { workersPerPod } = options;
  const capacity = writeCapacity(draft, { worker, workersPerPod, nodeCpu, hasSeveralProcesses: several, replicas });
  followContainers(draft, { worker, name: container.name, workers: capacity.workersPerPod, renamed });
  const { isScaled } = writeScaling(draft, related, capacity, options.name);
  if (replicas !== undefined && !isScaled) draft.set('replicas', capacity.podsFor(replicas));
  sayReplicas(draft, replicas, isScaled);
  writeService(draft, related, pods, options.name);
  followPorts(draft, related, pods, options.name);
  writeBudget(draft, related.budgets, {
    selector: value.spec?.selector,
    pods: replicas === undefined ? undefined : capacity.podsFor(replicas),
    name: options.name,
  });
  return pods;
}

function podsOf({ spec }: V1Deployment, worker: number, page: ReturnType<typeof pagePort>): Pods {
  const pod = spec?.template.spec as V1PodSpec;
  return { spec: pod, worker: pod.containers[worker] as V1Container, pages: page && targetOf(page, pod).to };
}

function sayReplicas(draft: Draft, replicas: number | undefined, isScaled: boolean): void {
  if ((replicas === undefined) === isScaled) return;
  draft.say('spec.replicas', {
    code: 'C016',
    level: 'info',
    what: isScaled ? 'left out' : 'not given, so there are 2 pods',
    why: isScaled
      ? 'What scales the fleet writes it, and a manifest that has it sets it back at each apply'
      : 'A Deployment has 1 then; with 2 the loss of one does not take all with it',
    wayOut: isScaled ? 'Nothing to do.' : 'Set replicas to another number, or scaling.',
  });
}

/** The rules of the operator, then those of `check`, on what has been written. */
function finish(draft: Draft, related: Related, plan: string[], options: ConvertOptions): Conversion {
  const { metadata, spec } = draft.value();
  const resource = { apiVersion: API_VERSION, kind: KIND, metadata, spec } as unknown as RenderServiceResource;
  const parsed = parseRenderService(resource);
  const findings = [...draft.findings, ...related.findings];
  if (!parsed.ok) {
    const refused = refusals(parsed.errors, draft.object);
    const withheld = 'the API server would refuse it';
    return { withheld, findings: [...findings, ...refused], plan: [], looked: [], skipped: [] };
  }
  const values = <T>(found: { value: T }[]) => found.map(({ value }) => value);
  const report = checkWorkload({
    origin: 'Deployment',
    name: parsed.renderService.metadata.name,
    object: draft.object,
    spec: parsed.renderService.spec,
    surroundings: {
      ...unknownSurroundings(),
      nodes: options.nodes,
      services: values(related.services),
      ingresses: values(related.ingresses),
      claims: related.claims,
      configMaps: related.configMaps,
      images: options.images ?? {},
      ...(related.limitRanges.length > 0 && { limitRanges: related.limitRanges }),
    },
  });
  return {
    ...(draft.isRefused
      ? { plan: [], withheld: 'it would open what is closed, or delete what has to stay' }
      : { text: draft.text(), plan }),
    findings: [...findings, ...report.findings],
    looked: report.looked,
    skipped: report.skipped,
  };
}

/** Kinds of which somebody may ask for a conversion, and what to do instead. */
const REFUSED: Record<string, string> = {
  StatefulSet:
    'Its pods have names and volumes of their own, which those of a RenderService have not. Make it a Deployment first: no volumeClaimTemplates, no pod that is addressed by its name.',
  DaemonSet: 'It has a pod for each node, a RenderService as many as the load takes. Make it a Deployment first.',
  Job: 'It ends; workers are servers. Leave it as it is.',
  CronJob: 'It ends; workers are servers. Leave it as it is.',
  Rollout:
    'Write its template as a Deployment (workloadRef names one); rollout.rolling takes the place of its strategy.',
  DeploymentConfig: 'Write it as a Deployment (oc get dc -o yaml shows the template).',
  ReplicaSet: 'Convert the Deployment that owns it.',
  Pod: 'Write a Deployment around it.',
};
const KNATIVE =
  'It scales to zero and has revisions, which a RenderService has not. Write its spec.template.spec as the template of a Deployment, containerConcurrency as concurrency, min-scale and max-scale as scaling.';

/** The finding on an object that is no Deployment although it has pods; undefined for all others. */
export function refusedKind({ kind, name, value }: Manifest): Finding | undefined {
  const isKnative = kind === 'Service' && String(value.apiVersion).startsWith('serving.knative.dev/');
  const wayOut = isKnative ? KNATIVE : Object.hasOwn(REFUSED, kind) ? REFUSED[kind] : undefined;
  if (wayOut === undefined) return undefined;
  const [why = '', ...rest] = wayOut.split('. ');
  return {
    code: 'C018',
    level: 'error',
    object: `${isKnative ? 'Knative Service' : kind}/${name}`,
    path: 'kind',
    what: `a ${isKnative ? 'Knative Service' : kind} cannot be converted`,
    why,
    wayOut: rest.join('. '),
  };
}

/** Whether a conversion leaves something for a person to do first. */
export function isOpen(findings: Finding[], isStrict: boolean): boolean {
  return reaches(findings, isStrict ? 'warning' : 'decide');
}

/** Whether an object has a Deployment's kind and API. */
export function isDeployment({ kind, value }: Manifest): boolean {
  return kind === 'Deployment' && isRecord(value) && /^(apps|extensions)\//.test(String(value.apiVersion));
}

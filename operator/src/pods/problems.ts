/**
 * Why pods are missing or do not run: in the words of whoever says so (API server, scheduler, kubelet), and with the
 * way out. What a user would look for with `kubectl describe` of the ReplicaSet and of its pods. docs/why-no-pods.md
 * shows them.
 */
import { ASSETS_CONTAINER, HAPROXY_CONTAINER, NGINX_CONTAINER } from '../api/names.ts';
import { unpacked } from '../kube/packed.ts';
import type { KubeObject } from '../kube/types.ts';
import { type PodContainers, resourcesWayOut } from './refused-resources.ts';
import { type Ended, type PodStatus, statusOf } from './status.ts';

/** Text, and what helps. The first that matches counts. */
type Hints = [pattern: RegExp, wayOut: string][];

/** The API server refuses to make a pod, for another reason than its resources. */
const REFUSALS: Hints = [
  [
    /violates PodSecurity/,
    'set in the template what it names (securityContext), or give the namespace another Pod Security level',
  ],
  [
    /error looking up service account|serviceaccount "[^"]*" not found/,
    'make that ServiceAccount, or leave serviceAccountName out of the template',
  ],
  [/no PriorityClass with name/, 'make that PriorityClass, or leave priorityClassName out of the template'],
  [/runtimeclass|RuntimeClass/, 'make that RuntimeClass, or leave runtimeClassName out of the template'],
  [/failed calling webhook/, "that webhook is not Corelane's and does not answer: whoever runs it must mend it"],
  [
    /denied the request|ValidatingAdmissionPolicy/,
    "that rule is not Corelane's: change the template as it asks, or speak with whoever made it",
  ],
];

/** The API server refuses another object of a RenderService. */
const OBJECT_REFUSALS: Hints = [
  [
    /denied the request|ValidatingAdmissionPolicy/,
    'change the RenderService as that rule asks (all of its objects have its metadata.labels), or speak with whoever made it',
  ],
];

/** Reason of a Deployment whose ReplicaSet the API server refuses. */
const NO_REPLICA_SET = 'ReplicaSetCreateError';

/** The scheduler finds no node. */
const UNSCHEDULED: Hints = [
  [/persistentvolumeclaim "[^"]*" not found/, 'make that claim'],
  [/unbound .*PersistentVolumeClaims/, 'the claim has no volume: look at it with kubectl describe pvc'],
  [/Insufficient/, 'add nodes, or ask for less: resources of the template x workersPerPod, and spec.sidecar'],
  [
    /untolerated taint.*didn't match Pod's node|didn't match Pod's node.*untolerated taint/,
    'no node without a taint has the labels that nodeSelector or affinity ask for: mend these, or add a toleration to the template',
  ],
  [/didn't match Pod's node (affinity|selector)/, 'no node has the labels that nodeSelector or affinity ask for'],
  [/untolerated taint/, 'add a toleration to the template, or take the taint off'],
  [/topology spread constraints/, "the template's own topologySpreadConstraints leave no node"],
  [/too many pods/i, 'add nodes'],
];

const NO_COMMAND = 'is the command in the image, and may its user run it?';

/** kubelet cannot start a container. Reasons of a waiting one. */
const WAITING: Record<string, string> = {
  ErrImagePull: 'is the name right, is it there, and does the node have the right to it (imagePullSecrets)?',
  ImagePullBackOff: 'is the name right, is it there, and does the node have the right to it (imagePullSecrets)?',
  InvalidImageName: 'mend the name of the image',
  ErrImageNeverPull:
    'imagePullPolicy is Never and the node does not have it: load it onto the nodes, or change the policy',
  CreateContainerConfigError:
    'a ConfigMap, Secret or key that the template names is not there: make it, or mark it optional',
  CreateContainerError: 'kubectl describe the pod',
  RunContainerError: NO_COMMAND,
};

/** Ends of a container whose program was not even started. */
const NEVER_BEGUN = new Set(['StartError', 'ContainerCannotRun']);
const CRASH_LOOP = 'CrashLoopBackOff';
/** Programs of ours. */
const OURS = new Set<string>([HAPROXY_CONTAINER, NGINX_CONTAINER, ASSETS_CONTAINER]);
/** Waits that are the normal course of a start. */
const NORMAL_WAITS = new Set(['ContainerCreating', 'PodInitializing']);
/** A node has pulled a large image, and mounted volumes, by then; or it says why not. */
export const CREATING_MS = 60_000;
/** The API server's and the scheduler's words can be long: one line of each node. */
const TEXT_MAX = 600;

/** Whether a condition of a Deployment says that the API server refuses its ReplicaSet, or pods of that one. */
export function tellsRefusal({ type, status, reason }: { type: string; status: string; reason?: string }): boolean {
  return status === 'True' ? type === 'ReplicaFailure' : reason === NO_REPLICA_SET;
}

/** Whether a Deployment has no ReplicaSet because the API server refuses it. It observes no generation then. */
export function isWithoutReplicaSet({ status }: KubeObject): boolean {
  const { conditions = [] } = (status ?? {}) as PodStatus;
  return conditions.some(({ reason }) => reason === NO_REPLICA_SET);
}

/** Why no more pods are made, or undefined: in the words of a condition of the Deployment. */
export function refusalOf({ spec, status }: KubeObject): string | undefined {
  const { conditions = [] } = (status ?? {}) as PodStatus;
  const failure = conditions.find(tellsRefusal);
  if (!failure) return undefined;
  const template = unpacked((spec as { template?: unknown } | undefined)?.template) as
    | { spec?: PodContainers }
    | undefined;
  const text = failure.message ?? failure.reason ?? '';
  return `pods cannot be made: ${withWayOut(text, podWayOut(text, template?.spec ?? {}))}`;
}

/** What helps where the API server refuses to make a pod with these words; undefined where that is not known. */
export function podWayOut(refusal: string, pod: PodContainers): string | undefined {
  return resourcesWayOut(refusal, pod) ?? hintOf(refusal, REFUSALS);
}

/** What helps where the API server refuses another object with these words; undefined where that is not known. */
export function objectWayOut(refusal: string): string | undefined {
  return hintOf(refusal, OBJECT_REFUSALS);
}

/** Why the API server refuses an object that is no pod, with what helps where that is known. */
export function objectRefusal(refusal: string): string {
  const wayOut = objectWayOut(refusal);
  return wayOut === undefined ? refusal : withWayOut(refusal, wayOut);
}

/** A sentence about the first pod that cannot run, or undefined. */
export function podProblem(pods: KubeObject[], now: Date): string | undefined {
  for (const pod of pods) {
    const problem = unscheduled(pod) ?? waiting(pod) ?? ending(pod) ?? creating(pod, now);
    if (problem) return problem;
  }
  return undefined;
}

/** Whether a pod may have a problem that only time will tell. */
export function isCreating(pod: KubeObject): boolean {
  const { conditions = [] } = statusOf(pod);
  const is = (wanted: string, value: string) =>
    conditions.some(({ type, status }) => type === wanted && status === value);
  return is('PodScheduled', 'True') && is('PodReadyToStartContainers', 'False');
}

function unscheduled(pod: KubeObject): string | undefined {
  const { conditions = [] } = statusOf(pod);
  const condition = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  if (!condition) return undefined;
  const text = condition.message ?? condition.reason ?? '';
  return `pod ${pod.metadata.name} cannot be scheduled: ${withWayOut(text, hintOf(text, UNSCHEDULED))}`;
}

function waiting(pod: KubeObject): string | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = statusOf(pod);
  for (const { name, state, lastState } of [...initContainerStatuses, ...containerStatuses]) {
    const { reason, message } = state?.waiting ?? {};
    if (!reason || NORMAL_WAITS.has(reason)) continue;
    const where = `${about(pod, name)}: ${reason}`;
    // The message of a crash loop has its growing back-off: it would change the status at every restart.
    if (reason === CRASH_LOOP) return `${where}${crash(lastState?.terminated, pod.metadata.name, name)}`;
    const detail = message ? ` (${message.slice(0, TEXT_MAX)})` : '';
    return `${where}${detail}${WAITING[reason] ? `: ${WAITING[reason]}` : ''}`;
  }
  return undefined;
}

/**
 * A container that ends again and again, before kubelet says CrashLoopBackOff: while it backs off it goes on showing
 * the end for up to a minute, after each try. An init container may end well after a try that failed.
 */
function ending(pod: KubeObject): string | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = statusOf(pod);
  const failed = initContainerStatuses.filter(({ state }) => state?.terminated?.exitCode !== 0);
  const found = [...failed, ...containerStatuses].find(
    ({ state, lastState }) => state?.terminated && lastState?.terminated,
  );
  if (!found) return undefined;
  const { name, state } = found;
  return `${about(pod, name)}: ${CRASH_LOOP}${crash(state?.terminated, pod.metadata.name, name)}`;
}

function about({ metadata }: KubeObject, container: string): string {
  return `container ${container} of pod ${metadata.name}`;
}

/** Lines without what a terminal obeys: whoever has taken over a container can write what it likes there. */
function printable(text: string): string[] {
  return text.split('\n').map((line) => line.replace(/\p{C}/gu, ' ').trim());
}

/**
 * How a container has ended that is started again and again, and what helps; where it has never begun there is no log.
 * Our own programs say in the message of their end what they cannot work with: an operator of another release, or an
 * image without the files that nginx is to serve.
 */
function crash({ reason = 'Error', exitCode, message = '' }: Ended = {}, pod: string, name: string): string {
  const container = `${pod} -c ${name}`;
  if (NEVER_BEGUN.has(reason)) return ` (${reason}: ${message.slice(0, TEXT_MAX).trim()}): ${NO_COMMAND}`;
  const how = exitCode === undefined ? '' : ` (${reason}, exit code ${exitCode})`;
  if (reason === 'OOMKilled') return `${how}: give it a higher memory limit, or less to keep`;
  const [lastWords] = OURS.has(name) ? printable(message) : [];
  if (lastWords) return `${how}: "${lastWords.slice(0, TEXT_MAX)}"`;
  return `${how}: kubectl logs ${container} --previous`;
}

function creating(pod: KubeObject, now: Date): string | undefined {
  const { conditions = [] } = statusOf(pod);
  const since = conditions.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime;
  if (!isCreating(pod) || !since || now.getTime() - Date.parse(since) < CREATING_MS) return undefined;
  return `pod ${pod.metadata.name} has a node, which does not get it ready: a volume that does not mount, a ConfigMap or Secret volume that is not there, or the network; kubectl describe pod ${pod.metadata.name} tells`;
}

function hintOf(text: string, hints: Hints): string | undefined {
  return hints.find(([pattern]) => pattern.test(text))?.[1];
}

function withWayOut(text: string, wayOut: string | undefined): string {
  const shown = text.slice(0, TEXT_MAX).replace(/[.\s]+$/, '');
  return wayOut === undefined ? shown : `${shown}. Way out: ${wayOut}`;
}

/** What a PodDisruptionBudget keeps from happening, or undefined: `kubectl drain` then waits without a word. */
export function evictionProblem(budget: KubeObject | undefined): string | undefined {
  const {
    disruptionsAllowed,
    currentHealthy = 0,
    desiredHealthy = 0,
    expectedPods = 0,
  } = (budget?.status ?? {}) as BudgetStatus;
  if (!budget || disruptionsAllowed !== 0 || expectedPods === 0) return undefined;
  const why =
    currentHealthy < desiredHealthy
      ? `${currentHealthy} of ${expectedPods} pods are healthy, and ${desiredHealthy} must stay`
      : 'disruptionBudget.maxUnavailable allows none';
  return `evictions (kubectl drain, a node upgrade) wait: ${why}`;
}

interface BudgetStatus {
  disruptionsAllowed?: number;
  currentHealthy?: number;
  desiredHealthy?: number;
  expectedPods?: number;
}

/**
 * Names that users, manifests and other programs see. A change here is a change of the public contract.
 */

/** API group, version and kind of the custom resource. */
export const GROUP = 'corelane.dev';
export const VERSION = 'v1alpha1';
export const KIND = 'RenderService';
export const PLURAL = 'renderservices';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Field manager of every server-side apply, and value of the managed-by label. */
export const MANAGER = 'corelane';

export const LABEL_NAME = 'app.kubernetes.io/name';
export const LABEL_INSTANCE = 'app.kubernetes.io/instance';
export const LABEL_MANAGED_BY = 'app.kubernetes.io/managed-by';
/** The only label that selectors use: selectors are immutable, the recommended labels are the user's to set. */
export const LABEL_RENDER_SERVICE = `${GROUP}/renderservice`;

/** On pods, ReplicaSets and Deployments: which revision of the service they are of (docs/rollouts.md). */
export const LABEL_REVISION = `${GROUP}/revision`;
/** On pods: "true" for those that the Service leads to, "false" for those of a revision that rests. */
export const LABEL_SERVING = `${GROUP}/serving`;

/** Hash of the object as Corelane last applied it; a difference means that the plan changed. */
export const ANNOTATION_APPLIED_HASH = `${GROUP}/applied-hash`;
/**
 * On an object that mutating admission has changed: hash of what it has made of what Corelane applied. As long as the
 * object is so, it is not written again.
 */
export const ANNOTATION_ADMITTED_HASH = `${GROUP}/admitted-hash`;
/** ConfigMap that a pod template was rendered for; tells which ConfigMaps are still needed. */
export const ANNOTATION_CONFIG = `${GROUP}/config`;
/** On a Deployment: what its pods were made of (plan/made.ts). */
export const ANNOTATION_MADE_OF = `${GROUP}/made-of`;
/** On a Deployment: when an operator of another version made its pods anew although the user had changed nothing. */
export const ANNOTATION_RENEWED = `${GROUP}/renewed`;
/** On a Deployment: the number of its revision, which is the higher the later that was asked for. */
export const ANNOTATION_NUMBER = `${GROUP}/revision-number`;
/** On a Deployment: when its revision had all of its pods for the first time. */
export const ANNOTATION_COMPLETED = `${GROUP}/completed`;
/** On a Deployment: since when its revision is out of service. */
export const ANNOTATION_RETIRED = `${GROUP}/retired`;
/** On a Deployment: how far the canary of its revision has come (rollout/canary-state.ts). */
export const ANNOTATION_CANARY = `${GROUP}/canary`;
/** On a pod: which live settings it is meant to have. A change of it makes kubelet look at the pod's files at once. */
export const ANNOTATION_LIVE = `${GROUP}/live`;

/** Set by users on the pod template: what a deployment calls itself in requests (docs/version-skew.md). */
export const ANNOTATION_DEPLOYMENT = `${GROUP}/deployment-id`;

/** Set by users on a RenderService: "true", "up" or "down". */
export const ANNOTATION_SCALING_PAUSED = `${GROUP}/scaling-paused`;

/**
 * Set by users on a RenderService: facts about a canary, by the name of its revision (docs/canary.md). As they are no
 * orders it does not matter how often they are read.
 */
export const ANNOTATION_PROMOTE = `${GROUP}/rollout-promote`;
export const ANNOTATION_ABORT = `${GROUP}/rollout-abort`;
export const ANNOTATION_RETRY = `${GROUP}/rollout-retry`;

/** Name of the container in the user's template that becomes the workers. */
export const WORKER_CONTAINER = 'worker';
export const NGINX_CONTAINER = 'nginx';
export const HAPROXY_CONTAINER = 'haproxy';
/** Init container that copies the worker runtime into the pod. */
export const RUNTIME_CONTAINER = 'corelane-runtime';
/** Init container of the worker's image that copies assets to where nginx has them. */
export const ASSETS_CONTAINER = 'corelane-assets';
/** Where nginx finds assets: a folder for each entry of spec.assets, by its number, with the path of the URL below. */
export const ASSETS_MOUNT_PATH = '/corelane-assets';
/** Where the workers find the worker runtime, and the containers beside them their hook. */
export const RUNTIME_MOUNT_PATH = '/corelane';
/** The command of a preStop hook: it ends when the pod has drained. */
export const WAIT_FOR_DRAIN = [`${RUNTIME_MOUNT_PATH}/wait-for-drain`];
/** Where HAProxy finds the key of its RenderService, and the name of the file and of the Secret's key. */
export const PEERS_KEY_MOUNT_PATH = '/etc/corelane-peers';
export const PEERS_KEY = 'key';
/** Where the proxies find their configuration. */
export const CONFIG_MOUNT_PATH = '/etc/corelane';
/** The page of `fallback`, and where it is if it is of a ConfigMap of the user. */
export const SHELL_FILE = 'shell.html';
export const SHELL_MOUNT_PATH = '/etc/corelane-shell';
/** Where nginx keeps pages. */
export const CACHE_MOUNT_PATH = '/var/cache/corelane';
/** Where the proxies find the settings that change while they run, and the file; and where the workers find it. */
export const LIVE_MOUNT_PATH = '/etc/corelane-live';
export const LIVE_FILE = 'settings';
/** Who is on which side of a canary; not there without such rules. */
export const CANARY_FILE = 'canary';
export const WORKER_LIVE_MOUNT_PATH = '/corelane-live';
/** What the proxies of a pod share: their sockets, and marks of a drain. */
export const RUN_MOUNT_PATH = '/run/corelane';
/** Where the proxies make the marks that the hooks of all other containers look at, and where those find them. */
export const DRAIN_MOUNT_PATH = `${RUN_MOUNT_PATH}/drain`;
export const HOOK_MOUNT_PATH = '/corelane-drain';
/** Prefix of the volumes that Corelane adds to a pod. */
export const VOLUME_PREFIX = 'corelane-';

/**
 * Ports inside a pod (9000 front door, 9001 peers, 9002.. workers, 9098/UDP spans, 9100 figures of nginx, 8998 health,
 * 8999 statistics).
 */
export const PORTS = {
  health: 8998,
  stats: 8999,
  http: 9000,
  peers: 9001,
  firstWorker: 9002,
  /** UDP. */
  spans: 9098,
  figures: 9100,
  firstWorkerRuntime: 9102,
} as const;

/** Whether a port of the pod is Corelane's. */
export function isReservedPort(port: number): boolean {
  return port >= PORTS.health && port < PORTS.firstWorkerRuntime + 100;
}

/** More workers than this would run the worker ports into the worker runtime's ports. */
export const WORKERS_PER_POD_MAX = 64;

/** Longest name of a RenderService: owned names add at most 12 characters to it and a Service name has 63. */
export const NAME_LENGTH_MAX = 50;

/** Name of worker container number `index`. */
export function workerName(index: number): string {
  return `${WORKER_CONTAINER}-${index}`;
}

/** Whether a container of this name is a worker: of two digits, because anybody may give a pod ten thousand others. */
export function isWorkerName(name: string): boolean {
  return /^worker-[0-9]{1,2}$/.test(name);
}

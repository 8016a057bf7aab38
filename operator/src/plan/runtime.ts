/**
 * How the worker runtime gets into a worker: an init container copies it from the sidecar image into a volume, and
 * NODE_OPTIONS loads it into every Node.js process. docs/runtime.md tells what it does there.
 */
import type { V1Container, V1EnvFromSource, V1EnvVar, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { deploymentIdOf } from '../api/deployment-id.ts';
import { handlerMs } from '../api/handler-timeout.ts';
import {
  LABEL_RENDER_SERVICE,
  LABEL_REVISION,
  LIVE_FILE,
  PORTS,
  RUNTIME_CONTAINER,
  RUNTIME_MOUNT_PATH,
  WORKER_LIVE_MOUNT_PATH,
} from '../api/names.ts';
import { classesOf } from '../api/presets.ts';
import { durationMs, quantityOf, sizeBytes } from '../api/scalars.ts';
import { concurrencyBounds } from '../api/spec/concurrency.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { stallTimeoutMs } from '../api/watchdog.ts';
import { workerTemplate } from '../api/worker-template.ts';
import { budget } from '../render/model/budget.ts';
import { heads } from '../render/model/heads.ts';
import { RUNTIME_VOLUME } from './drain-hook.ts';
import { LIVE_VOLUME, NO_TOKEN_MOUNT, type SidecarImage } from './proxies.ts';
import { initResources } from './resources.ts';
import { sidecarSecurity } from './users.ts';

const ENTRY = `--require=${RUNTIME_MOUNT_PATH}/supervisor.cjs`;
const WEB_SOCKET_AGE = '1h';
/**
 * Part of the memory limit that V8 may fill with old objects; the rest is for buffers, code, threads and the
 * supervisor.
 */
const OLD_SPACE_SHARE = 0.75;
/** A semi space of 16 MiB is V8's own. A render makes much garbage: with more room fewer of its objects outlive it. */
const SEMI_SPACE_SHARE = 1 / 32;
const SEMI_SPACE_MIB = { min: 16, max: 64 };
const MIB = 1024 ** 2;
/** Keeps a value of NODE_OPTIONS that the plan cannot see. */
const USER_OPTIONS = 'CORELANE_USER_NODE_OPTIONS';

/** The volume with the worker runtime, and with programs that every pod needs: the hook, and what copies assets. */
export const RUNTIME_VOLUMES: V1Volume[] = [{ name: RUNTIME_VOLUME, emptyDir: {} }];

/** Copies the worker runtime; over what is there when the pod's sandbox was made anew. */
export function runtimeContainer(spec: RenderServiceSpec, { image, pullPolicy }: SidecarImage): V1Container {
  return {
    name: RUNTIME_CONTAINER,
    image,
    ...(pullPolicy && { imagePullPolicy: pullPolicy }),
    args: ['cp', '--recursive', '--remove-destination', '/usr/share/corelane/runtime/.', RUNTIME_MOUNT_PATH],
    resources: initResources(workerTemplate(spec.template.spec?.containers ?? [])),
    securityContext: sidecarSecurity(spec),
    volumeMounts: [{ name: RUNTIME_VOLUME, mountPath: RUNTIME_MOUNT_PATH }, NO_TOKEN_MOUNT],
  };
}

/** What the runtime of a worker mounts beside its own files, which come with the hook. */
export function runtimeMounts({ runtime }: RenderServiceSpec): V1VolumeMount[] {
  return runtime.instrument ? [{ name: LIVE_VOLUME, mountPath: WORKER_LIVE_MOUNT_PATH, readOnly: true }] : [];
}

/**
 * The environment of worker number `index` with what the runtime needs.
 * @param template the user's container
 */
export function runtimeEnv(
  spec: RenderServiceSpec,
  env: V1EnvVar[],
  index: number,
  { envFrom, resources }: Pick<V1Container, 'envFrom' | 'resources'>,
): V1EnvVar[] {
  const user = [...env.filter(({ name }) => !name.startsWith('CORELANE_')), deploymentEnv(spec)];
  if (!spec.runtime.instrument) return user;
  const { threadPoolSize } = spec.runtime;
  const own = (name: string) => user.find((entry) => entry.name === name);
  const set = (name: string, value: string | number | undefined) =>
    value === undefined || value === '' ? [] : [{ name, value: String(value) }];
  return [
    ...user.filter(({ name }) => name !== 'NODE_OPTIONS'),
    ...set('CORELANE_RUNTIME_PORT', PORTS.firstWorkerRuntime + index),
    ...set('CORELANE_CLIENTS_PORT', PORTS.health),
    ...set('CORELANE_WORKERS', spec.workersPerPod),
    ...set('CORELANE_STALL_TIMEOUT_MS', stallTimeoutMs(spec)),
    ...set('CORELANE_RENDER_TIMEOUT_MS', durationMs(spec.timeouts.render)),
    ...set('CORELANE_HANDLER_TIMEOUT_MS', handlerMs(spec)),
    ...set('CORELANE_WEBSOCKET_MAX_AGE_MS', webSocketAgeMs(spec)),
    ...set('CORELANE_ETAG', spec.cache.etag === 'Auto' ? 'Auto' : undefined),
    ...set('CORELANE_CONCURRENCY', concurrencyEnv(spec)),
    ...set('CORELANE_WITHOUT_SLOT_MAX', budget(spec).withoutSlot),
    ...set('CORELANE_LIVE', `${WORKER_LIVE_MOUNT_PATH}/${LIVE_FILE}`),
    // What the Service is called, for requests of the program to its own site.
    ofPod('CORELANE_SERVICE', `metadata.labels['${LABEL_RENDER_SERVICE}']`),
    ofPod('CORELANE_NAMESPACE', 'metadata.namespace'),
    ...(index === 0 ? spansEnv(spec) : []),
    ...set(
      'CORELANE_CLASSES',
      classesOf(spec)
        .map(({ name, concurrency }) => `${name}=${concurrency}`)
        .join(' '),
    ),
    ...set(
      'CORELANE_NODE_FLAGS',
      [headFlag(spec), ...memoryFlags(resources?.limits?.memory), ...spec.runtime.nodeFlags].join(' '),
    ),
    ...(own('UV_THREADPOOL_SIZE') ? [] : set('UV_THREADPOOL_SIZE', threadPoolSize)),
    ...warmupEnv(spec).flatMap(([name, value]) => set(name, value)),
    ...recycleEnv(spec).flatMap(([name, value]) => set(name, value)),
    ...nodeOptions(own('NODE_OPTIONS'), envFrom),
  ];
}

/** A worker takes what the proxies pass. Node.js alone takes 16 KiB. */
function headFlag(spec: RenderServiceSpec): string {
  return `--max-http-header-size=${heads(spec).bufferBytes}`;
}

/** What the program may call itself in requests that are to stay at this revision (docs/version-skew.md). */
function deploymentEnv(spec: RenderServiceSpec): V1EnvVar {
  const [name, id] = ['CORELANE_DEPLOYMENT_ID', deploymentIdOf(spec)];
  if (id !== undefined) return { name, value: id };
  return ofPod(name, `metadata.labels['${LABEL_REVISION}']`);
}

function ofPod(name: string, fieldPath: string): V1EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/** What the supervisor may choose from; undefined where HAProxy tells it a number. */
function concurrencyEnv(spec: RenderServiceSpec): string | undefined {
  const { min, max } = concurrencyBounds(spec);
  return spec.concurrency === 'Auto' ? `${min}-${max}` : undefined;
}

/** One worker's supervisor sends those of the whole pod. */
function spansEnv({ tracing }: RenderServiceSpec): V1EnvVar[] {
  if (tracing?.endpoint === undefined) return [];
  const { endpoint, headersFrom } = tracing;
  return [
    { name: 'CORELANE_SPANS_ENDPOINT', value: endpoint },
    { name: 'CORELANE_SPANS_PORT', value: String(PORTS.spans) },
    ofPod('CORELANE_SPANS_SERVICE', `metadata.labels['${LABEL_RENDER_SERVICE}']`),
    ofPod('CORELANE_SPANS_NAMESPACE', 'metadata.namespace'),
    ofPod('CORELANE_SPANS_POD', 'metadata.name'),
    ofPod('CORELANE_SPANS_REVISION', `metadata.labels['${LABEL_REVISION}']`),
    ...(headersFrom
      ? [{ name: 'CORELANE_SPANS_HEADERS', valueFrom: { secretKeyRef: { ...headersFrom, optional: true } } }]
      : []),
  ];
}

function webSocketAgeMs({ webSockets: { enabled, maxAge = WEB_SOCKET_AGE } }: RenderServiceSpec): number | undefined {
  return enabled ? durationMs(maxAge) : undefined;
}

function warmupEnv({ warmup }: RenderServiceSpec): [string, string | number][] {
  if (warmup.requests === 0) return [];
  return [
    ['CORELANE_WARMUP_REQUESTS', warmup.requests],
    ['CORELANE_WARMUP_PATH', warmup.path],
  ];
}

function recycleEnv({ runtime: { recycle } }: RenderServiceSpec): [string, number | undefined][] {
  return [
    ['CORELANE_RECYCLE_REQUESTS', recycle.requests],
    ['CORELANE_RECYCLE_MEMORY_BYTES', recycle.memory === undefined ? undefined : sizeBytes(recycle.memory)],
    ['CORELANE_RECYCLE_AGE_MS', recycle.age === undefined ? undefined : durationMs(recycle.age)],
  ];
}

/**
 * V8's own sizes do not know the container's limit, or only part of it.
 * E.g. 1Gi: old space 768 MiB, semi space 32 MiB (the young generation is three of these).
 */
function memoryFlags(memoryLimit: string | undefined): string[] {
  const limitMib = memoryLimit === undefined ? 0 : quantityOf(memoryLimit) / MIB;
  if (limitMib < 1) return [];
  // V8 rounds up to a power of two.
  const semiSpaceMib = 2 ** Math.floor(Math.log2(limitMib * SEMI_SPACE_SHARE));
  const clamped = Math.min(SEMI_SPACE_MIB.max, Math.max(SEMI_SPACE_MIB.min, semiSpaceMib));
  const flags = [`--max-old-space-size=${Math.floor(limitMib * OLD_SPACE_SHARE)}`];
  return clamped > SEMI_SPACE_MIB.min ? [...flags, `--max-semi-space-size=${clamped}`] : flags;
}

/**
 * The runtime's file is loaded first: it keeps the user's own ones out of the supervisor. The user's flags win. A value
 * that may be missing the supervisor adds for the program: Node.js would refuse to start with an unresolved "$(...)".
 */
function nodeOptions(user: V1EnvVar | undefined, envFrom: V1EnvFromSource[] = []): V1EnvVar[] {
  if (user?.valueFrom) {
    const isOptional = user.valueFrom.configMapKeyRef?.optional || user.valueFrom.secretKeyRef?.optional;
    const kept = { name: USER_OPTIONS, valueFrom: user.valueFrom };
    return [kept, { name: 'NODE_OPTIONS', value: isOptional ? ENTRY : `${ENTRY} $(${USER_OPTIONS})` }];
  }
  if (user?.value) return [{ name: 'NODE_OPTIONS', value: `${ENTRY} ${user.value}` }];
  // kubelet resolves it from envFrom, whose own variable the next one replaces.
  const kept = user || envFrom.length === 0 ? [] : [{ name: USER_OPTIONS, value: '$(NODE_OPTIONS)' }];
  return [...kept, { name: 'NODE_OPTIONS', value: ENTRY }];
}

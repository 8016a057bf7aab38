/**
 * Rules between fields of a spec. Each stands here twice, as CEL for the API server and as a predicate for the
 * operator (an API server can be older than a rule, so the operator checks again); a test feeds both the same bad
 * resources. A rule speaks about a *defaulted* spec: the API server runs CEL after defaulting.
 */
import type { V1Container } from '@kubernetes/client-node';
import { assetRules } from './asset-rules.ts';
import { cacheRules } from './cache-rules.ts';
import { canaryRules } from './canary-rules.ts';
import { classRules } from './class-rules.ts';
import { CONCURRENCY_MAX, concurrencyRules } from './concurrency-rules.ts';
import { BODIES_SHARE } from './disk.ts';
import { acceptedMsMax } from './drain.ts';
import {
  ASSETS_CONTAINER,
  HAPROXY_CONTAINER,
  HOOK_MOUNT_PATH,
  isReservedPort,
  NGINX_CONTAINER,
  PORTS,
  RUNTIME_CONTAINER,
  RUNTIME_MOUNT_PATH,
  VOLUME_PREFIX,
  WORKER_CONTAINER,
  WORKER_LIVE_MOUNT_PATH,
} from './names.ts';
import { objectiveRules } from './objective-rules.ts';
import { durationMs, quantityOf, sizeBytes } from './scalars.ts';
import { scalingRules } from './scaling-rules.ts';
import { serviceRules } from './service-rules.ts';
import { concurrencyBounds } from './spec/concurrency.ts';
import { ORDERED_MAX, PRIORITY_DELAY } from './spec/priority.ts';
import type { RenderServiceSpec } from './spec.ts';
import { isDuration, type SpecRule } from './spec-rule.ts';
import { stickinessRules } from './stickiness-rules.ts';
import { workerTemplate } from './worker-template.ts';

const CONTAINERS = 'self.template.spec.containers';
const OWN_MOUNTS = [RUNTIME_MOUNT_PATH, WORKER_LIVE_MOUNT_PATH, HOOK_MOUNT_PATH];
const INIT_CONTAINERS = 'self.template.spec.initContainers';
const containersPath = ['template', 'spec', 'containers'];
/** `w` is the container that becomes the workers. */
const IS_WORKER = `(w.name == '${WORKER_CONTAINER}' || ${CONTAINERS}.size() == 1)`;

function containers(spec: RenderServiceSpec): V1Container[] {
  return spec.template.spec?.containers ?? [];
}

function workers(spec: RenderServiceSpec): V1Container[] {
  const worker = workerTemplate(containers(spec));
  return worker ? [worker] : [];
}

function initContainers(spec: RenderServiceSpec): V1Container[] {
  return spec.template.spec?.initContainers ?? [];
}

/** No worker container has `field`. */
function workerWithout(field: keyof V1Container, why: string): SpecRule {
  return {
    path: containersPath,
    message: `the worker container must not have ${field}: ${why}`,
    cel: `${CONTAINERS}.all(w, !${IS_WORKER} || !has(w.${field}))`,
    holds: (spec) => workers(spec).every((worker) => worker[field] === undefined),
  };
}

/** No container mounts a volume of Corelane: the key of the peers, the sockets of the proxies, the worker runtime. */
function ownVolumesUnmounted(field: 'containers' | 'initContainers'): SpecRule {
  const all = `self.template.spec.${field}`;
  return {
    path: ['template', 'spec', field],
    message: `must not mount volumes whose names begin with "${VOLUME_PREFIX}": they are Corelane's; mount a volume of your own`,
    cel: `!has(${all}) || ${all}.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, !m.name.startsWith('${VOLUME_PREFIX}')))`,
    holds: ({ template: { spec } }) =>
      (spec?.[field] ?? []).every(({ volumeMounts }) =>
        (volumeMounts ?? []).every(({ name }) => !name.startsWith(VOLUME_PREFIX)),
      ),
  };
}

const RESERVED_NAMES = new RegExp(
  `^(${NGINX_CONTAINER}|${HAPROXY_CONTAINER}|${RUNTIME_CONTAINER}|${ASSETS_CONTAINER}|${WORKER_CONTAINER}-[0-9]+)$`,
);
const RESERVED_NAMES_TEXT = `${NGINX_CONTAINER}, ${HAPROXY_CONTAINER}, ${RUNTIME_CONTAINER}, ${ASSETS_CONTAINER} and ${WORKER_CONTAINER}-0, ${WORKER_CONTAINER}-1 ... are names of containers that Corelane adds`;
const PROBES_WHY = 'Corelane checks the workers through HAProxy, and a probe would wait behind a render; remove it';

/** CEL: quantity `one` is not larger than `other`, or one of them is no quantity. */
function notLarger(one: string, other: string): string {
  return `!isQuantity(${one}) || !isQuantity(${other}) || quantity(${one}).compareTo(quantity(${other})) <= 0`;
}

/** The limits of a proxy hold its requests. */
function limitsAboveRequests(proxy: 'nginx' | 'haproxy'): SpecRule[] {
  const field = `self.sidecar.${proxy}`;
  return [
    {
      path: ['sidecar', proxy, 'memoryLimit'],
      message: `must not be smaller than sidecar.${proxy}.memory, the request`,
      cel: notLarger(`${field}.memory`, `${field}.memoryLimit`),
      holds: ({ sidecar }) => quantityOf(sidecar[proxy].memory) <= quantityOf(sidecar[proxy].memoryLimit),
    },
    {
      path: ['sidecar', proxy, 'cpuLimit'],
      message: `must not be smaller than sidecar.${proxy}.cpu, the request`,
      cel: `!has(${field}.cpuLimit) || ${notLarger(`${field}.cpu`, `${field}.cpuLimit`)}`,
      holds: ({ sidecar }) => {
        const { cpu, cpuLimit } = sidecar[proxy];
        return cpuLimit === undefined || quantityOf(cpu) <= quantityOf(cpuLimit);
      },
    },
  ];
}

const DISK = 'self.sidecar.nginx.ephemeralStorageLimit';
const MAX_SIZE = 'self.buffering.request.maxSize';

function isZero(value: number | string): boolean {
  return value === 0 || value === '0%';
}

export const specRules: SpecRule[] = [
  {
    path: containersPath,
    message: `one container must be named "${WORKER_CONTAINER}" when the template has several: it becomes the workers`,
    cel: `${CONTAINERS}.size() < 2 || ${CONTAINERS}.exists(c, c.name == '${WORKER_CONTAINER}')`,
    holds: (spec) => containers(spec).length < 2 || workers(spec).length > 0,
  },
  {
    path: containersPath,
    message: `${RESERVED_NAMES_TEXT}; choose another name`,
    cel: `${CONTAINERS}.all(c, !c.name.matches('${RESERVED_NAMES.source}'))`,
    holds: (spec) => containers(spec).every(({ name }) => !RESERVED_NAMES.test(name)),
  },
  {
    path: ['template', 'spec', 'initContainers'],
    message: `${RESERVED_NAMES_TEXT}; choose another name`,
    cel: `!has(${INIT_CONTAINERS}) || ${INIT_CONTAINERS}.all(c, !c.name.matches('${RESERVED_NAMES.source}'))`,
    holds: (spec) => initContainers(spec).every(({ name }) => !RESERVED_NAMES.test(name)),
  },
  workerWithout('readinessProbe', PROBES_WHY),
  workerWithout('livenessProbe', PROBES_WHY),
  workerWithout('startupProbe', PROBES_WHY),
  workerWithout('lifecycle', 'Corelane stops the workers when the proxies have drained; handle SIGTERM instead'),
  {
    path: containersPath,
    message:
      'the worker container must not have a hostPort: workers listen on loopback, the Service leads to the proxy',
    cel: `${CONTAINERS}.all(w, !${IS_WORKER} || !has(w.ports) || w.ports.all(p, !has(p.hostPort)))`,
    holds: (spec) => workers(spec).every(({ ports }) => (ports ?? []).every(({ hostPort }) => hostPort === undefined)),
  },
  {
    path: containersPath,
    message: `ports ${PORTS.health} to ${PORTS.firstWorkerRuntime + 99} of a pod are Corelane's; give this container another containerPort`,
    cel: `${CONTAINERS}.all(w, ${IS_WORKER} || !has(w.ports) || w.ports.all(p, p.containerPort < ${PORTS.health} || p.containerPort >= ${PORTS.firstWorkerRuntime + 100}))`,
    holds: (spec) => {
      const worker = workers(spec)[0];
      const others = containers(spec).filter((container) => container !== worker);
      return others.every(({ ports }) => (ports ?? []).every(({ containerPort }) => !isReservedPort(containerPort)));
    },
  },
  {
    path: containersPath,
    message: `must not mount anything at ${OWN_MOUNTS.join(', ')}: Corelane does; choose another mountPath`,
    cel: `${CONTAINERS}.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, !(m.mountPath in ${JSON.stringify(OWN_MOUNTS)})))`,
    holds: (spec) =>
      containers(spec).every(({ volumeMounts }) =>
        (volumeMounts ?? []).every(({ mountPath }) => !OWN_MOUNTS.includes(mountPath)),
      ),
  },
  {
    path: ['template', 'spec', 'hostNetwork'],
    message: 'must not be true: every pod uses the same ports, and workers must be reachable through the proxy only',
    cel: '!has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork',
    holds: (spec) => !spec.template.spec?.hostNetwork,
  },
  {
    path: ['template', 'spec', 'restartPolicy'],
    message: 'must be Always, or left out: workers are long-running',
    cel: "!has(self.template.spec.restartPolicy) || self.template.spec.restartPolicy == 'Always'",
    holds: (spec) => (spec.template.spec?.restartPolicy ?? 'Always') === 'Always',
  },
  {
    path: ['template', 'spec', 'volumes'],
    message: `volume names that begin with "${VOLUME_PREFIX}" are Corelane's; choose another name`,
    cel: `!has(self.template.spec.volumes) || self.template.spec.volumes.all(v, !v.name.startsWith('${VOLUME_PREFIX}'))`,
    holds: (spec) => (spec.template.spec?.volumes ?? []).every(({ name }) => !name.startsWith(VOLUME_PREFIX)),
  },
  ownVolumesUnmounted('containers'),
  ownVolumesUnmounted('initContainers'),
  {
    path: ['template', 'metadata', 'labels'],
    message: 'labels that begin with "corelane.dev/" are Corelane\'s; remove them',
    cel: "!has(self.template.metadata) || !has(self.template.metadata.labels) || self.template.metadata.labels.all(k, !k.startsWith('corelane.dev/'))",
    holds: (spec) => Object.keys(spec.template.metadata?.labels ?? {}).every((key) => !key.startsWith('corelane.dev/')),
  },
  {
    path: ['drain', 'timeout'],
    message:
      'must not be shorter than queue.timeout and timeouts.render together: a stopping pod would cut requests that may still wait or be rendered; make it longer, or one of those shorter',
    cel: `!has(self.drain.timeout) || !${isDuration('self.drain.timeout')} || !${isDuration('self.queue.timeout')} || !${isDuration('self.timeouts.render')} || duration(self.drain.timeout) >= duration(self.queue.timeout) + duration(self.timeouts.render)`,
    holds: (spec) => spec.drain.timeout === undefined || durationMs(spec.drain.timeout) >= acceptedMsMax(spec),
  },
  {
    path: ['watchdog', 'stallTimeout'],
    message: 'must be shorter than timeouts.render: a render that takes longer has been given up by then',
    cel: `!has(self.watchdog.stallTimeout) || !${isDuration('self.watchdog.stallTimeout')} || !${isDuration('self.timeouts.render')} || duration(self.watchdog.stallTimeout) < duration(self.timeouts.render)`,
    holds: ({ watchdog, timeouts }) =>
      watchdog.stallTimeout === undefined || durationMs(watchdog.stallTimeout) < durationMs(timeouts.render),
  },
  {
    path: ['buffering', 'request', 'memory'],
    message: 'must not be larger than buffering.request.maxSize',
    cel: notLarger('self.buffering.request.memory', 'self.buffering.request.maxSize'),
    holds: (spec) => sizeBytes(spec.buffering.request.memory) <= sizeBytes(spec.buffering.request.maxSize),
  },
  {
    path: ['webSockets', 'maxPerWorker'],
    message: 'must not be larger than concurrency: a WebSocket takes one of so many places of its worker',
    cel: `!has(self.webSockets.maxPerWorker) || self.webSockets.maxPerWorker <= ${CONCURRENCY_MAX}`,
    holds: (spec) => (spec.webSockets.maxPerWorker ?? 0) <= concurrencyBounds(spec).max,
  },
  {
    path: ['webSockets', 'maxAge'],
    message: 'works with runtime.instrument only: it is the worker runtime that closes a WebSocket; leave it out',
    cel: '!has(self.webSockets.maxAge) || self.runtime.instrument',
    holds: ({ webSockets, runtime }) => webSockets.maxAge === undefined || runtime.instrument,
  },
  {
    path: ['fallback'],
    message: 'needs html or configMap, and not both',
    cel: '!has(self.fallback) || has(self.fallback.html) != has(self.fallback.configMap)',
    holds: ({ fallback }) => !fallback || (fallback.html === undefined) !== (fallback.configMap === undefined),
  },
  {
    path: ['priority', 'classes'],
    message: 'each must have a name of its own',
    cel: '!has(self.priority) || self.priority.classes.all(c, self.priority.classes.exists_one(o, o.name == c.name))',
    holds: ({ priority }) =>
      !priority || new Set(priority.classes.map(({ name }) => name)).size === priority.classes.length,
  },
  {
    path: ['priority', 'classes'],
    message: `delay and queue.timeout together must not be longer than ${ORDERED_MAX}: HAProxy keeps the order of the queue for no longer`,
    // Inside a list the API server fills in no default (gen/crd.ts).
    cel: `!has(self.priority) || !${isDuration('self.queue.timeout')} || self.priority.classes.all(c, has(c.delay) && !${isDuration('c.delay')} || duration(has(c.delay) ? c.delay : '${PRIORITY_DELAY}') + duration(self.queue.timeout) <= duration('${ORDERED_MAX}'))`,
    holds: ({ priority, queue }) =>
      (priority?.classes ?? []).every(
        ({ delay }) => durationMs(delay) + durationMs(queue.timeout) <= durationMs(ORDERED_MAX),
      ),
  },
  ...limitsAboveRequests('nginx'),
  ...limitsAboveRequests('haproxy'),
  {
    path: ['sidecar', 'nginx', 'ephemeralStorageLimit'],
    message: `must be at least ${1 / BODIES_SHARE} times buffering.request.maxSize: that part of it is for bodies, and one must fit; make it larger, or maxSize smaller`,
    cel: `!isQuantity(${DISK}) || !isQuantity(${MAX_SIZE}) || quantity(${DISK}).asApproximateFloat() >= ${1 / BODIES_SHARE}.0 * quantity(${MAX_SIZE}).asApproximateFloat()`,
    holds: ({ sidecar, buffering }) =>
      BODIES_SHARE * quantityOf(sidecar.nginx.ephemeralStorageLimit) >= sizeBytes(buffering.request.maxSize),
  },
  {
    path: ['rollout', 'rolling'],
    message: 'maxSurge and maxUnavailable must not both be 0: the rollout could not begin',
    cel: "!(string(self.rollout.rolling.maxSurge) in ['0', '0%'] && string(self.rollout.rolling.maxUnavailable) in ['0', '0%'])",
    holds: ({ rollout: { rolling } }) => !(isZero(rolling.maxSurge) && isZero(rolling.maxUnavailable)),
  },
  {
    path: ['cache', 'shared'],
    message: 'Peers needs pooling.enabled: pods ask each other as pooling does; set it to true, or shared to Never',
    cel: "self.cache.shared != 'Peers' || self.pooling.enabled",
    holds: ({ cache, pooling }) => cache.shared !== 'Peers' || pooling.enabled,
  },
  {
    path: ['tracing', 'endpoint'],
    message: 'works with runtime.instrument only: it is the worker runtime that sends spans; leave it out',
    cel: '!has(self.tracing) || !has(self.tracing.endpoint) || self.runtime.instrument',
    holds: ({ tracing, runtime }) => tracing?.endpoint === undefined || runtime.instrument,
  },
  {
    path: ['tracing', 'headersFrom'],
    message: 'needs endpoint: nobody else gets these headers',
    cel: '!has(self.tracing) || !has(self.tracing.headersFrom) || has(self.tracing.endpoint)',
    holds: ({ tracing }) => tracing?.headersFrom === undefined || tracing.endpoint !== undefined,
  },
  ...assetRules,
  ...cacheRules,
  ...canaryRules,
  ...stickinessRules,
  ...classRules,
  ...concurrencyRules,
  ...serviceRules,
  ...objectiveRules,
  ...scalingRules,
];

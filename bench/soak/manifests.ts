/** What is applied in a soak. Computes only. */
import { API_VERSION, KIND } from '../../operator/src/api/names.ts';
import type { Broken, Service } from './sequence.ts';

/** ConfigMap with the program of the workers, in each namespace. */
const APP = 'app';
/** For pods that come to nothing. Long enough for good ones that start while both cores are busy. */
const DEADLINE_S = 40;
/** Revisions rest for so long that some are away, and some are there, when the next change comes. */
const RETAIN = '20s';
const RENDER_MS = '20';

export function namespace(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

/** @param program text of blocker.mjs */
export function app(namespace: string, program: string): object {
  const metadata = { name: APP, namespace };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'blocker.mjs': program } };
}

/** Somebody else's Service, which has the name that a RenderService wants. */
export function foreignService({ namespace, name }: Pick<Service, 'namespace' | 'name'>): object {
  const spec = { selector: { app: 'foreign' }, ports: [{ port: 8080 }] };
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec };
}

/** Pods of a version, broken or not: a part of a spec. */
export function template(image: string, version: number, broken?: Broken): object {
  const metadata = { annotations: { 'example.com/version': String(version) } };
  return { metadata, spec: { containers: [container(image, broken)], volumes: [volume] } };
}

/** A small RenderService. @param more further fields of its spec */
export function renderService(service: Service, image: string, broken?: Broken, more: object = {}): object {
  const { namespace, name, replicas, version } = service;
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: { name, namespace },
    spec: {
      replicas,
      workersPerPod: 1,
      sidecar: { nginx: { cpu: '5m' }, haproxy: { cpu: '5m' } },
      rollout: {
        rolling: { maxSurge: 1, progressDeadlineSeconds: DEADLINE_S },
        retain: { for: RETAIN, replicas: 1 },
      },
      template: template(image, version, broken),
      ...more,
    },
  };
}

/** Of the honest ones: nothing is lost to a full queue, which would be overload. */
export const HONEST_SPEC = { queue: { maxLength: 500, timeout: '20s' } };

/** Specs that the API server refuses, and a part of what it says. */
export const REFUSED: [spec: object, says: string][] = [
  [{ workersPerPod: 0 }, 'spec.workersPerPod'],
  [{ queue: { maxLength: 10_001 } }, 'spec.queue.maxLength'],
  [{ timeouts: { render: '2h' } }, 'spec.timeouts.render'],
  [{ balance: 'random' }, 'spec.balance'],
  [{ ping: { path: '/ping\nlocation / {}' } }, 'spec.ping.path'],
  [{ concurrency: 2, concurrencyRange: { max: 4 } }, 'concurrencyRange'],
  [{ rollout: { rolling: { maxSurge: '150%' } } }, 'spec.rollout.rolling.maxSurge'],
  [{ replicas: -1 }, 'spec.replicas'],
];

const volume = { name: APP, configMap: { name: APP } };

function container(image: string, broken?: Broken): object {
  return {
    name: 'worker',
    image: broken === 'image missing' ? 'registry.invalid/app:1' : image,
    imagePullPolicy: 'IfNotPresent',
    command: broken ? COMMANDS[broken] : ['node', '/app/blocker.mjs'],
    env: [{ name: 'RENDER_MS', value: RENDER_MS }],
    resources: { requests: { cpu: '5m', memory: '48Mi' } },
    volumeMounts: [{ name: APP, mountPath: '/app' }],
  };
}

const COMMANDS: Record<Broken, string[]> = {
  'image missing': ['node', '/app/blocker.mjs'],
  'crash loop': ['node', '-e', 'process.exit(3)'],
  'never ready': ['node', '-e', 'setInterval(() => {}, 1e9)'],
};

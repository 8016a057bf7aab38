/** What the rules look at: a RenderService (or what a Deployment becomes), and what is known of its surroundings. */
import type {
  V1ConfigMap,
  V1Container,
  V1Ingress,
  V1LimitRange,
  V1PersistentVolumeClaim,
  V1Service,
  V2HorizontalPodAutoscaler,
} from '@kubernetes/client-node';
import type { Condition } from '../src/api/conditions.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';
import { workerTemplate } from '../src/api/worker-template.ts';
import type { Code } from './codes.ts';
import type { Finding } from './finding.ts';
import type { Level } from './levels.ts';

/** What an image says of itself (`docker image inspect`). */
export interface ImageConfig {
  /** `NAME=value`. */
  env: string[];
  entrypoint: string[];
  cmd: string[];
  /** `3000/tcp`. */
  exposedPorts: string[];
}

/** ScaledObject of KEDA, as far as it is read. */
export interface ScaledObject {
  metadata?: { name?: string };
  spec?: {
    scaleTargetRef?: { apiVersion?: string; kind?: string; name?: string };
    minReplicaCount?: number;
    maxReplicaCount?: number;
    triggers?: { type?: string; metadata?: { containerName?: string } }[];
  };
}

/** VerticalPodAutoscaler, as far as it is read. */
export interface VerticalPodAutoscaler {
  metadata?: { name?: string };
  spec?: { targetRef?: { kind?: string; name?: string }; updatePolicy?: { updateMode?: string } };
}

/** What a cluster would refuse. */
export interface Refusal {
  what: string;
  /** Behind "Way out:"; undefined where the message has it. */
  wayOut?: string | undefined;
}

/** What the API server of a cluster says, asked by dry runs. */
export interface ServerAnswers {
  refusals: Refusal[];
  /** Objects that it could not be asked about. */
  notAsked: string[];
}

/** What is known of the surroundings. What is undefined was not looked at. */
export interface Surroundings {
  /** CPUs that pods of a node can have together, and what the node is called in a message. */
  nodes?: { cpu: number; name: string }[];
  services: V1Service[];
  ingresses: V1Ingress[];
  autoscalers: V2HorizontalPodAutoscaler[];
  scaledObjects: ScaledObject[];
  verticalAutoscalers: VerticalPodAutoscaler[];
  claims: V1PersistentVolumeClaim[];
  configMaps: V1ConfigMap[];
  limitRanges?: V1LimitRange[];
  /** By the name that stands in the template. */
  images: Record<string, ImageConfig>;
  /** Images that pods of the RenderService run in their workers, by id; several where a tag has moved. */
  runningImages?: string[];
  server?: ServerAnswers;
  /** Conditions of a RenderService that runs. */
  conditions?: Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[];
}

/** Surroundings of which nothing is known. */
export function unknownSurroundings(): Surroundings {
  return {
    services: [],
    ingresses: [],
    autoscalers: [],
    scaledObjects: [],
    verticalAutoscalers: [],
    claims: [],
    configMaps: [],
    images: {},
  };
}

export interface Workload {
  /** A RenderService was written by somebody who knows it; what a Deployment becomes somebody must look at. */
  origin: 'Deployment' | 'RenderService';
  name: string;
  /** Name of the Deployment or RenderService as it was read. */
  object: string;
  /** Defaulted. */
  spec: RenderServiceSpec;
  surroundings: Surroundings;
}

/** A group of findings with one subject. */
export interface Rule {
  codes: readonly Code[];
  /** Why it cannot look, in words; undefined where it can. */
  skipped?(workload: Workload): string | undefined;
  find(workload: Workload): Finding[];
}

/** The worker container of a workload and its path. Every spec that has passed the rules has one. */
export function workerOf({ spec }: Pick<Workload, 'spec'>): { worker: V1Container; path: string } {
  const containers = spec.template.spec?.containers ?? [];
  const worker = workerTemplate(containers) ?? (containers[0] as V1Container);
  return { worker, path: `spec.template.spec.containers[${containers.indexOf(worker)}]` };
}

/** `decide` for what a Deployment becomes; another level for a RenderService, where somebody has decided. */
export function toDecide({ origin }: Workload, otherwise: Level): Level {
  return origin === 'Deployment' ? 'decide' : otherwise;
}

/** The field of a container that its command line comes from. */
export function commandField({ command, args }: V1Container): 'command' | 'args' | 'image' {
  if (command) return 'command';
  return args ? 'args' : 'image';
}

/** Options of Node.js for a worker, by the field they stand in, without quotes. Node.js takes `_` for `-`. */
export function nodeOptionsByField(workload: Workload): { path: string; text: string }[] {
  const { worker, path } = workerOf(workload);
  const { images, configMaps } = workload.surroundings;
  const own = worker.env?.find(({ name }) => name === 'NODE_OPTIONS');
  const fields: [path: string, text: string][] = [
    ['spec.runtime.nodeFlags', workload.spec.runtime.nodeFlags.join(' ')],
    own
      ? [`${path}.env[NODE_OPTIONS]`, own.value ?? '']
      : [`${path}.envFrom`, optionsFrom(configMaps, worker).join(' ')],
    [`${path}.${worker.args ? 'args' : commandField(worker)}`, commandLine(worker, images[worker.image ?? ''])],
  ];
  return fields.map(([field, text]) => ({ path: field, text: text.replaceAll(/["']/g, '').replaceAll('_', '-') }));
}

/** The same, wherever they are written. */
export function nodeOptionsOf(workload: Workload): string {
  return nodeOptionsByField(workload)
    .map(({ text }) => text)
    .join(' ');
}

/** NODE_OPTIONS by `envFrom`, as far as the ConfigMaps are known. */
function optionsFrom(configMaps: V1ConfigMap[], container: V1Container): string[] {
  return variablesFrom(configMaps, container).flatMap(([name, value]) => (name === 'NODE_OPTIONS' ? [value] : []));
}

/** Variables that `envFrom` brings, as far as the ConfigMaps are known. */
export function variablesFrom(
  configMaps: V1ConfigMap[],
  { envFrom = [] }: V1Container,
): [name: string, value: string][] {
  return envFrom.flatMap(({ prefix = '', configMapRef }) => {
    const known = configMaps.find(({ metadata }) => configMapRef && metadata?.name === configMapRef.name);
    return Object.entries(known?.data ?? {}).map(([key, value]): [string, string] => [`${prefix}${key}`, value]);
  });
}

/** Command and arguments of a container, with those of its image where the container has none of its own. */
export function commandLine(worker: V1Container, image: ImageConfig | undefined): string {
  // As kubelet does: a command of the container leaves the image's arguments out, too.
  const command = worker.command ?? image?.entrypoint ?? [];
  const args = worker.args ?? (worker.command === undefined ? image?.cmd : undefined) ?? [];
  return [...command, ...args].join(' ');
}

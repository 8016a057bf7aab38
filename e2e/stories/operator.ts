/** What the story of the operator and its load test share: a namespace with a storefront, the leader, measurements. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PooledKubeConfig } from '../../operator/src/kube/config.ts';
import { kinds, objectPath } from '../../operator/src/kube/kinds.ts';
import { MERGE_PATCH, Rest } from '../../operator/src/kube/rest.ts';
import { eventually, get, KUBECONFIG, kubectl } from '../harness/cluster/cluster.ts';
import { formatMeasurements, type Measurement } from '../harness/cluster/measurements.ts';
import { installOperator, OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import { deploymentOf, example } from '../harness/cluster/renderservice.ts';
import { ROOT } from '../harness/cluster/shell.ts';

export const NAMESPACE = 'operator-story';
export const NAME = 'storefront';
/** Without objectives: how they are met is written into the status again and again. */
export const MANIFEST = example('storefront.yaml')
  .replace(/ {2}# What it is held to[\s\S]*?latency: .*\n/, '')
  .replaceAll(/\bshop\b/g, NAMESPACE);

const FOLDER = join(ROOT, 'docs/benchmarks');

interface Lease {
  spec: { holderIdentity: string };
}

/** Installs the operator, and removes what an earlier run has left. */
export async function prepareNamespace(): Promise<void> {
  await installOperator();
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 180_000 });
}

/** Removes the namespace, and does not wait for it. */
export async function removeNamespace(): Promise<void> {
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
}

/** Pods that the Deployment of the storefront is to have. */
export async function replicasOf(): Promise<number> {
  return (await deploymentOf(NAMESPACE, NAME)).spec.replicas;
}

/** Name of the pod that leads; for a moment after a hand-over there is none. */
export function leader(): Promise<string> {
  return eventually('a leader', 60_000, async () => {
    const { spec } = await get<Lease>('-n', OPERATOR_NAMESPACE, 'lease', 'corelane');
    return spec.holderIdentity || undefined;
  });
}

/** Metrics page of an operator pod, through the API server. */
export function metricsOf(pod: string): Promise<string> {
  return kubectl(['get', '--raw', `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods/${pod}:8080/proxy/metrics`]);
}

/**
 * Changes a field that starts no pods, waits until the Deployment has it, and gives the milliseconds that this took.
 * Straight to the API server: starting kubectl twice would take longer than the change.
 */
export async function changeDeadline(progressDeadlineSeconds: number): Promise<number> {
  const config = new PooledKubeConfig();
  config.loadFromFile(KUBECONFIG);
  const rest = new Rest(config);
  const path = objectPath(kinds.deployment, NAMESPACE, (await deploymentOf(NAMESPACE, NAME)).metadata.name);
  const body = { spec: { rollout: { rolling: { progressDeadlineSeconds } } } };
  const started = performance.now();
  await rest.request('PATCH', objectPath(kinds.renderService, NAMESPACE, NAME), { contentType: MERGE_PATCH, body });
  const look = async () => {
    const { spec } = await rest.request<{ spec: { progressDeadlineSeconds: number } }>('GET', path);
    return spec.progressDeadlineSeconds === progressDeadlineSeconds || undefined;
  };
  await eventually('the change', 60_000, look, 5);
  const tookMs = performance.now() - started;
  await config.close();
  return tookMs;
}

/** Seconds since a time of `performance.now()`. */
export function secondsSince(startedMs: number): number {
  return (performance.now() - startedMs) / 1000;
}

/** Prints measurements; with UPDATE_BENCHMARKS they replace those of the same name in docs/benchmarks. */
export function writeMeasurements(measurements: Measurement[]): void {
  console.log(formatMeasurements(measurements).markdown);
  if (!process.env.UPDATE_BENCHMARKS) return;
  const all = new Map<string, Measurement>();
  const before = JSON.parse(readFileSync(join(FOLDER, 'e2e.json'), 'utf8')) as Measurement[];
  for (const one of [...before, ...measurements]) all.set(one.name, one);
  const { json, markdown } = formatMeasurements([...all.values()]);
  writeFileSync(join(FOLDER, 'e2e.json'), json);
  writeFileSync(join(FOLDER, 'e2e.md'), markdown);
}

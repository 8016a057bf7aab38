/** What a Service and a PodDisruptionBudget of the Deployment become. */
import type { V1PodDisruptionBudget, V1Service } from '@kubernetes/client-node';
import { HTTP2_PROTOCOLS } from '../src/api/service-rules.ts';
import type { Draft, Said } from './draft.ts';
import type { Found } from './related.ts';

type Port = NonNullable<NonNullable<V1Service['spec']>['ports']>[number];

/** The port by which pages come: the one that is named so, else the first. */
export function pagePort(service: V1Service | undefined): Port | undefined {
  const ports = service?.spec?.ports ?? [];
  return ports.find(({ name = '' }) => /^(http|web|http-web)$/.test(name ?? '')) ?? ports[0];
}

/** Whether its clients speak HTTP/2 to it. */
export function isHttp2(port: Port | undefined): boolean {
  return HTTP2_PROTOCOLS.includes(port?.appProtocol ?? '');
}

/** Fields of a Service that the cluster fills in, or that follow from others. */
const FILLED_IN = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'];
/** Fields that go over as they are, with what they are unless given. */
const POLICIES: Record<string, unknown> = {
  externalTrafficPolicy: 'Cluster',
  internalTrafficPolicy: 'Cluster',
  trafficDistribution: undefined,
  loadBalancerClass: undefined,
  loadBalancerSourceRanges: undefined,
};
const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer'];

const left = (level: 'info' | 'warning', why: string): Said => ({
  code: 'C016',
  level,
  what: 'not taken over',
  why,
  wayOut:
    level === 'info'
      ? 'Nothing to do.'
      : 'Keep the old Service and move its selector (docs/convert.md), if you need it.',
});

/** `spec.service` of the first Service; what it has no place for is said. */
export function writeService(draft: Draft, services: Found<V1Service>[]): void {
  const [first, ...others] = services;
  for (const { manifest } of others) {
    const object = `Service/${manifest.name}`;
    draft.say('', {
      ...left('info', 'A RenderService has one Service'),
      object,
      wayOut: 'Keep it, and move its selector.',
    });
  }
  if (!first) return;
  const { spec, metadata } = first.value;
  const object = `Service/${first.manifest.name}`;
  const port = pagePort(first.value);
  const service = serviceOf(first.value, port);
  if (Object.keys(service).length > 0) draft.set('service', service);
  for (const [key, value] of Object.entries(spec ?? {})) sayField(draft, object, key, value);
  for (const other of (spec?.ports ?? []).filter((one) => one !== port))
    sayPort(draft, object, other, spec?.ports ?? []);
  if (port && isHttp2(port)) sayHttp2(draft, object, port, spec?.ports ?? []);
  if (metadata?.labels && !service.labels)
    draft.say('metadata.labels', { ...left('info', 'The tool that made it has written them for itself'), object });
}

/** What of a Service differs from what a RenderService makes by itself. */
function serviceOf({ spec, metadata }: V1Service, port: Port | undefined) {
  const annotations = withoutTools(metadata?.annotations);
  const labels = withoutTools(metadata?.labels);
  const type = TYPES.find((one) => one === spec?.type && one !== 'ClusterIP');
  return {
    ...(type && { type }),
    ...(port && port.port !== 80 && { port: port.port }),
    ...(port?.appProtocol && !isHttp2(port) && { appProtocol: port.appProtocol }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...Object.fromEntries(Object.entries(spec ?? {}).filter(([key, value]) => isPolicy(key, value))),
  };
}

function isPolicy(key: string, value: unknown): boolean {
  return Object.hasOwn(POLICIES, key) && value !== POLICIES[key] && !isNothing(value);
}

function isNothing(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

function sayPort(draft: Draft, object: string, port: Port, all: Port[]): void {
  draft.say(`spec.ports[${all.indexOf(port)}]`, {
    code: 'C004',
    level: 'decide',
    object,
    what: `port ${port.port}${port.name ? ` (${port.name})` : ''} is left out`,
    why: 'The Service of a RenderService leads to its pages, and to nothing else in a worker',
    wayOut: 'Serve it elsewhere, or keep a Service of your own for a container beside the workers.',
  });
}

function sayHttp2(draft: Draft, object: string, port: Port, all: Port[]): void {
  draft.say(`spec.ports[${all.indexOf(port)}].appProtocol`, {
    code: 'C016',
    level: 'decide',
    object,
    what: `appProtocol: ${port.appProtocol} is left out`,
    why: 'Pods speak HTTP/1.1, to gateways and to the server in a worker',
    wayOut:
      'Let the server speak HTTP/1.1 (node:http in place of node:http2), and the gateway, too (docs/gateways.md).',
  });
}

/** Prefixes and names of labels and annotations that tools write for themselves. */
const OF_TOOLS =
  /^(kubectl\.kubernetes\.io|meta\.helm\.sh|helm\.sh|argocd\.argoproj\.io|corelane\.dev)\/|^app\.kubernetes\.io\/(name|instance|managed-by|version)$/;

/** Labels or annotations that go over. Corelane sets the recommended labels itself. */
function withoutTools(all: Record<string, string> | undefined): Record<string, string> {
  const entries = Object.entries(all ?? {}).filter(([key, value]) => typeof value === 'string' && !OF_TOOLS.test(key));
  return Object.fromEntries(entries);
}

function sayField(draft: Draft, object: string, key: string, value: unknown): void {
  if (['ports', 'selector', 'sessionAffinity'].includes(key) || isPolicy(key, value)) return;
  if (key === 'type' && TYPES.includes(String(value))) return;
  if (key === 'clusterIP' && value === 'None') {
    draft.say(`spec.${key}`, { ...left('warning', 'The Service has an address, and is not headless'), object });
    return;
  }
  const isQuiet = isNothing(value) || FILLED_IN.includes(key);
  const isDefault = Object.hasOwn(POLICIES, key);
  const why = isQuiet
    ? 'The cluster fills it in'
    : isDefault
      ? 'It is that unless given'
      : 'A RenderService has no such field';
  draft.say(`spec.${key}`, { ...left(isQuiet || isDefault ? 'info' : 'warning', why), object });
}

/** `disruptionBudget` of the first budget. */
export function writeBudget(draft: Draft, budgets: Found<V1PodDisruptionBudget>[], pods: number | undefined): void {
  const [first] = budgets;
  if (!first) return;
  const object = `PodDisruptionBudget/${first.manifest.name}`;
  const { minAvailable, maxUnavailable } = first.value.spec ?? {};
  const allowed = maxUnavailable ?? complement(minAvailable, pods);
  if (allowed !== undefined && String(allowed) !== '1') draft.set('disruptionBudget', { maxUnavailable: allowed });
  draft.say(minAvailable == null ? 'spec.maxUnavailable' : 'spec.minAvailable', {
    code: 'C016',
    level: allowed === 0 || allowed === '0%' || allowed === undefined ? 'warning' : 'info',
    object,
    what: `became disruptionBudget.maxUnavailable: ${allowed ?? 1}`,
    why:
      allowed === 0 || allowed === '0%'
        ? 'No pod may be evicted then, and kubectl drain waits for ever'
        : 'A RenderService makes a budget of its own',
    wayOut: 'Delete the old one with the Deployment.',
  });
}

/** How many pods may be away where `minAvailable` must be there. */
function complement(minAvailable: string | number | undefined, pods: number | undefined): string | number | undefined {
  if (typeof minAvailable === 'string') {
    const [, percent] = /^([0-9]{1,3})%$/.exec(minAvailable) ?? [];
    return percent === undefined ? undefined : `${Math.max(0, 100 - Number(percent))}%`;
  }
  // 1 is what it is without any budget: of a fleet whose size is not known one may go.
  if (minAvailable == null || pods === undefined) return undefined;
  return Math.max(0, pods - minAvailable);
}

/** What Services and PodDisruptionBudgets of the Deployment become. */
import type { V1LabelSelector, V1PodDisruptionBudget, V1Service } from '@kubernetes/client-node';
import { PORTS } from '../src/api/names.ts';
import { HTTP2_PROTOCOLS } from '../src/api/service-rules.ts';
import type { Draft, Said } from './draft.ts';
import { type Pods, pagePort, type ServicePort, wayOf } from './leads.ts';
import type { Found, Related, Workload } from './related.ts';
import { matches } from './selectors.ts';

/** Whether its clients speak HTTP/2 to it. */
export function isHttp2(port: ServicePort): boolean {
  return HTTP2_PROTOCOLS.includes(port.appProtocol ?? '');
}

/** Fields that go over as they are, with what they are unless given. */
const POLICIES: Record<string, unknown> = {
  internalTrafficPolicy: 'Cluster',
  trafficDistribution: undefined,
  ipFamilyPolicy: 'SingleStack',
};
/** Fields for which other findings speak. */
const ELSEWHERE = ['ports', 'selector', 'sessionAffinity', 'sessionAffinityConfig'];
/** Fields of a LoadBalancer or NodePort. A Service of such a type stays. */
const OF_TYPE = [
  'allocateLoadBalancerNodePorts',
  'externalTrafficPolicy',
  'healthCheckNodePort',
  'loadBalancerClass',
  'loadBalancerIP',
  'loadBalancerSourceRanges',
];
/** Kubernetes' defaults of other fields. */
const DEFAULTS: Record<string, unknown> = {
  publishNotReadyAddresses: false,
  ...POLICIES,
};
/** Fields of which the cluster chooses the value, and stores it. */
const CHOSEN = ['clusterIP', 'clusterIPs', 'ipFamilies'];

const left = (level: 'info' | 'warning', why: string): Said => ({
  code: 'C016',
  level,
  what: 'not taken over',
  why,
  wayOut:
    level === 'info'
      ? 'Nothing to do.'
      : 'Keep the old Service and move its selector (docs/convert.md), if you need it.',
  ...(level === 'warning' && { fate: 'kept' as const }),
});

/**
 * Writes `spec.service`, and says what becomes of each Service. The first one is replaced if the RenderService has its
 * name. All others stay, and the traffic plan leads them to the new pods.
 * @param name of the RenderService
 */
export function writeService(
  draft: Draft,
  { services, workloads }: Pick<Related, 'services' | 'workloads'>,
  pods: Pods,
  name: string,
): void {
  for (const [index, found] of services.entries()) {
    const isReplaced = index === 0 && found.manifest.name === name;
    sayShared(draft, found, workloads);
    if (index === 0) writeFirst(draft, found, pods, isReplaced);
    else sayLostPorts(draft, found, pods);
    for (const port of found.value.spec?.ports ?? []) if (isHttp2(port)) sayHttp2(draft, found, port);
    if (!isReplaced) sayKept(draft, found, pods, name);
  }
}

/** Whether a Service leads to nothing in the new pods. One without ports leads to the pods themselves. */
export function isLost({ spec }: V1Service, pods: Pods): boolean {
  const ports = spec?.ports ?? [];
  return ports.length > 0 && ports.every((port) => wayOf(port, pods) === 'nowhere');
}

/** Other workloads that one sentence names. */
const NAMED_MAX = 3;

/** Says that the pods of others are behind a Service, too. It is not deleted for a RenderService of its name. */
function sayShared(draft: Draft, { manifest, value }: Found<V1Service>, workloads: Workload[]): void {
  const others = workloads.filter(({ labels }) => matches({ matchLabels: value.spec?.selector ?? {} }, labels));
  if (others.length === 0) return;
  const named = others.slice(0, NAMED_MAX).map(({ object }) => object);
  const rest = others.length > NAMED_MAX ? ` and ${others.length - NAMED_MAX} more` : '';
  draft.say('spec.selector', {
    code: 'C010',
    level: 'decide',
    object: `Service/${manifest.name}`,
    what: `it leads to pods of ${named.join(', ')}${rest}, too`,
    why: 'The traffic plan moves its selector, and then these pods get no requests by it',
    wayOut: 'Give them a Service of their own first, or leave this Service out of the traffic plan.',
    fate: 'kept',
  });
}

function writeFirst(draft: Draft, found: Found<V1Service>, pods: Pods, isReplaced: boolean): void {
  const { manifest, value } = found;
  const object = `Service/${manifest.name}`;
  const port = pagePort(value);
  const service = serviceOf(value, port, isReplaced);
  if (Object.keys(service).length > 0) draft.set('service', service);
  sayType(draft, value, object);
  for (const [key, field] of Object.entries(value.spec ?? {}))
    if (!Object.hasOwn(service, key)) sayField(draft, value, { object, key, field });
  for (const other of (value.spec?.ports ?? []).filter((one) => one !== port))
    sayPort(draft, found, other, { pods, isReplaced });
  if (!isReplaced || isKept(draft, object)) return;
  if (value.metadata?.labels && !service.labels)
    draft.say('metadata.labels', { ...left('info', 'The tool that made it has written them for itself'), object });
  draft.say('', {
    code: 'C010',
    level: 'info',
    object,
    what: 'became spec.service',
    why: 'The RenderService has its name, and makes a Service of its own',
    wayOut: 'Nothing to do: the traffic plan deletes the old one.',
    fate: 'replaced',
  });
}

/**
 * What of a Service differs from what a RenderService makes by itself. Beside an old Service, which stays, the new one
 * is for inside the cluster. It has no annotations of the old one: with those external-dns or a gateway would send
 * clients to the new pods before traffic moves.
 */
function serviceOf(service: V1Service, port: ServicePort | undefined, isReplaced: boolean) {
  const { spec, metadata } = service;
  const annotations = isReplaced ? withoutTools(metadata?.annotations) : {};
  const labels = withoutTools(metadata?.labels);
  return {
    ...(port && port.port !== 80 && { port: port.port }),
    ...(port?.appProtocol && !isHttp2(port) && { appProtocol: port.appProtocol }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...Object.fromEntries(Object.entries(spec ?? {}).filter(([key, value]) => isPolicy(key, value))),
    ...familiesOf(service),
  };
}

/** A RenderService names as many families as its policy has. */
function familiesOf({ spec, metadata }: V1Service): { ipFamilies?: string[] } {
  const families = spec?.ipFamilies ?? [];
  const missing = ['IPv4', 'IPv6'].filter((family) => !families.includes(family));
  // With PreferDualStack a cluster of one family stores that one, and refuses both.
  if (spec?.ipFamilyPolicy === 'RequireDualStack' && families.length === 1)
    return { ipFamilies: [...families, ...missing] };
  const isDualStack = isPolicy('ipFamilyPolicy', spec?.ipFamilyPolicy);
  // Of one family the cluster has chosen which, unless somebody has written it.
  const isWritten = isDualStack || metadata?.uid === undefined;
  return isWritten && families.length === (isDualStack ? 2 : 1) ? { ipFamilies: families } : {};
}

function isPolicy(key: string, value: unknown): boolean {
  return Object.hasOwn(POLICIES, key) && value !== POLICIES[key] && !isNothing(value);
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

interface Field {
  object: string;
  key: string;
  field: unknown;
}

/** Whether a type has fields of its own, and ways in from outside. */
function isFromOutside({ spec }: V1Service): boolean {
  return (spec?.type ?? 'ClusterIP') !== 'ClusterIP';
}

/** Says that a type stays with the old Service, with all fields that belong to it. */
function sayType(draft: Draft, service: V1Service, object: string): void {
  if (!isFromOutside(service)) return;
  const also = Object.keys(service.spec ?? {}).flatMap((key) => (OF_TYPE.includes(key) ? [`spec.${key}`] : []));
  draft.say('spec.type', {
    code: 'C010',
    level: 'info',
    object,
    ...(also.length > 0 && { also }),
    what: `type ${service.spec?.type} is not taken over`,
    why: 'Clients know the address of the old Service, and a second one would be another way in from outside',
    wayOut: 'Nothing to do: the old Service stays, and the traffic plan leads it to the new pods.',
    fate: 'kept',
  });
}

/** Says of a field that the RenderService has no place for it. */
function sayField(draft: Draft, service: V1Service, { object, key, field }: Field): void {
  if (key === 'type' || ELSEWHERE.includes(key) || isPolicy(key, field)) return;
  if (isFromOutside(service) && OF_TYPE.includes(key)) return;
  // An object that comes from an API server has a `uid`.
  const isChosen = CHOSEN.includes(key) && service.metadata?.uid !== undefined;
  if (key === 'clusterIP' && field === 'None')
    draft.say('spec.clusterIP', { ...left('warning', 'The Service has an address, and is not headless'), object });
  else if (isNothing(field) || isChosen)
    draft.say(`spec.${key}`, { ...left('info', 'The cluster fills it in'), object });
  else if (Object.hasOwn(DEFAULTS, key) && field === DEFAULTS[key])
    draft.say(`spec.${key}`, { ...left('info', 'It is that unless given'), object });
  else if (key === 'ipFamilies')
    draft.say('spec.ipFamilies', {
      ...left('warning', 'A RenderService names as many families as its ipFamilyPolicy has, or none'),
      object,
    });
  else draft.say(`spec.${key}`, { ...left('warning', 'A RenderService has no such field'), object });
}

/** Whether a finding says that an object stays. */
function isKept({ findings }: Draft, object: string): boolean {
  return findings.some((finding) => finding.object === object && finding.fate === 'kept');
}

function sayPort(
  draft: Draft,
  { manifest, value }: Found<V1Service>,
  port: ServicePort,
  { pods, isReplaced }: { pods: Pods; isReplaced: boolean },
): void {
  const way = wayOf(port, pods);
  // The old Service stays, and leads there as before.
  if (!isReplaced && way !== 'nowhere') return;
  draft.say(`spec.ports[${value.spec?.ports?.indexOf(port)}]`, {
    code: 'C004',
    level: 'decide',
    object: `Service/${manifest.name}`,
    what: `port ${port.port}${port.name ? ` (${port.name})` : ''} is left out`,
    why: 'The Service of a RenderService leads to its pages, and to nothing else in a worker',
    wayOut: 'Serve it elsewhere, or keep a Service of your own for a container beside the workers.',
    ...(way === 'beside' && { fate: 'kept' as const }),
  });
}

/** Says which ports of a Service that stays are taken out of it. */
function sayLostPorts(draft: Draft, found: Found<V1Service>, pods: Pods): void {
  if (isLost(found.value, pods)) return;
  for (const port of found.value.spec?.ports ?? []) sayPort(draft, found, port, { pods, isReplaced: false });
}

function sayHttp2(draft: Draft, { manifest, value }: Found<V1Service>, port: ServicePort): void {
  draft.say(`spec.ports[${value.spec?.ports?.indexOf(port)}].appProtocol`, {
    code: 'C016',
    level: 'decide',
    object: `Service/${manifest.name}`,
    what: `appProtocol: ${port.appProtocol} is left out`,
    why: 'Pods speak HTTP/1.1, to gateways and to the server in a worker',
    wayOut:
      'Let the server speak HTTP/1.1 (node:http in place of node:http2), and the gateway, too (docs/gateways.md).',
  });
}

/** Says that a Service stays. The traffic plan is made from this. */
function sayKept(draft: Draft, { manifest, value }: Found<V1Service>, pods: Pods, name: string): void {
  const isUseless = isLost(value, pods);
  const object = `Service/${manifest.name}`;
  draft.say('spec.selector', {
    code: 'C010',
    level: isUseless ? 'decide' : 'info',
    object,
    what: isUseless ? 'none of its ports leads to anything in the new pods' : 'stays as it is',
    why: isUseless
      ? 'What it leads to is a port of the old application beside its pages'
      : 'Its clients know its name and its address',
    wayOut: isUseless
      ? 'Keep it as long as the old pods are there, and serve that elsewhere (C004).'
      : 'Nothing to do: the traffic plan moves its selector.',
    fate: 'kept',
  });
  if (isUseless || value.spec?.clusterIP !== 'None') return;
  draft.say('spec.clusterIP', {
    code: 'C010',
    level: 'decide',
    object,
    what: 'it is headless, so clients that find pods by its name ask them at a port of the old application',
    why: `The new pods have their pages at port ${PORTS.http}, whatever the port of a headless Service is`,
    wayOut: `Let such clients use Service ${name}, or port ${PORTS.http}.`,
    fate: 'kept',
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

interface Fleet {
  /** Selector of the Deployment. */
  selector: V1LabelSelector | undefined;
  /** Pods of the RenderService, where their number is known. */
  pods: number | undefined;
  /** Name of the RenderService. */
  name: string;
}

/**
 * Writes `disruptionBudget` from a budget for the pods of the Deployment alone: the one with the name of the
 * RenderService, else the first. All others stay.
 */
export function writeBudget(draft: Draft, budgets: Found<V1PodDisruptionBudget>[], fleet: Fleet): void {
  const own = budgets.filter(({ value }) => isForThese(value.spec?.selector, fleet.selector));
  const chosen = own.find(({ manifest }) => manifest.name === fleet.name) ?? own[0];
  for (const budget of budgets) {
    if (budget === chosen) writeChosen(draft, budget, fleet.pods);
    else sayBudgetKept(draft, budget);
  }
}

/** Whether a selector takes no other pods than those of the Deployment: it wants all that its selector wants. */
function isForThese(selector: V1LabelSelector | undefined, deployment: V1LabelSelector | undefined): boolean {
  const own = Object.entries(deployment?.matchLabels ?? {});
  return own.length > 0 && own.every(([key, value]) => selector?.matchLabels?.[key] === value);
}

function writeChosen(draft: Draft, { manifest, value }: Found<V1PodDisruptionBudget>, pods: number | undefined): void {
  const object = `PodDisruptionBudget/${manifest.name}`;
  const { minAvailable, maxUnavailable } = value.spec ?? {};
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
    fate: 'replaced',
  });
}

function sayBudgetKept(draft: Draft, { manifest, value }: Found<V1PodDisruptionBudget>): void {
  const isForNew = matches(value.spec?.selector ?? {}, draft.template().metadata?.labels ?? {});
  draft.say('spec.selector', {
    code: 'C016',
    level: isForNew ? 'warning' : 'info',
    object: `PodDisruptionBudget/${manifest.name}`,
    what: 'not taken over',
    why: isForNew
      ? 'It may be for other pods, too, and it selects the new pods, which have a budget of their own: no pod with two budgets can be evicted'
      : 'A RenderService makes one budget, of its own, and this one may be for other pods, too',
    wayOut: isForNew ? 'Keep it for the other pods, and let its selector leave out the new ones.' : 'Keep it.',
    fate: 'kept',
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

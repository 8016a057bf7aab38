/**
 * C010: policies that close the pods of the Deployment. The new pods do not have the labels by which these select, so
 * without a policy for them they would be open. Then nothing is written.
 */
import type { V1LabelSelector } from '@kubernetes/client-node';
import { selector as selectorShape, withoutNulls } from '../check/parts.ts';
import {
  LABEL_INSTANCE,
  LABEL_MANAGED_BY,
  LABEL_NAME,
  LABEL_RENDER_SERVICE,
  MANAGER,
  PORTS,
} from '../src/api/names.ts';
import { calicoSelector } from './calico-selectors.ts';
import type { Draft } from './draft.ts';
import type { Pods } from './leads.ts';
import { isRecord, type Manifest } from './manifests.ts';
import { matches } from './selectors.ts';

type Labels = Record<string, string>;
type Spec = Record<string, unknown>;

/** A policy of Kubernetes, of a network plug-in or of a mesh. */
export interface Closer {
  manifest: Manifest;
  /** Field of its spec that selects. */
  field: string;
  /** Whether it selects pods with these labels. */
  takes(labels: Labels): boolean;
  /** Whether it was written for pods of a RenderService. */
  isForNew: boolean;
  /** Whether that is all: policies of Cilium select by namespaces and accounts, too, which are not looked at. */
  isExact: boolean;
  /** Services that it names instead of pods. */
  services: string[];
  /** The traffic that it decides on: `Ingress`, `Egress`, or its kind if it does not tell them apart. */
  parts: string[];
  /** Ports and ranges that its rules about incoming traffic name; those that deny, if there are such rules. */
  ports: string[];
}

/** NetworkPolicy, CiliumNetworkPolicy, AuthorizationPolicy, PeerAuthentication and the like. */
const KINDS = /(Policy|Authentication)$/;
/** Fields of their specs that select pods. */
const FIELDS = ['podSelector', 'endpointSelector', 'selector'];
/** Policies for a Service that decide who comes in. */
const OF_SERVICES = /Authorization|Authentication|Security|^GCPBackendPolicy$/;
/** Cilium says with it where a label comes from. */
const SOURCE = /^(any|k8s):/;
/** Cilium has the namespace and the account of a pod among its labels. */
const NOT_OF_PODS = /^io\.(kubernetes\.pod\.namespace|cilium\.k8s\..+)$/;
/** Parts that another policy of that kind cannot stand for unless it was written for the new pods: it denies. */
const OF_ITS_OWN = / (denied|DENY|CUSTOM)$|^(RequestAuthentication|Server)$/;
/** Parts that close the ports which they name, and no others. */
const OF_PORTS = /^Ingress denied$| (DENY|CUSTOM|STRICT)$|^Server$/;
/** Kinds of meshes that say by names or accounts whom they let in. */
const UNREAD = /NetworkPolicy$|^(MeshTrafficPermission|ServiceIntentions|TrafficTarget)$/;
/** Calico's drafts, which close nothing. */
const STAGED = /^Staged/;

function isOf({ value }: Manifest, group: string): boolean {
  return String(value.apiVersion).startsWith(`${group}/`);
}

function isOfCalico(manifest: Manifest): boolean {
  return ['projectcalico.org', 'crd.projectcalico.org'].some((group) => isOf(manifest, group));
}

/** An object as policies; none for all others, and for what the operator has made. Those of Cilium have several. */
export function closersOf(manifest: Manifest): Closer[] {
  const { kind, value } = manifest;
  const isServer = kind === 'Server' && isOf(manifest, 'policy.linkerd.io');
  if ((!KINDS.test(kind) && !isServer) || STAGED.test(kind) || isMade(value)) return [];
  const specs = [value.spec, ...(Array.isArray(value.specs) ? value.specs : [])];
  return specs.filter(isRecord).flatMap((spec) => closerOf(manifest, spec) ?? []);
}

function closerOf(manifest: Manifest, spec: Spec): Closer | undefined {
  const about = { manifest, parts: partsOf(manifest, spec), ports: portsOf(spec) };
  const services = servicesOf(spec);
  if (services.length > 0 && OF_SERVICES.test(manifest.kind))
    return { ...about, services, field: 'targetRefs', takes: () => false, isForNew: false, isExact: true };
  const selection = isOfCalico(manifest) ? calicoSelection(spec) : selectionOf(manifest, spec);
  return selection && { ...about, services: [], ...selection };
}

type Selection = Pick<Closer, 'field' | 'takes' | 'isForNew' | 'isExact'>;

function selectionOf(manifest: Manifest, spec: Spec): Selection | undefined {
  const isForAll = isWithoutSelector(manifest, spec);
  const field = FIELDS.find((one) => isRecord(spec[one])) ?? (isForAll ? 'selector' : undefined);
  const parsed = selectorShape.safeParse(isForAll ? {} : field && spec[field]);
  if (field === undefined || !parsed.success) return undefined;
  const whole = withoutSources(withoutNulls(parsed.data) as V1LabelSelector);
  const selector = ofPods(whole);
  const keys = [...Object.keys(whole.matchLabels ?? {}), ...(whole.matchExpressions ?? []).map(({ key }) => key)];
  return {
    field: isOf(manifest, 'networking.k8s.io') ? 'podSelector' : field,
    takes: (labels) => matches(selector, labels),
    isForNew: keys.includes(LABEL_RENDER_SERVICE),
    isExact: !keys.some((key) => NOT_OF_PODS.test(key)),
  };
}

/** A policy that has no selector, and is for all pods of the namespace. */
function isWithoutSelector(manifest: Manifest, { podSelector, selector, targetRef, targetRefs }: Spec): boolean {
  if (isOf(manifest, 'networking.k8s.io')) return manifest.kind === 'NetworkPolicy' && podSelector == null;
  return isOf(manifest, 'security.istio.io') && [selector, targetRef, targetRefs].every((one) => one == null);
}

function calicoSelection({ selector, namespaceSelector, serviceAccountSelector }: Spec): Selection | undefined {
  // Which labels the namespace has, and which account the pods, is not looked at.
  if (namespaceSelector || serviceAccountSelector) return undefined;
  const text = String(selector ?? '');
  const takes = calicoSelector(text);
  return takes && { field: 'selector', takes, isForNew: text.includes(LABEL_RENDER_SERVICE), isExact: true };
}

/** Names of the Services that a policy is for. */
function servicesOf({ targetRef, targetRefs }: Spec): string[] {
  const all = [targetRef, ...(Array.isArray(targetRefs) ? targetRefs : [])].filter(isRecord);
  return all.flatMap(({ kind, name }) => (kind === 'Service' && typeof name === 'string' ? [name] : []));
}

/** Whether it may close pods, and nobody knows which. */
export function isUnreadCloser(manifest: Manifest): boolean {
  const { kind, value } = manifest;
  return UNREAD.test(kind) && !STAGED.test(kind) && !isMade(value) && closersOf(manifest).length === 0;
}

function isMade({ metadata }: Record<string, unknown>): boolean {
  const labels = isRecord(metadata) && isRecord(metadata.labels) ? metadata.labels : {};
  return labels[LABEL_MANAGED_BY] === MANAGER;
}

function withoutSources({ matchLabels = {}, matchExpressions = [] }: V1LabelSelector): V1LabelSelector {
  return {
    matchLabels: Object.fromEntries(
      Object.entries(matchLabels).map(([key, value]) => [key.replace(SOURCE, ''), value]),
    ),
    matchExpressions: matchExpressions.map((one) => ({ ...one, key: one.key.replace(SOURCE, '') })),
  };
}

/** Its demands on labels that pods have themselves. */
function ofPods({ matchLabels = {}, matchExpressions = [] }: V1LabelSelector): V1LabelSelector {
  return {
    matchLabels: Object.fromEntries(Object.entries(matchLabels).filter(([key]) => !NOT_OF_PODS.test(key))),
    matchExpressions: matchExpressions.filter(({ key }) => !NOT_OF_PODS.test(key)),
  };
}

function partsOf(manifest: Manifest, spec: Spec): string[] {
  const { kind } = manifest;
  if (isOf(manifest, 'security.istio.io')) return istioParts(kind, spec);
  if (!kind.endsWith('NetworkPolicy')) return [kind];
  const { policyTypes, types = policyTypes } = spec;
  const denied = deniedParts(spec);
  // An empty list is as none.
  if (Array.isArray(types) && types.length > 0) return [...types.map(String), ...denied];
  const hasEgress = spec.egress !== undefined || spec.egressDeny !== undefined;
  const isIngress = isOfCalico(manifest) ? !hasEgress : kind === 'NetworkPolicy';
  const hasIngress = isIngress || spec.ingress !== undefined || spec.ingressDeny !== undefined;
  return [...(hasIngress ? ['Ingress'] : []), ...(hasEgress ? ['Egress'] : []), ...denied];
}

function deniedParts({ ingress, egress, ingressDeny, egressDeny }: Spec): string[] {
  return [
    ...(denials(ingress, ingressDeny).length > 0 ? ['Ingress denied'] : []),
    ...(denials(egress, egressDeny).length > 0 ? ['Egress denied'] : []),
  ];
}

/** Rules that refuse traffic which others let in. */
function denials(rules: unknown, deny: unknown): unknown[] {
  const denied = Array.isArray(rules) ? rules.filter((rule) => isRecord(rule) && rule.action === 'Deny') : [];
  return Array.isArray(deny) ? [...denied, ...deny] : denied;
}

function istioParts(kind: string, { action = 'ALLOW', mtls, portLevelMtls }: Spec): string[] {
  if (kind === 'AuthorizationPolicy') return action === 'AUDIT' ? [] : [`${kind} ${String(action)}`];
  if (kind !== 'PeerAuthentication') return [kind];
  const modes = [mtls, ...Object.values(isRecord(portLevelMtls) ? portLevelMtls : {})];
  return modes.some(isStrict) ? [`${kind} STRICT`] : [];
}

function isStrict(mtls: unknown): boolean {
  return isRecord(mtls) && mtls.mode === 'STRICT';
}

function portsOf(spec: Spec): string[] {
  const { ingress, ingressDeny, egress: _egress, egressDeny: _egressDeny, ...others } = spec;
  const denied = denials(ingress, ingressDeny);
  return portsIn(denied.length > 0 ? denied : [ingress, others]);
}

/** Numbers, ranges and names behind `port`, `ports`, `toPorts`, and the keys of `portLevelMtls`. */
function portsIn(value: unknown, isPort = false): string[] {
  if (typeof value === 'number' || typeof value === 'string') return isPort ? [String(value)] : [];
  if (Array.isArray(value)) return value.flatMap((item) => portsIn(item, isPort));
  if (!isRecord(value)) return [];
  if (value.key === 'destination.port') return portsIn(value.values, true);
  if (value.endPort !== undefined) return [`${value.port}:${value.endPort}`];
  const { source: _ofClients, ...others } = value;
  return Object.entries(others).flatMap(([key, field]) =>
    key === 'portLevelMtls' && isRecord(field) ? Object.keys(field) : portsIn(field, /^(toP|p)orts?$/.test(key)),
  );
}

/** Whether one of these ports and ranges is, or has, one of those. */
function haveOneOf(ports: string[], wanted: string[]): boolean {
  return ports.some((one) => {
    const [, first, last] = /^([0-9]+)[:-]([0-9]+)$/.exec(one) ?? [];
    const isIn = (port: string) => Number(first) <= Number(port) && Number(port) <= Number(last);
    return wanted.some((port) => port === one || isIn(port));
  });
}

/** What a policy is held against. */
export interface Moved {
  /** Labels of the old pods. */
  before: Labels;
  /** The old pods. */
  pods: Pods;
  /** Services that lead to them. */
  services: string[];
  /** Name of the RenderService. */
  name: string;
}

/**
 * Sees to it that the new pods are as closed as the old ones.
 * @param unread policies of which nobody knows what they select
 */
export function keepClosed(
  draft: Draft,
  { closers, unread }: { closers: Closer[]; unread: Manifest[] },
  moved: Moved,
): void {
  const { before, name } = moved;
  for (const manifest of unread) sayUnread(draft, manifest, name);
  const own = { [LABEL_NAME]: name, [LABEL_INSTANCE]: name, [LABEL_MANAGED_BY]: MANAGER };
  const after = { ...own, ...draft.template().metadata?.labels, [LABEL_RENDER_SERVICE]: name };
  const old = closers.filter(({ takes }) => takes(before));
  const next = closers.filter(({ takes }) => takes(after));
  for (const closer of old) {
    if (next.includes(closer)) keepPorts(draft, closer, next, moved);
    else if (closer.parts.some((part) => !isKept(part, closer, next, moved.pods))) refuseOpen(draft, closer, name);
  }
  const named = closers.filter(({ services }) => services.includes(name)).flatMap(({ parts }) => parts);
  for (const closer of closers)
    if (closer.parts.some((part) => !named.includes(part))) refusePassed(draft, closer, moved);
  const first = old.find(({ parts }) => parts.includes('Ingress'));
  if (first === undefined) return;
  draft.set('networkPolicy', { enabled: false });
  draft.say(`spec.${first.field}`, {
    code: 'C010',
    level: 'decide',
    object: `${first.manifest.kind}/${first.manifest.name}`,
    what: 'networkPolicy.enabled: false is written',
    why: 'Policies add up: the one that a RenderService makes would let everybody reach port 9000, and this one does not let everybody in',
    wayOut:
      'See that a policy of yours lets clients reach port 9000 of the new pods, these each other at 9001, and the operator 8998 and 8999 (docs/network-policy.md).',
    fate: 'kept',
  });
}

/** Whether policies for the new pods decide on that traffic as well. */
function isKept(part: string, lost: Closer, next: Closer[], pods: Pods): boolean {
  const isOfItsOwn = OF_ITS_OWN.test(part);
  const isOfPages = lost.ports.length === 0 || haveOneOf(lost.ports, oldPorts(pods));
  return next
    .filter(({ parts, isForNew, isExact }) => parts.includes(part) && (isForNew || (isExact && !isOfItsOwn)))
    .some((one) => !(OF_PORTS.test(part) && isOfPages) || isAtPages(one));
}

/** Whether it closes the port of the pages in new pods. */
function isAtPages({ manifest, ports }: Closer): boolean {
  const { mtls, portLevelMtls } = (manifest.value.spec ?? {}) as Spec;
  if (isRecord(portLevelMtls)) return isStrict(portLevelMtls[PORTS.http] ?? mtls);
  return ports.length === 0 || haveOneOf(ports, NEW_PORTS);
}

/** Port of the old pages, by number and by name; all of the worker where that is not known. */
function oldPorts({ worker, pages }: Pods): string[] {
  const own = (worker.ports ?? []).filter(({ containerPort }) => pages === undefined || containerPort === pages);
  return [pages, ...own.flatMap(({ name, containerPort }) => [containerPort, name])]
    .filter((port) => port !== undefined)
    .map(String);
}

/** A policy that selects old and new pods, whose rules are about a port that only the old ones have. */
function keepPorts(draft: Draft, closer: Closer, next: Closer[], { pods }: Moved): void {
  const { manifest, field, parts, ports } = closer;
  const old = oldPorts(pods).find((port) => haveOneOf(ports, [port]));
  if (old === undefined) return;
  const alike = next.filter((one) => parts.every((part) => one.parts.includes(part)));
  if (alike.some((one) => haveOneOf(one.ports, NEW_PORTS))) return;
  const { mtls, portLevelMtls } = (manifest.value.spec ?? {}) as Spec;
  const isOpened = isRecord(portLevelMtls) ? !isStrict(mtls) : parts.some((part) => OF_PORTS.test(part));
  const isTold = parts.length === 0 || parts.includes('Ingress') || parts.every((part) => part.startsWith('Egress'));
  const object = `${manifest.kind}/${manifest.name}`;
  const what = `its rules name port ${old}, and the new pods have their pages at ${PORTS.http}`;
  const wayOut = `Let its rules, or another ${manifest.kind}, name port ${PORTS.http} as well (docs/convert.md). Apply it, or give it with -f, and convert again.`;
  if (isOpened && parts.length > 0) {
    const why = 'The new pods would be open where the old ones are closed';
    draft.refuse(`spec.${field}`, { code: 'C010', object, what, why, wayOut, fate: 'kept' });
  } else if (!isTold) {
    const why = 'Clients that it lets reach the old pods cannot reach the new ones';
    draft.say(`spec.${field}`, { code: 'C010', level: 'decide', object, what, why, wayOut, fate: 'kept' });
  }
}

/** Port of the pages in the new pods, by number and by name. */
const NEW_PORTS = [String(PORTS.http), 'http'];

/** A policy for an old Service: the Service of the RenderService leads past it. */
function refusePassed(draft: Draft, { manifest, services }: Closer, { services: old, name }: Moved): void {
  const closed = services.find((one) => old.includes(one));
  if (closed === undefined) return;
  draft.refuse('spec.targetRefs', {
    code: 'C010',
    object: `${manifest.kind}/${manifest.name}`,
    what: `it closes Service ${closed}, and not Service ${name}, which leads to the new pods`,
    why: 'Clients of the new Service would come past it',
    wayOut: `Let it name Service ${name} in targetRefs as well. Apply it, or give it with -f, and convert again.`,
    fate: 'kept',
  });
}

function sayUnread(draft: Draft, { kind, name: own }: Manifest, name: string): void {
  draft.say('spec', {
    code: 'C010',
    level: 'decide',
    object: `${kind}/${own}`,
    what: 'convert cannot read what it selects',
    why: 'If it closes the old pods, the new ones may be open',
    wayOut: `If it selects the old pods, write one that selects ${LABEL_RENDER_SERVICE}: ${name}, and apply it first.`,
    fate: 'kept',
  });
}

function refuseOpen(draft: Draft, { manifest: { kind, name: own }, field }: Closer, name: string): void {
  draft.refuse(`spec.${field}`, {
    code: 'C010',
    object: `${kind}/${own}`,
    what: `it selects the old pods by labels that the new ones do not have, and no ${kind} selects the new ones`,
    why: 'The new pods would be open where the old ones are closed',
    wayOut: `Write a ${kind} for the new pods, which selects ${LABEL_RENDER_SERVICE}: ${name} and has the same rules for port 9000 (docs/convert.md). Apply it, or give it with -f, and convert again.`,
    fate: 'kept',
  });
}

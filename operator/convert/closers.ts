/**
 * C010: policies that close the pods of the Deployment. The new pods do not have the labels by which these select, so
 * without a policy for them they would be open. Then nothing is written.
 */
import type { V1LabelSelector } from '@kubernetes/client-node';
import { selector as selectorShape, withoutNulls } from '../check/parts.ts';
import { LABEL_INSTANCE, LABEL_MANAGED_BY, LABEL_NAME, LABEL_RENDER_SERVICE, MANAGER } from '../src/api/names.ts';
import type { Draft } from './draft.ts';
import { isRecord, type Manifest } from './manifests.ts';
import { matches } from './selectors.ts';

/** A policy of Kubernetes, of a network plug-in or of a mesh. */
export interface Closer {
  manifest: Manifest;
  /** Field of its spec that selects pods. */
  field: string;
  selector: V1LabelSelector;
  /** The traffic that it decides on: `Ingress`, `Egress`, or its kind if it does not tell them apart. */
  parts: string[];
}

/** NetworkPolicy, CiliumNetworkPolicy, AuthorizationPolicy, PeerAuthentication and the like. */
const KINDS = /(Policy|Authentication)$/;
/** Fields of their specs that select pods. */
const FIELDS = ['podSelector', 'endpointSelector', 'selector'];
/** Cilium says with it where a label comes from. */
const SOURCE = /^(any|k8s):/;

/** An object as a policy that selects pods by labels; undefined for all others, and for what the operator has made. */
export function closerOf(manifest: Manifest): Closer | undefined {
  const { kind, value } = manifest;
  if (!KINDS.test(kind) || !isRecord(value.spec) || isMade(value)) return undefined;
  const { spec } = value;
  const isForAll = isOfKubernetes(manifest) && spec.podSelector == null;
  const field = isForAll ? 'podSelector' : FIELDS.find((one) => isRecord(spec[one]));
  const parsed = selectorShape.safeParse(isForAll ? {} : field && spec[field]);
  if (field === undefined || !parsed.success) return undefined;
  return {
    manifest,
    field,
    selector: withoutSources(withoutNulls(parsed.data) as V1LabelSelector),
    parts: partsOf(kind, spec),
  };
}

/** The API server reads one of these without a selector as one that selects all pods. */
function isOfKubernetes({ kind, value }: Manifest): boolean {
  return kind === 'NetworkPolicy' && String(value.apiVersion).startsWith('networking.k8s.io/');
}

/** Whether it may close pods, and nobody knows which: Calico writes its selectors as texts. */
export function isUnreadCloser(manifest: Manifest): boolean {
  return manifest.kind.endsWith('NetworkPolicy') && !isMade(manifest.value) && closerOf(manifest) === undefined;
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

function partsOf(kind: string, spec: Record<string, unknown>): string[] {
  if (!kind.endsWith('NetworkPolicy')) return [kind];
  const { policyTypes } = spec;
  // An empty list is as none.
  if (Array.isArray(policyTypes) && policyTypes.length > 0) return policyTypes.map(String);
  const hasIngress = kind === 'NetworkPolicy' || spec.ingress !== undefined || spec.ingressDeny !== undefined;
  const hasEgress = spec.egress !== undefined || spec.egressDeny !== undefined;
  return [...(hasIngress ? ['Ingress'] : []), ...(hasEgress ? ['Egress'] : [])];
}

/**
 * Sees to it that the new pods are as closed as the old ones.
 * @param unread policies of which nobody knows what they select
 * @param before labels of the old pods
 * @param name of the RenderService
 */
export function keepClosed(
  draft: Draft,
  { closers, unread }: { closers: Closer[]; unread: Manifest[] },
  { before, name }: { before: Record<string, string>; name: string },
): void {
  for (const manifest of unread) sayUnread(draft, manifest, name);
  const own = { [LABEL_NAME]: name, [LABEL_INSTANCE]: name, [LABEL_MANAGED_BY]: MANAGER };
  const after = { ...own, ...draft.template().metadata?.labels, [LABEL_RENDER_SERVICE]: name };
  const old = closers.filter(({ selector }) => matches(selector, before));
  const kept = closers.filter(({ selector }) => matches(selector, after)).flatMap(({ parts }) => parts);
  for (const closer of old) if (closer.parts.some((part) => !kept.includes(part))) refuseOpen(draft, closer, name);
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

/** Says what somebody else has written into an object of a RenderService, and where to write it instead. */
import { GROUP } from '../api/names.ts';
import { type FieldPath, fieldText, foreignFields, lastWriter } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { deviations } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';

/** Fields that a sentence names. */
const NAMED_MAX = 3;
/** A message must stay readable whatever names somebody gives to fields. */
const FIELD_LENGTH_MAX = 200;

/** Paths of a write that no field of a RenderService takes the place of. */
const NO_SPEC: FieldPath[] = [['f:metadata']];

/** What somebody has done: "argocd" sets spec.replicas. */
interface Write {
  what: string;
  /** Which fields; none where the object is gone. */
  paths: FieldPath[];
}

/**
 * A sentence about a write of somebody else.
 * @param live what that write has left; undefined where the object is gone
 */
export function foreignWrite(desired: KubeObject, live: KubeObject | undefined): string {
  const { what, paths } = live ? writeTo(desired, live) : { what: 'somebody has deleted it', paths: [] };
  return `${desired.kind} "${desired.metadata.name}": ${what}; ${instead(desired, live, paths)}`;
}

/**
 * A sentence about a write from which the plan has changed: the operator reads its own annotations of Deployments, and
 * how many pods they ask for.
 */
export function foreignState(live: KubeObject): string {
  const { kind, metadata } = live;
  const fields = `its annotations ${GROUP}/* or spec.replicas`;
  return `${kind} "${metadata.name}": ${quoted(lastWriter(live))} changes ${fields}; ${instead(live, live, NO_SPEC)}`;
}

function writeTo(desired: KubeObject, live: KubeObject): Write {
  const foreign = foreignFields(live);
  const scaled = scaling(desired, live, foreign.find(({ path }) => fieldText(path) === 'spec.replicas')?.manager);
  if (scaled !== undefined) return { what: scaled, paths: [['f:spec', 'f:replicas']] };
  if (foreign.length > 0) {
    const managers = [...new Set(foreign.map(({ manager }) => quoted(manager)))];
    const paths = foreign.map(({ path }) => path);
    return { what: `${listed(managers)} sets ${listed(paths.map(fieldText))}`, paths };
  }
  const paths = deviations(desired, live).map(({ path }) => path);
  const fields = paths.length > 0 ? listed(paths.map(fieldText)) : 'metadata.managedFields';
  return { what: `${quoted(lastWriter(live))} changes ${fields}`, paths };
}

/**
 * `kubectl scale` goes another way than other writes.
 * @param owner who has set the number of pods as others set a field
 */
function scaling(desired: KubeObject, live: KubeObject, owner: string | undefined): string | undefined {
  const [is, was] = [live, desired].map(({ spec }) => (spec as { replicas?: number } | undefined)?.replicas);
  if (is === undefined || is === was) return undefined;
  const scaler = live.metadata.managedFields?.findLast(({ subresource }) => subresource === 'scale')?.manager;
  const manager = owner ?? scaler;
  // The API server does not know who has scaled to 0: a Scale without pods has no field.
  return `${manager === undefined ? 'somebody' : quoted(manager)} has scaled it from ${was} to ${is}`;
}

/** Fields of a RenderService from which the content of an object comes, by kind. */
const SOURCES: Record<string, string> = {
  [kinds.podDisruptionBudget.kind]: 'spec.disruptionBudget',
  [kinds.networkPolicy.kind]: 'spec.networkPolicy',
};

function instead(desired: KubeObject, live: KubeObject | undefined, paths: FieldPath[]): string {
  const owner = desired.metadata.ownerReferences?.[0]?.name ?? '';
  if (desired.kind === kinds.deployment.kind && paths.some(([, field]) => field === 'f:replicas')) {
    const { replicas } = (live?.spec ?? {}) as { replicas?: number };
    return `use kubectl scale renderservice ${owner} --replicas=${replicas} instead`;
  }
  const isOfSpec = paths.length === 0 || paths.some(([root]) => root === 'f:spec');
  const sources = isOfSpec ? [...new Set(sourcesOf(desired, owner, paths))] : [];
  if (sources.length === 0) return `RenderService "${owner}" decides it`;
  return `set ${sources.join(' and ')} of RenderService "${owner}" instead`;
}

function sourcesOf({ kind, metadata }: KubeObject, owner: string, paths: FieldPath[]): string[] {
  if (kind === kinds.service.kind) return metadata.name === owner ? ['spec.service'] : [];
  const source = SOURCES[kind];
  if (kind !== kinds.deployment.kind) return source === undefined ? [] : [source];
  return paths.map(([, field]) => {
    if (field === 'f:template') return 'spec.template';
    return field === 'f:paused' ? 'spec.rollout.paused' : 'spec.rollout.rolling';
  });
}

function quoted(manager: string | undefined): string {
  return `"${manager || 'somebody'}"`;
}

/** The first of these, each once. */
export function listed(texts: string[]): string {
  const all = [...new Set(texts)];
  const rest = all.length > NAMED_MAX ? ` and ${all.length - NAMED_MAX} more` : '';
  const named = all.slice(0, NAMED_MAX).map((text) => text.slice(0, FIELD_LENGTH_MAX));
  return `${named.join(', ')}${rest}`;
}

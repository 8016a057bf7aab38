/**
 * Which Deployments are revisions of a service. A copy under another name, made with `kubectl get -o yaml` say, has its
 * label and its owner as well, and what it says of itself is said of another one.
 */
import { LABEL_REVISION } from '../api/names.ts';
import { selectorLabels } from './objects.ts';

/** Id of the one Deployment that a version without revisions has made. No hash is like it. */
export const BEFORE_REVISIONS = 'before-revisions';

/** A Deployment, as far as it matters. */
interface Deployment {
  metadata: { name: string };
  spec?: unknown;
}

/** The revision that a Deployment of this name would be of: '' for that of a version without revisions. */
export function revisionOfName(name: string, service: string): string | undefined {
  if (name === service) return '';
  const revision = name.slice(service.length + 1);
  return name.startsWith(`${service}-`) && isRevision(revision) ? revision : undefined;
}

/** Whether a text is like a revision. */
export function isRevision(text: string): boolean {
  return /^[0-9a-f]{10}$/.test(text);
}

/** Whether it is one: its selector, which nobody can change, is the one that its name asks for. */
export function isRevisionOf({ metadata, spec }: Deployment, service: string): boolean {
  const revision = revisionOfName(metadata.name, service);
  if (revision === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = (spec as Spec | undefined)?.selector ?? {};
  const wanted = Object.entries({
    ...selectorLabels({ metadata: { name: service } }),
    ...(revision && { [LABEL_REVISION]: revision }),
  });
  const isSame = wanted.every(([key, value]) => matchLabels[key] === value);
  return isSame && Object.keys(matchLabels).length === wanted.length && matchExpressions.length === 0;
}

interface Spec {
  selector?: { matchLabels?: Record<string, string>; matchExpressions?: object[] };
}

/** Labels and other qualified names, as Kubernetes writes them. */
import { GROUP, LABEL_INSTANCE, LABEL_MANAGED_BY } from './names.ts';

/** Key of a label. */
export const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
/** Value of a label. */
export const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Most labels of a RenderService: each of its objects has them, too. */
export const USER_LABELS_MAX = 64;

/** Whether Corelane sets this label on each of its objects. */
export function isOwnLabel(key: string): boolean {
  return key === LABEL_MANAGED_BY || key === LABEL_INSTANCE || key.startsWith(`${GROUP}/`);
}

/** Prefixes of labels by which tools know the objects that they have made themselves. */
export const OF_TOOLS = new Set([
  ...['argocd.argoproj.io', 'helm.sh', 'helm.toolkit.fluxcd.io', 'kustomize.toolkit.fluxcd.io'],
  ...['kapp.k14s.io', 'objectset.rio.cattle.io'],
]);

/**
 * Whether objects of a RenderService get this label of it. Not those by which Kubernetes or a tool finds what it
 * manages: `kubectl apply --prune --applyset` and others delete what has such a label and is not in their files. The
 * chart's policy about labels has the same list.
 */
export function isInherited(key: string): boolean {
  if (isOwnLabel(key)) return false;
  const [prefix = ''] = key.includes('/') ? key.split('/') : [];
  if (prefix === 'app.kubernetes.io') return true;
  const isReserved = ['kubernetes.io', 'k8s.io'].some((domain) => prefix === domain || prefix.endsWith(`.${domain}`));
  return !isReserved && !OF_TOOLS.has(prefix);
}

/** The same rule for both: `holds` for the operator, `cel` for the API server. */
export function rule<T>(holds: (value: T) => boolean, cel: string, message: string) {
  return {
    check: (value: T) => holds(value),
    message,
    meta: { 'x-kubernetes-validations': [{ rule: cel, message }] },
  };
}

/** All keys and values of a map are those of labels. */
export const labelMap = rule<Record<string, string>>(
  (map) => Object.entries(map).every(([key, value]) => LABEL_KEY.test(key) && LABEL_VALUE.test(value)),
  `self.all(k, k.matches('${LABEL_KEY.source}') && self[k].matches('${LABEL_VALUE.source}'))`,
  'must have label keys and values only, such as kubernetes.io/metadata.name: monitoring',
);

/** Labels and other qualified names, as Kubernetes writes them. */

/** Key of a label. */
export const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
/** Value of a label. */
export const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

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

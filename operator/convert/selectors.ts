/** Label selectors, as the API server matches them. */
import type { V1LabelSelector } from '@kubernetes/client-node';

type Labels = Record<string, string>;

/** Whether `selector` takes pods with these labels. One without any demand takes all. */
export function matches({ matchLabels, matchExpressions }: V1LabelSelector, labels: Labels): boolean {
  const hasAll = Object.entries(matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return hasAll && (matchExpressions ?? []).every((expression) => holds(expression, labels));
}

function holds(
  { key, operator, values }: { key: string; operator: string; values?: string[] },
  labels: Labels,
): boolean {
  const value = labels[key];
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  const isIn = value !== undefined && (values ?? []).includes(value);
  return operator === 'In' ? isIn : !isIn;
}

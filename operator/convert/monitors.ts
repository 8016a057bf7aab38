/** ServiceMonitors and PodMonitors of the Prometheus Operator. */
import type { V1LabelSelector } from '@kubernetes/client-node';
import { selector as selectorShape, withoutNulls } from '../check/parts.ts';
import { isRecord, type Manifest } from './manifests.ts';
import { matches } from './selectors.ts';

type Labels = Record<string, string>;

/**
 * Whether it is a monitor of these pods.
 * @param services labels of the Services that lead to the pods
 * @param pods labels of the pods
 */
export function isMonitorOf({ kind, value }: Manifest, services: Labels[], pods: Labels): boolean {
  const isKnown = kind === 'ServiceMonitor' || kind === 'PodMonitor';
  if (!isKnown || !isRecord(value.spec) || !isRecord(value.spec.selector)) return false;
  const parsed = selectorShape.safeParse(value.spec.selector);
  if (!parsed.success) return false;
  const selector = withoutNulls(parsed.data) as V1LabelSelector;
  return (kind === 'PodMonitor' ? [pods] : services).some((labels) => matches(selector, labels));
}

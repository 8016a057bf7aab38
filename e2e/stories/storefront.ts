/** The storefront example on the cluster, for its story and its load test. */
import { apply, kubectl } from '../harness/cluster/cluster.ts';
import { installOperator } from '../harness/cluster/operator.ts';
import { example, untilReady } from '../harness/cluster/renderservice.ts';

export const NAMESPACE = 'shop';
export const NAME = 'storefront';

/** Installs the operator, applies the example afresh, and waits until it is Ready. */
export async function applyStorefront(): Promise<void> {
  await installOperator();
  await kubectl(['-n', NAMESPACE, 'delete', 'renderservice', NAME, '--ignore-not-found'], {});
  await apply(example('storefront.yaml'));
  await untilReady(NAMESPACE, NAME);
}

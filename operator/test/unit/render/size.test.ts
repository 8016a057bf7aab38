/** A configuration is small enough that the operator keeps it in its cache; what is larger is none of ours. */
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { CONFIG_BYTES_MAX } from '../../../src/controller/cached-parts.ts';
import { renderConfig } from '../../../src/render/index.ts';

test('the configuration of the largest pod has less than half of what is kept', () => {
  const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
  const trust = Array.from({ length: 64 }, (_unused, n) => `2001:db8:${n}::/48`);
  const config = renderConfig(
    renderServiceSpec.parse({
      template,
      workersPerPod: 64,
      concurrency: 1_000,
      webSockets: { enabled: true },
      limits: { perClient: { requests: 10 } },
      forwarded: { trust },
    }),
  );
  expect(JSON.stringify(config).length).toBeLessThan(CONFIG_BYTES_MAX / 2);
});

/** A configuration is small enough that the operator keeps it in its cache; what is larger is none of ours. */
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { CONFIG_BYTES_MAX } from '../../../src/controller/cached-parts.ts';
import { renderConfig } from '../../../src/render/index.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };

test('the largest page fits beside it, whatever JSON makes of its characters', () => {
  const html = '\u{1f600}'.repeat(16_384);
  const config = renderConfig(renderServiceSpec.parse({ template, fallback: { html } }));
  expect(config['shell.html']).toBe(html);
  const quotes = renderConfig(renderServiceSpec.parse({ template, fallback: { html: '"'.repeat(32_768) } }));
  for (const { 'shell.html': page } of [config, quotes])
    expect(JSON.stringify(page).length).toBeLessThan(CONFIG_BYTES_MAX / 2 - 2_000);
});

test('the configuration of the largest pod has less than half of what is kept', () => {
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

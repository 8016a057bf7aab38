/** A configuration is small enough that the operator keeps it in its cache; what is larger is none of ours. */
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { CONFIG_BYTES_MAX } from '../../../src/controller/cached-parts.ts';
import { renderConfig } from '../../../src/render/index.ts';
import { renderLive } from '../../../src/render/live.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };

test('the configuration of the largest pod has less than two thirds of what is kept, its live settings less than half', () => {
  const trust = Array.from({ length: 128 }, (_unused, n) => `2001:db8:${n}::/48`);
  const match = {
    visitor: 'Crawler' as const,
    pathPrefix: `/${'a'.repeat(127)}`,
    header: { name: 'H'.repeat(48), value: 'b'.repeat(48) },
    cookie: 'c'.repeat(48),
    userAgent: 'd'.repeat(48),
  };
  const classes = [1, 2, 3, 4, 5].map((n) => ({ name: `${'e'.repeat(31)}${n}`, match: Array(6).fill(match) }));
  const paths = Array(32).fill(match.pathPrefix);
  const spec = (html: string) => ({ ...largest, fallback: { html, paths }, priority: { classes }, deadlines: {} });
  const largest = {
    template,
    workersPerPod: 64,
    concurrency: 1_000,
    webSockets: { enabled: true },
    limits: { perClient: { requests: 10 } },
    forwarded: { trust },
  };
  const bytes = (html: string) => JSON.stringify(renderLive(renderServiceSpec.parse(spec(html)))).length;
  const config = JSON.stringify(renderConfig(renderServiceSpec.parse(spec('x'))));
  expect(config.length).toBeLessThan((2 * CONFIG_BYTES_MAX) / 3);
  // Whatever JSON makes of its characters.
  for (const html of ['"'.repeat(32_768), '\u{1f600}'.repeat(16_384)])
    expect(bytes(html)).toBeLessThan(CONFIG_BYTES_MAX / 2);
});

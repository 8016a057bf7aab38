/** Whatever the limits are: the worst that nginx admits fits into them, and idle clients are many by default. */
import { quantityOf, sizeBytes } from '../../../src/api/scalars.ts';
import { type RenderServiceSpecInput, renderServiceSpec } from '../../../src/api/spec.ts';
import { budget } from '../../../src/render/budget.ts';
import { upTo } from '../../../src/render/nginx-limits.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const specOf = (input: Partial<RenderServiceSpecInput>) => renderServiceSpec.parse({ template, ...input });

test('15,000 idle clients beside all requests, by default', () => {
  const { nginxConnections, requests } = budget(specOf({}));
  expect(nginxConnections - requests).toBeGreaterThanOrEqual(15_000);
});

const specs = ['128Mi', '256Mi', '512Mi', '1Gi', '8Gi'].flatMap((memoryLimit) =>
  (['8Ki', '64Ki', '1Mi'] as const).map((memory) => ({ memoryLimit, memory })),
);
test.each(specs)('a limit of $memoryLimit holds heads and buffers of $memory', ({ memoryLimit, memory }) => {
  const spec = specOf({
    buffering: { request: { memory }, response: { memory } },
    sidecar: { nginx: { memoryLimit }, haproxy: { memoryLimit } },
  });
  const { nginxConnections, requests, bodies, largeBodies, responseFileBytes } = budget(spec);
  const least = requests === 64; // the bound below which a pod would not work
  if (!least)
    expect(nginxConnections * 22 * 1024 + requests * 2 * sizeBytes(memory)).toBeLessThan(quantityOf(memoryLimit));
  expect(bodies).toBeLessThan(requests);
  const disk = largeBodies * sizeBytes(spec.buffering.request.maxSize) + requests * responseFileBytes;
  expect(disk).toBeLessThanOrEqual(quantityOf(spec.sidecar.nginx.ephemeralStorageLimit));
});

test.each([1, 8, 9, 10, 99, 100, 8192, 65_536, 70_000])('the expression for numbers up to %d', (max) => {
  const expression = new RegExp(`^(?:${upTo(max)})$`);
  for (const number of [
    0, 1, 7, 8, 9, 10, 11, 19, 98, 99, 100, 101, 999, 4095, 8191, 8192, 8193, 9000, 65_535, 65_536, 65_537, 69_999,
    70_000, 70_001, 100_000,
  ])
    expect([number, expression.test(String(number))]).toEqual([number, number <= max]);
  expect(expression.test('')).toBe(false);
});

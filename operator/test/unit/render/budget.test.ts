/** Whatever the limits are: the worst that nginx admits fits into them, and idle clients are many by default. */
import { quantityOf, sizeBytes } from '../../../src/api/scalars.ts';
import type { RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { budget } from '../../../src/render/model/budget.ts';
import { dataPlaneModel } from '../../../src/render/model/index.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const specOf = (input: Partial<RenderServiceSpecInput>) => renderServiceSpec.parse({ template, ...input });

test('15,000 idle clients beside all requests, by default', () => {
  const { nginxConnections, requests } = budget(specOf({}));
  // It closes idle ones when a sixteenth is left.
  expect((15 / 16) * nginxConnections - requests).toBeGreaterThanOrEqual(15_000);
});

const specs = ['128Mi', '256Mi', '512Mi', '1Gi', '8Gi'].flatMap((memoryLimit) =>
  (['8Ki', '64Ki', '1Mi'] as const).map((memory) => ({ memoryLimit, memory })),
);
test.each(specs)('a limit of $memoryLimit holds heads and buffers of $memory', ({ memoryLimit, memory }) => {
  const spec = specOf({
    buffering: { request: { memory }, response: { memory } },
    sidecar: { nginx: { memoryLimit }, haproxy: { memoryLimit } },
  });
  const { nginxConnections, requests, bodies, largeBodies, responseFileBytes, sendBufferBytes, ...limits } =
    budget(spec);
  // With as many lines as there may be, 512 more than were looked for.
  const halfHeads = limits.busyConnections - 2 * requests;
  expect(halfHeads).toBeGreaterThan(100);
  const answerBytes = 72 * 1024 + 2 * sendBufferBytes;
  expect((halfHeads + 512) * 42 * 1024 + limits.answers * answerBytes).toBeLessThan(0.75 * quantityOf(memoryLimit));
  const least = requests === 64; // the bound below which a pod would not work
  if (!least)
    expect(nginxConnections * 22 * 1024 + requests * (2 * sizeBytes(memory) + 2 * sendBufferBytes)).toBeLessThan(
      quantityOf(memoryLimit),
    );
  expect(bodies).toBeLessThan(requests);
  const disk = largeBodies * sizeBytes(spec.buffering.request.maxSize) + requests * responseFileBytes;
  expect(disk).toBeLessThanOrEqual(quantityOf(spec.sidecar.nginx.ephemeralStorageLimit));
});

test.each(['64Mi', '96Mi', '1Gi', '16Gi'])('nginx takes what a disk of %s comes to, and it is not more', (disk) => {
  for (const memoryLimit of ['64Mi', '512Mi', '1Gi', '64Gi'])
    for (const maxSize of ['8Ki', '1Mi', '8Mi']) {
      const buffering = { request: { memory: '8Ki', maxSize } };
      const spec = specOf({ buffering, sidecar: { nginx: { memoryLimit, ephemeralStorageLimit: disk } } });
      const { largeBodies, requests, responseFileBytes } = budget(spec);
      // It says "emerg" to what is smaller than one of its buffers, but for 0: no file.
      const { bufferBytes } = dataPlaneModel(spec).response;
      if (responseFileBytes !== 0) expect(responseFileBytes).toBeGreaterThanOrEqual(bufferBytes);
      const most = largeBodies * sizeBytes(spec.buffering.request.maxSize) + requests * responseFileBytes;
      expect(most).toBeLessThanOrEqual(quantityOf(disk));
    }
});

test.each(['80Mi', '128Mi', '256Mi', '1Gi'])(
  'strangers at 9001 leave nginx its part of a HAProxy of %s',
  (memoryLimit) => {
    const { pooling, limits } = dataPlaneModel(specOf({ sidecar: { haproxy: { memory: '64Mi', memoryLimit } } }));
    const connectionsMax = pooling?.connectionsMax ?? Number.NaN;
    expect(connectionsMax).toBeGreaterThan(100);
    expect(3 * connectionsMax).toBeLessThanOrEqual(limits.haproxyFiles / 2);
  },
);

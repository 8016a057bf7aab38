/** Whatever the limits are: the worst that nginx admits fits into them, and idle clients are many by default. */
import { readFileSync } from 'node:fs';
import { CACHE_MEMORY_MIN } from '../../../src/api/cache-rules.ts';
import { quantityOf, sizeBytes } from '../../../src/api/scalars.ts';
import type { RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { budget } from '../../../src/render/model/budget.ts';
import { ROUNDS_MAX } from '../../../src/render/model/cache.ts';
import { heads } from '../../../src/render/model/heads.ts';
import { dataPlaneModel } from '../../../src/render/model/index.ts';

const KIB = 1024;
const MIB = 1024 ** 2;
const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const specOf = (input: Partial<RenderServiceSpecInput>) => renderServiceSpec.parse({ template, ...input });

test('15,000 idle clients beside all requests, by default', () => {
  const { nginxConnections, requests } = budget(specOf({}));
  // It closes idle ones when a sixteenth is left.
  expect((15 / 16) * nginxConnections - requests).toBeGreaterThanOrEqual(15_000);
});

test.each([
  ['512Mi', '256Mi', '64Ki', 64],
  ['512Mi', '256Mi', '16Ki', 16],
  ['512Mi', '256Mi', '128Ki', 128],
  ['64Mi', '256Mi', '64Ki', 16],
  ['512Mi', '159Mi', '64Ki', 16],
  ['160Mi', '160Mi', '128Ki', 64],
  ['256Mi', '256Mi', '128Ki', 128],
])('nginx of %s and HAProxy of %s take heads of %s up to %d KiB', (nginx, haproxy, maxHeaderSize, kib) => {
  const sidecar = { nginx: { memoryLimit: nginx }, haproxy: { memoryLimit: haproxy } };
  const { bytesMax, lineBytesMax, requestBuffers } = heads(specOf({ buffering: { maxHeaderSize }, sidecar }));
  expect([bytesMax, lineBytesMax]).toEqual([kib * KIB, (kib / 2) * KIB]);
  // Of two buffers that follow each other the second begins with what did not fit into the first.
  expect((requestBuffers - 1) * lineBytesMax).toBeGreaterThanOrEqual(bytesMax);
});

test.each([
  ['64Mi', '80Mi', '64Ki'],
  ['160Mi', '160Mi', '64Ki'],
  ['256Mi', '256Mi', '128Ki'],
  ['512Mi', '256Mi', '64Ki'],
])('nginx of %s and HAProxy of %s hold heads of %s at their worst', (nginx, haproxy, maxHeaderSize) => {
  const sidecar = { nginx: { memoryLimit: nginx }, haproxy: { memory: '64Mi', memoryLimit: haproxy } };
  for (const cache of nginx === '64Mi' ? [false] : [false, true]) {
    const spec = specOf({ buffering: { maxHeaderSize }, cache: { enabled: cache }, sidecar });
    const { answers, busyConnections, eventsAtOnce, haproxyBuffers, haproxyFiles, largeHeads, requests } = budget(spec);
    const { bytesMax, bufferBytes, lineBytesMax } = heads(spec);
    const halfHeads = busyConnections - 2 * requests + eventsAtOnce;
    // Three buffers, and as much again: names in lower case, a decoded URL.
    const halfHeadBytes = 26 * KIB + 6 * lineBytesMax;
    const most =
      halfHeads * halfHeadBytes +
      answers * (halfHeadBytes + bytesMax + 144 * KIB) +
      requests * (lineBytesMax + 32 * KIB) +
      largeHeads * (cache ? 12 : 4) * bytesMax;
    expect(most).toBeLessThanOrEqual(0.75 * (0.9 * quantityOf(nginx) - 16 * MIB));
    expect(halfHeads - eventsAtOnce).toBeGreaterThan(50);
    expect(eventsAtOnce).toBeGreaterThan(10);
    expect(largeHeads).toBeGreaterThan(0);
    // A connection, and a buffer, of HAProxy.
    const ofHaproxy = 48 * MIB + (haproxyFiles / 2) * 8 * KIB + haproxyBuffers * bufferBytes;
    expect(ofHaproxy).toBeLessThanOrEqual(quantityOf(haproxy));
    // Who waits has one; the rest is for responses and peers.
    if (requests > 64) expect(2 * requests).toBeLessThanOrEqual(haproxyBuffers);
  }
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
  expect(limits.busyConnections - 2 * requests).toBeGreaterThan(100);
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
      if (responseFileBytes !== 0) expect(responseFileBytes).toBeGreaterThanOrEqual(heads(spec).bufferBytes);
      const most = largeBodies * sizeBytes(spec.buffering.request.maxSize) + requests * responseFileBytes;
      expect(most).toBeLessThanOrEqual(quantityOf(disk));
    }
});

describe('requests that go on without a render slot', () => {
  const api = { name: 'api', match: [{ pathPrefix: '/api/' }], concurrency: 10, queue: { maxLength: 20 } };
  const nginx = (memoryLimit: string) => ({ sidecar: { nginx: { memoryLimit } } });

  test.each<[string, Partial<RenderServiceSpecInput>, number]>([
    ['by default', {}, 32],
    ['of many workers', { workersPerPod: 16 }, 12],
    ['with little memory', { workersPerPod: 8, ...nginx('128Mi') }, 6],
    ['beside a class', { workersPerPod: 8, classes: [api] }, 13],
    ['of a worker that has many anyway', { concurrency: 990 }, 10],
    ['of one that has as many as are noted', { concurrency: 1_000 }, 0],
    ['without the worker runtime', { runtime: { instrument: false } }, 0],
  ])('%s', (_what, input, expected) => {
    expect(budget(specOf(input)).withoutSlot).toBe(expected);
  });

  test('half of them, and of the places of classes, may wait for slow readers', () => {
    const { heldSlots, heldClasses } = budget(specOf({ workersPerPod: 3, classes: [api] }));
    expect([heldSlots, heldClasses]).toEqual([48, 15]);
    const off = budget(specOf({ runtime: { instrument: false } }));
    expect([off.heldSlots, off.heldClasses]).toEqual([0, 0]);
  });

  test('these and classes leave a third of all requests to pages', () => {
    for (const workersPerPod of [1, 4, 16, 64])
      for (const memoryLimit of ['64Mi', '512Mi', '4Gi']) {
        const spec = specOf({ workersPerPod, ...nginx(memoryLimit) });
        const { requests, withoutSlot } = budget(spec);
        expect(withoutSlot * workersPerPod).toBeLessThanOrEqual((2 / 3) * requests);
      }
  });
});

test.each(['80Mi', '128Mi', '256Mi', '1Gi'])(
  'strangers at 9001 leave nginx its part of a HAProxy of %s',
  (memoryLimit) => {
    const { pooling, limits } = dataPlaneModel(specOf({ sidecar: { haproxy: { memory: '64Mi', memoryLimit } } }));
    const connectionsMax = pooling?.connectionsMax ?? Number.NaN;
    expect(connectionsMax).toBeGreaterThan(100);
    expect(3 * connectionsMax).toBeLessThanOrEqual(limits.haproxyFiles / 2);
    expect(3 * connectionsMax).toBeLessThanOrEqual(limits.haproxyBuffers);
  },
);

describe('with the cache', () => {
  const cache = { enabled: true };

  test.each([CACHE_MEMORY_MIN, '512Mi', '1Gi', '4Gi'])(
    'a nginx of %s holds its table and all that look for pages',
    (limit) => {
      const spec = specOf({ cache, sidecar: { nginx: { memoryLimit: limit }, haproxy: { memoryLimit: '4Gi' } } });
      const { nginxConnections, requests } = budget(spec);
      const buffers = sizeBytes(spec.buffering.request.memory) + sizeBytes(spec.buffering.response.memory);
      // nginx looks up to four times for a page. Each look has a name, a head that is kept and a head that is sent: 48
      // KiB together. The budget counts larger heads apart.
      const each = buffers + 128 * KIB + 4 * 48 * KIB;
      const most = 20 * MIB + 4 * MIB + nginxConnections * 20 * KIB + requests * each;
      expect(most).toBeLessThan(quantityOf(limit));
    },
  );

  test.each(['80Mi', '128Mi', '256Mi', '1Gi'])(
    'whoever waits leaves the renders their way through a HAProxy of %s',
    (limit) => {
      const sidecar = { nginx: { memoryLimit: '16Gi' }, haproxy: { memory: '64Mi', memoryLimit: limit } };
      const { limits, pooling } = dataPlaneModel(specOf({ cache, sidecar }));
      const connections = limits.haproxyFiles / 2;
      // Entrance of the cache, herd, entrance of the queue, dispatch, waiting room.
      expect(5 * limits.requests + (pooling?.connectionsMax ?? 0)).toBeLessThanOrEqual(connections);
      expect(
        52 * MIB + connections * 8 * KIB + limits.haproxyBuffers * heads(specOf({ sidecar })).bufferBytes,
      ).toBeLessThan(quantityOf(limit));
    },
  );

  test.each(['80Mi', '256Mi', '1Gi'])('pages of other pods cost a HAProxy of %s connections, and no more', (limit) => {
    const sidecar = { nginx: { memoryLimit: '16Gi' }, haproxy: { memory: '64Mi', memoryLimit: limit } };
    const of = (shared: 'Peers' | 'Never') => budget(specOf({ cache: { ...cache, shared }, sidecar }));
    const [peers, never] = [of('Peers'), of('Never')];
    const buffersBytes = peers.haproxyBuffers * heads(specOf({ sidecar })).bufferBytes;
    expect(53 * MIB + (peers.haproxyFiles / 2) * 8 * KIB + buffersBytes).toBeLessThan(quantityOf(limit));
    // 1 MiB: a fifth of it for connections.
    expect((never.haproxyFiles - peers.haproxyFiles) / 2).toBeLessThanOrEqual(26);
  });

  test('no request looks more often than is counted', () => {
    const herds = readFileSync('sidecar/haproxy/cache/herds.lua', 'utf8');
    expect(Number(/^local ROUNDS_MAX = (\d+)$/m.exec(herds)?.[1])).toBe(ROUNDS_MAX);
  });
});

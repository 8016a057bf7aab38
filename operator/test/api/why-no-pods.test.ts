/** Some worlds in which pods are missing or do not run, one of each kind; why-no-pods.load.test.ts has all of them. */
import { readFileSync } from 'node:fs';
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { endWorld, GOLDEN, limitRange, quota, rowOf, WORLDS } from './why-no-pods.ts';

const SOME = [
  'a ResourceQuota that is used up',
  'an admission policy of somebody else',
  'the same about ReplicaSets',
  'too little CPU',
  'an image that is not there',
  'a program that ends at once',
  'assets that the image has not got',
];

afterEach(endWorld);

test('the worlds are there', () => {
  expect(WORLDS.map(({ what }) => what)).toEqual(expect.arrayContaining(SOME));
});

test.each(WORLDS.map((one, index) => ({ ...one, index })).filter(({ what }) => SOME.includes(what)))(
  '$what',
  async ({ index, ...one }) => {
    const row = await rowOf(one, `why-no-pods-${index}`);
    if (!process.env.UPDATE_GOLDEN) expect(readFileSync(GOLDEN, 'utf8')).toContain(`${row}\n`);
  },
);

test('a namespace that wants limits of every container gets the pods of a worker that has them', async () => {
  const world = await World.create(sharedServer(), 'why-no-pods-limits');
  await limitRange(world, { min: { cpu: '50m', memory: '32Mi' } });
  await quota(world, {
    'limits.cpu': '100',
    'limits.memory': '100Gi',
    'requests.cpu': '100',
    'requests.memory': '100Gi',
  });
  await world.startOperator();
  const amounts = { cpu: '500m', memory: '256Mi' };
  await world.createRenderService('shop', {
    replicas: 1,
    assets: [{ path: '/a/', from: '/a' }],
    template: podTemplate({ resources: { requests: amounts, limits: amounts } }),
  });
  await eventually('a pod', async () => {
    const [pod] = await world.list('Pod');
    const limits = [...(pod?.spec.initContainers ?? []), ...(pod?.spec.containers ?? [])].map(
      ({ name, resources }: Json) => [name, resources.limits.cpu],
    );
    expect(Object.fromEntries(limits)).toEqual({
      'corelane-runtime': '500m',
      'corelane-assets': '500m',
      haproxy: '500m',
      nginx: '500m',
      'worker-0': '500m',
      'worker-1': '500m',
    });
  });
});

/** Others who write the annotations from which the operator makes its plan: no endless fight, and no outage. */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { image, operator, running, serving, untilReady, useRolloutWorld, world } from './rollout.ts';

useRolloutWorld('fights');

const ROUNDS_MAX = 200;

/** Writes that take pods into the Service or out of it. */
const labelWrites = () => operator.sum('corelane_operator_writes_total', ({ what = '' }) => what.startsWith('pods '));

async function annotate(path: string, name: string, value: string): Promise<void> {
  const annotations = { [`corelane.dev/${name}`]: value };
  await world.admin.patch(`${path}?fieldManager=kubectl-annotate`, { metadata: { annotations } });
}

test('a revision that serves stays in the Service when somebody writes that it is out of service', async () => {
  await running('marked', { replicas: 2 });
  const { metadata } = await world.deployment('marked');
  const path = world.path('Deployment', metadata.name);
  const before = await labelWrites();
  await annotate(path, 'retired', '2026-01-01T00:00:00Z');
  await eventually('it is taken out, and told', async () => {
    expect((await world.admin.get(path)).metadata.annotations).not.toHaveProperty(['corelane.dev/retired']);
    expect(await world.condition('marked', 'ObjectsInSync')).toMatchObject({
      status: 'False',
      reason: 'TakenBack',
      message: expect.stringContaining(
        `Deployment "${metadata.name}": "kubectl-annotate" sets metadata.annotations.corelane.dev/retired`,
      ),
    });
  });
  expect(await labelWrites()).toBe(before);
  const pods = (await world.list('Pod')).filter(({ metadata: of }) => of.name.startsWith('marked-'));
  expect(pods.map(({ metadata: of }) => of.labels['corelane.dev/serving'])).toEqual(['true', 'true']);
  expect((await world.get('RenderService', 'marked')).status.readyReplicas).toBe(2);
});

/** The Deployment of the revision with this version of the image. */
async function ofVersion(name: string, version: number): Promise<Json> {
  const all = await world.deployments(name);
  return all.find(({ spec }) => spec.template.spec.containers[0].image.endsWith(`:${version}`)) as Json;
}

test.each<[what: string, annotation: string, version: number, value: (round: number) => string]>([
  ['when the current revision was complete', 'completed', 2, (round) => `2026-01-01T00:00:00.${1_000 + round}Z`],
  ['that the current revision is out of service', 'retired', 2, () => '2026-01-01T00:00:00Z'],
  ['a number of the revision before', 'revision-number', 1, (round) => String(1_000 * (round + 1))],
])('a program that writes again and again %s is told, and slowed down', async (...[, annotation, version, value]) => {
  const name = `fought-${annotation}`;
  await running(name);
  await world.patchSpec(name, image(2));
  await untilReady(name);
  const current = world.path('Deployment', (await ofVersion(name, 2)).metadata.name);
  const written = world.path('Deployment', (await ofVersion(name, version)).metadata.name);
  const told = async () => (await world.condition(name, 'ObjectsInSync'))?.reason === 'Contended';
  const hashOf = async () => (await world.admin.get(current)).metadata.annotations['corelane.dev/applied-hash'];
  for (let round = 0; round < ROUNDS_MAX && !(await told()); round += 1) {
    const hash = await hashOf();
    await annotate(written, annotation, value(round));
    await eventually('the operator has written, or that waits', async () => {
      const { annotations } = (await world.admin.get(written)).metadata;
      // Removed, or replaced by the operator's own in a write that it made for another reason.
      const isUndone = annotations[`corelane.dev/${annotation}`] !== value(round);
      expect(isUndone || (await hashOf()) !== hash || (await told())).toBe(true);
    });
  }
  const condition = await world.condition(name, 'ObjectsInSync');
  expect(condition).toMatchObject({ status: 'False', reason: 'Contended' });
  expect(condition.message).toContain('"kubectl-annotate"');
  expect(await serving(name)).toMatchObject({ 2: '2/2' });
});

/**
 * A canary: each pod decides about each request, exactly, and the request gets to its side. A load test: it counts
 * shares of 30,000 requests, in four pods.
 */
import { until } from '../../e2e/harness/engine/pod.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { CanaryFleet, COOKIE, canaryAt, NAVIGATION, placeOf, sideMetric } from './canary.ts';

const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 2, queue: { maxLength: 1_000, timeout: '60s' } };

let all: CanaryFleet;
beforeAll(async () => {
  all = await CanaryFleet.start(3, 1, SPEC);
  await all.untilSidesKnown();
});
afterAll(() => all?.stop());
afterEach(() => all.set(undefined));

const statuses = (answers: { status: number }[]) => [...new Set(answers.map(({ status }) => status))];
const total = async (what: 'assigned' | 'errors' | 'fallbacks', side: 'canary' | 'stable', pods = all.pods) =>
  (await Promise.all(pods.map((pod) => sideMetric(pod, what, side)))).reduce((sum, value) => sum + (value || 0), 0);

/** Places are spread evenly; each of four pods draws the next one from 64 that it has in hand. */
const ASSIGNED_OFF_MAX = 40;
const PEOPLE_OFF_MAX = 20;
/** Of 10,000: a point. What a pod does not take in time, on a busy machine, goes to the other side, and counts here. */
const RENDERED_OFF_MAX = 100;

test('10,000 requests of nobody: 5, 25 and 50 % within one point, and none lost', async () => {
  const counted = async () => ({
    canary: await total('assigned', 'canary'),
    stable: await total('assigned', 'stable'),
  });
  for (const percent of [5, 25, 50]) {
    await all.set(canaryAt(percent * 100));
    const before = await counted();
    const answers = await all.send(10_000, () => [`/?id=share-${percent}`]);
    expect(statuses(answers)).toEqual([200]);
    const begun = all.begun(`share-${percent}`);
    expect(begun.canary + begun.stable).toBe(10_000);
    // A page of metrics is given out for a second.
    const assigned = await until('all are counted', async () => {
      const now = await counted();
      const [canary, stable] = [now.canary - before.canary, now.stable - before.stable];
      return canary + stable === 10_000 ? canary : undefined;
    });
    const assignedOff = Math.abs(assigned - percent * 100);
    const renderedOff = Math.abs(begun.canary - percent * 100);
    figure(
      `canary of ${percent} %: assigned requests off the share`,
      assignedOff,
      'of 10000',
      `<= ${ASSIGNED_OFF_MAX}`,
    );
    figure(
      `canary of ${percent} %: rendered requests off the share`,
      renderedOff,
      'of 10000',
      `<= ${RENDERED_OFF_MAX}`,
    );
    expect(assignedOff).toBeLessThanOrEqual(ASSIGNED_OFF_MAX);
    expect(renderedOff).toBeLessThanOrEqual(RENDERED_OFF_MAX);
  }
  for (const pod of all.pods)
    expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight = 0 }) => inFlight))).toBe(1);
}, 900_000);

test('200 people: who has come to the canary stays there, whatever the share grows to', async () => {
  await all.set(canaryAt(500));
  const first = await all.send(200, (n) => [`/?id=person-${n}-0`, { headers: NAVIGATION }]);
  const places = first.map((answer) => placeOf(answer)?.place ?? Number.NaN);
  const lines = (await Promise.all(all.pods.map((pod) => pod.accessLog()))).flat();
  const without = [...places.keys()].filter((n) => Number.isNaN(places[n]));
  expect(without.flatMap((n) => lines.filter(({ uri }) => uri === `/?id=person-${n}-0`))).toEqual([]);
  let were = new Set<number>();
  for (const [step, share] of [500, 2_500, 5_000, 10_000].entries()) {
    await all.set(canaryAt(share));
    const prefix = `person-at-${step}`;
    const answers = await all.send(200, (n) => [
      `/?id=${prefix}-${n}`,
      { headers: { ...NAVIGATION, cookie: `a=b; ${COOKIE}=${places[n]}; c=d` } },
    ]);
    expect(statuses(answers)).toEqual([200]);
    // Nobody gets another place.
    expect(answers.map(placeOf).filter(Boolean)).toEqual([]);
    const are = new Set([...places.keys()].filter((n) => all.sideOf(`${prefix}-${n}`) === 'canary'));
    expect([...were].filter((n) => !are.has(n))).toEqual([]);
    const off = Math.abs(are.size - share / 50);
    figure(`canary of ${share / 100} %: visitors off the share`, off, 'of 200', `<= ${PEOPLE_OFF_MAX}`);
    expect(off).toBeLessThanOrEqual(PEOPLE_OFF_MAX);
    were = are;
  }
  expect(were.size).toBe(200);
});

/**
 * Some 300 hostile requests to each port of a pod, as bytes (hostile/cases.ts), beside honest clients. Here because
 * those, and the ports, have limits for each moment.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { cases } from './hostile/cases.ts';
import { HostileFleet, type Outcome, wrongAnswers } from './hostile/fleet.ts';

const HONEST_PER_SECOND = 10;

let hostile: HostileFleet;
const all: Outcome[] = [];
beforeAll(async () => {
  hostile = await HostileFleet.start();
  await hostile.beginHonest(HONEST_PER_SECOND);
});
afterAll(() => hostile?.stop());

test('each case has one verdict: served, or refused', () => {
  const both = cases.filter(({ answers }) => answers.test('200') && ['', '400', '429'].some((no) => answers.test(no)));
  expect(both.map(({ name }) => name)).toEqual([]);
  const open = cases.filter(
    ({ answers }) => answers.test('200') && ['200 200', '200 400'].some((two) => answers.test(two)),
  );
  expect(open.map(({ name }) => name)).toEqual([]);
});

test.each([...new Set(cases.map(({ group }) => group))])('%s: each is answered as it should', async (group) => {
  const outcomes = await hostile.send(cases.filter((one) => one.group === group));
  all.push(...outcomes);
  expect(wrongAnswers(outcomes)).toEqual([]);
});

test('nobody is taken out, mistaken for somebody else, or ended, and no worker had two requests', async () => {
  expect(all).toHaveLength(cases.length);
  expect(await hostile.broken(all)).toEqual({ takenOut: [], desync: [], overlaps: [], ended: [] });
});

test('honest clients got their own answers', async () => {
  await hostile.endHonest();
  const { length } = hostile.honest;
  const wrong = hostile.honest.filter(({ failed, foreign }) => failed !== undefined || foreign !== undefined);
  figure(
    `honest requests with a wrong answer, or none, beside ${cases.length} hostile ones`,
    wrong.length,
    `of ${length}`,
    '0',
  );
  expect(length).toBeGreaterThan(HONEST_PER_SECOND);
  expect(wrong).toEqual([]);
});

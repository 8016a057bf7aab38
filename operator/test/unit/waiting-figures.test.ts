/** Tables about renders that wait, from what the simulator has found. */
import {
  podsForLoad,
  signalsOverLoad,
  thresholdsInCrowd,
  waitingPage,
  waitingPlot,
} from '../../gen/waiting-figures.ts';
import type { WaitingStudy } from '../../simulate/waiting-study.ts';

const single = { renders: '30 ms + 100 ms', concurrency: '1', limit: 1 };
const auto = { renders: '30 ms + 100 ms', concurrency: 'Auto', limit: 8 };
const crowd = { coreHours: 71.6, flaps: 0, fewestPods: 5, mostPods: 19 };
const study: WaitingStudy = {
  loads: [0.2, 0.6].flatMap((load) => [
    { ...single, waitRatio: 3.33, load, cpu: 0.231 * load, occupancy: load, p99Ms: 543 },
    { ...auto, waitRatio: 3.33, load, cpu: 0.986 * load, occupancy: load / 2, p99Ms: 564.6 },
  ]),
  plans: [{ ...auto, rps: 600, limitMs: 700, pods: 5, cpu: 0.9, mostCpu: 0.986, occupancy: 0.75, p99Ms: 1636 }],
  crowd: [
    { ...single, ...crowd, policy: 'CPU 20/15', missed: 0.0396, refused: 6599, reachedS: 104 },
    { ...single, ...crowd, policy: 'HPA 70 %', missed: 0.01, refused: 0, reachedS: undefined },
  ],
};

test('CPU and occupancy beside each other; what was not tried is left empty', () => {
  expect(signalsOverLoad(study).split('\n').slice(2)).toEqual([
    '| 30 ms + 100 ms | 1 | 5 %, 20 % |  | 14 %, 60 % |  |  |',
    '| 30 ms + 100 ms | Auto: 8 | 20 %, 10 % |  | 59 %, 30 % |  |  |',
  ]);
});

test('pods, with what a worker can use of its core', () => {
  expect(podsForLoad(study).split('\n').at(-1)).toBe(
    '| 30 ms + 100 ms | Auto: 8 | 600 | 5 | 90 % | 99 % | 75 % | 1,636 ms |',
  );
});

test('a missed objective stands out; one that is just held does not', () => {
  const rows = thresholdsInCrowd(study).split('\n').slice(2);
  expect(rows).toEqual([
    '| 30 ms + 100 ms | 1 | CPU 20/15 | 72 | **3.96 %** | 6,599 | 5 to 19 | 104 s |',
    '| 30 ms + 100 ms | 1 | HPA 70 % | 72 | 1.00 % | 0 | 5 to 19 | never |',
  ]);
  expect(thresholdsInCrowd(study, ['HPA 70 %']).split('\n').slice(2)).toEqual(rows.slice(1));
});

test('page and picture have all of it', () => {
  const page = waitingPage(study);
  for (const part of [signalsOverLoad(study), podsForLoad(study), thresholdsInCrowd(study)])
    expect(page).toContain(part);
  const picture = waitingPlot(study);
  expect(picture).toContain('scaling.cpu adds above 20 %');
  // A linear axis from 0 to 100: 20 % of load is 10 % of the places with Auto, nine tenths down.
  expect(picture).toMatch(/<circle cx="70" cy="332" r="3" fill="#e69f00"/);
});

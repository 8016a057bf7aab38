/** Renders that wait in the simulator: event loops, places, the rule of Auto, and what policies make of them. */
import { compare, type Scenario } from '../../../simulate/compare.ts';
import { type Concurrency, FoundLimit, mostCpu, settledLimit } from '../../../simulate/concurrency.ts';
import { Fleet, type FleetModel } from '../../../simulate/fleet.ts';
import { plan } from '../../../simulate/plan.ts';
import { together } from '../../../simulate/queueing.ts';
import { json, scenarioText } from '../../../simulate/report.ts';
import { run } from '../../../simulate/run.ts';
import { fixed } from '../../../simulate/scalers/others.ts';
import { generatedDay } from '../../../simulate/trace.ts';
import { Workers } from '../../../simulate/workers.ts';
import { type ScalingSpec, scaling } from '../../../src/api/scaling.ts';
import { policyOf } from '../../../src/autoscale/policy.ts';

const AUTO = { min: 1, max: 16 };
const model: FleetModel = {
  ...{ workersPerPod: 4, renderMeanS: 0.03, renderCv: 1, startS: 20, warmFactor: 3, warmS: 20, warmCpu: 0.5 },
  ...{ queueLengthPerPod: 100, queueTimeoutS: 10, wait: { meanS: 0.1, cv: 1 } },
};
const computing: FleetModel = { ...model, renderMeanS: 0.08, wait: undefined };
const objective = { quantile: 0.99, limitS: 0.7 };

function steady(of: Partial<FleetModel>, { rps = 40, pods = 2, seed = 1, minutes = 5 } = {}) {
  const trace = { stepS: 60, rps: Array<number>(minutes).fill(rps) };
  return run(fixed('f', pods), { trace, model: { ...model, ...of }, objective, seed, begin: pods });
}

describe('renders that only compute are to the last digit what they were', () => {
  const loads = [20, 70, 95, 140].map((rps, index) => ({ rps, seed: index + 1 }));

  test.each(loads)('$rps requests a second, seed $seed: none of them waits for no time', (load) => {
    expect(steady({ ...computing, wait: { meanS: 0, cv: 1 } }, load)).toEqual(steady(computing, load));
  });

  test.each(loads)('$rps requests a second, seed $seed: Auto leaves them one at a time', (load) => {
    expect(steady({ ...computing, concurrency: AUTO }, load)).toEqual(steady(computing, load));
  });
});

test('the same seed gives the same, another one not', () => {
  for (const concurrency of [1, 4, AUTO]) {
    const load = { rps: 60 };
    expect(steady({ concurrency }, load)).toEqual(steady({ concurrency }, load));
    expect(steady({ concurrency }, { ...load, seed: 2 })).not.toEqual(steady({ concurrency }, load));
  }
});

describe('an event loop', () => {
  const workers = new Workers({ perPod: 1, concurrency: 2, waitRatio: 0, seed: 1 });
  const pod = { name: 'p', createdS: 0, readyS: 0, isLeaving: false, cpuS: 0, busy: 0 };
  const [worker] = workers.open(pod, 0, true);
  if (!worker) throw new Error('unreachable');

  test('gives turns in the order in which they are ready, each to its end', () => {
    const ends = [
      workers.turn(worker, 0, 5),
      // Short, and behind a long one all the same.
      workers.turn(worker, 1, 0.25),
      workers.turn(worker, 2, 1),
      // It has idled from 6.25 on.
      workers.turn(worker, 10, 1),
    ];
    expect(ends).toEqual([5, 5.25, 6.25, 11]);
    expect(pod.cpuS).toBe(7.25);
  });
});

describe('places', () => {
  /** All that is in progress, over places, each second. */
  function watched(concurrency: Concurrency, rps: number) {
    let fullest = 0;
    const fleet = new Fleet({ ...model, concurrency }, 1, () => {});
    fleet.scaleTo(3, true);
    for (let atS = 1; atS <= 120; atS += 1) {
      fleet.run(atS, rps);
      // A limit that falls lets what has begun go on.
      fullest = Math.max(fullest, ...fleet.pods.map(({ busy }) => busy));
    }
    return { fullest, each: fleet.places / 12 };
  }

  test.each([
    [1, 4],
    [3, 12],
  ])('concurrency %d: at most %d renders in a pod, however many want', (concurrency, most) => {
    expect(watched(concurrency, 1000).fullest).toBe(most);
  });

  test('Auto: what the event loop has time for, within its bounds', () => {
    const { each } = watched(AUTO, 1000);
    expect(each).toBeGreaterThan(6);
    expect(each).toBeLessThan(11);
    expect(watched({ min: 1, max: 4 }, 1000)).toEqual({ fullest: 16, each: 4 });
  });

  test('they do not follow the load: with a tenth of it there are as many', () => {
    const [much, little] = [watched(AUTO, 300).each, watched(AUTO, 30).each];
    expect(Math.abs(much - little)).toBeLessThan(1.5);
  });

  test('a pod begins with min; those that the day begins with have worked before', () => {
    const fleet = new Fleet({ ...model, concurrency: AUTO }, 1, () => {});
    fleet.scaleTo(1, true);
    expect(fleet.places).toBe(4 * settledLimit(AUTO, 0.1 / 0.03));
    fleet.scaleTo(2);
    fleet.run(60, 0);
    expect(fleet.places).toBe(4 * settledLimit(AUTO, 0.1 / 0.03) + 4 * AUTO.min);
  });

  test('without a render nothing is learned', () => {
    const found = new FoundLimit(AUTO);
    found.passed(0, 3600, 3600);
    expect(found.look()).toBe(AUTO.min);
  });
});

describe('the CPU of a worker that is never without work', () => {
  test.each([
    [1, 0, 1],
    [1, 1, 0.5],
    [1, 10 / 3, 0.231],
    [1, 9, 0.1],
    // As docs/concurrency.md has it: 76 % with four.
    [4, 10 / 3, 0.76],
    [AUTO, 10 / 3, 0.986],
    [{ min: 1, max: 4 }, 10 / 3, 0.76],
  ])('concurrency %j, wait ratio %d: %d', (concurrency, ratio, most) => {
    expect(mostCpu(concurrency, ratio)).toBeCloseTo(most, 2);
  });

  test.each([1, 2, 4, 8])('%d at a time: simulated, it is within 4 %% of that', (concurrency) => {
    const fleet = new Fleet({ ...model, concurrency, queueTimeoutS: 3600 }, 1, () => {});
    fleet.scaleTo(5, true);
    fleet.run(120, 1000);
    const used = fleet.pods.reduce((sum, { cpuS }) => sum + cpuS, 0) / (120 * 20);
    expect(used / mostCpu(concurrency, 10 / 3)).toBeGreaterThan(0.96);
    expect(used / mostCpu(concurrency, 10 / 3)).toBeLessThan(1.04);
  });
});

test('one time after another: means and variances add up', () => {
  expect(together({ meanS: 3, cv: 1 }, { meanS: 4, cv: 1 })).toEqual({ meanS: 7, cv: 5 / 7 });
});

describe('plan', () => {
  const of = (concurrency: Concurrency) => {
    const { renderMeanS, renderCv, wait } = model;
    const load = { rps: 120, renderMeanS, renderCv, wait, concurrency };
    const planned = plan({ load, objective, workersPerPod: 4, seed: 1 });
    if (!planned.isPossible) throw new Error('unreachable');
    return planned;
  };
  const [single, two, auto] = [of(1), of({ min: 1, max: 2 }), of(AUTO)];

  test('one at a time needs a worker for each render in progress', () => {
    // 120 x 0.13 s are 15.6 renders at a time.
    expect(single).toMatchObject({ pods: 5, limit: 1, utilization: 0.18, added: 0 });
    expect(single.occupancy).toBeCloseTo(15.6 / 20, 1);
    expect(single.modelS).toBeLessThan(0.7);
  });

  test('Auto needs CPUs for them', () => {
    expect(auto).toMatchObject({ pods: 2, limit: 8, utilization: expect.closeTo(0.45) });
    expect(auto.occupancy).toBeLessThan(0.4);
  });

  test('a small max is a limit of places', () => {
    expect(two).toMatchObject({ pods: 3, limit: 2 });
  });

  test('says what computing and waiting alone take when nothing can help', () => {
    const { renderMeanS, renderCv, wait } = model;
    const options = { objective: { quantile: 0.99, limitS: 0.3 }, workersPerPod: 4, seed: 1 };
    const plans = [1, AUTO].map((concurrency) =>
      plan({ ...options, load: { rps: 1, renderMeanS, renderCv, wait, concurrency } }),
    );
    expect(plans[0]).toEqual({ isPossible: false, renderQuantileS: expect.closeTo(0.523, 2) });
    expect(plans[1]).toEqual(plans[0]);
  });
});

describe('a flash crowd of renders that wait', () => {
  const day = generatedDay(120, 1);
  const trace = { ...day, rps: day.rps.slice(13 * 60 + 50, 14 * 60 + 35) };
  const policy = policyOf(scaling.parse({ minReplicas: 1, maxReplicas: 100 }) as ScalingSpec);
  const scenario = (concurrency: Concurrency): Scenario => ({
    ...{ trace, objective, seed: 1, policy },
    model: { ...model, concurrency },
  });
  const single = compare(scenario(1));
  const auto = compare(scenario(AUTO));

  test('the default thresholds hold the objective with Auto, and not one at a time, with as many pods', () => {
    expect(auto.policy.missed).toBeLessThan(0.01);
    expect(single.policy.missed).toBeGreaterThan(0.01);
    expect(auto.policy.coreHours / single.policy.coreHours).toBeCloseTo(1, 0);
  });

  test('an HPA on CPU adds nothing one at a time: 70 % do not come', () => {
    expect(single.hpa.changes.filter(({ from, to }) => to > from)).toEqual([]);
    expect(auto.hpa.changes.filter(({ from, to }) => to > from)).not.toEqual([]);
  });

  test('all have the same renders: the oracle needs fewer cores with Auto', () => {
    const ofOracle = ({ results }: typeof auto) => results.at(-1)?.coreHours ?? 0;
    expect(ofOracle(auto)).toBeLessThan(ofOracle(single) / 2);
  });

  test('is the same again, and says what it was', () => {
    const brief = { ...scenario(AUTO), trace: { ...trace, rps: trace.rps.slice(5, 15) } };
    expect(json(compare(brief), brief)).toBe(json(compare(brief), brief));
    expect(scenarioText(scenario(AUTO))).toContain(
      'renders of 30 ms (cv 1) that wait for 100 ms in the middle (cv 1), concurrency Auto (1 to 16),',
    );
  });
});

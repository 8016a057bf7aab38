/** The queueing model against numbers from textbooks, and against the simulator. */
import { plan } from '../../../simulate/plan.ts';
import { erlangC, latencyExceeds, latencyQuantile, workersFor } from '../../../simulate/queueing.ts';

test.each([
  [1, 0.5, 0.5], // one server: the chance to wait is its utilisation
  [2, 1, 1 / 3],
  [5, 4, 0.5541],
  [100, 80, 0.0196],
  [3, 3, 1],
])('Erlang C of %d servers and %d offered', (servers, offered, expected) => {
  expect(erlangC(servers, offered)).toBeCloseTo(expected, 3);
});

test('with exponential-like waits and constant renders the quantile is render plus wait', () => {
  // M/D/1 at 0.5: waits with chance 0.5, mean wait 1/2; the approximation is exact in the mean.
  const load = { rps: 0.5, renderMeanS: 1, renderCv: 0 };
  expect(latencyExceeds(load, 1, 0.99)).toBeCloseTo(1, 2);
  expect(latencyQuantile(load, 1, 0.4)).toBeCloseTo(1, 2);
  expect(latencyQuantile(load, 1, 0.99)).toBeCloseTo(1 + Math.log(50) / 2 / 0.5, 1);
});

describe('workersFor', () => {
  const objective = { quantile: 0.99, limitS: 0.4 };
  const load = { rps: 120, renderMeanS: 0.08, renderCv: 1 };

  test('is the fewest that hold the objective', () => {
    const workers = workersFor(load, objective) as number;
    expect(latencyExceeds(load, workers, 0.4)).toBeLessThanOrEqual(0.01);
    expect(latencyExceeds(load, workers - 1, 0.4)).toBeGreaterThan(0.01);
  });

  test('is none when the render alone is too slow', () => {
    expect(workersFor(load, { quantile: 0.99, limitS: 0.3 })).toBeUndefined();
  });
});

describe('plan', () => {
  const options = { workersPerPod: 4, seed: 1, load: { rps: 120, renderMeanS: 0.08, renderCv: 1 } };

  test('agrees with the simulator', () => {
    const result = plan({ ...options, objective: { quantile: 0.99, limitS: 0.4 } });
    expect(result).toMatchObject({ isPossible: true, added: 0, pods: 4, cores: 16 });
    if (!result.isPossible) throw new Error('unreachable');
    expect(result.simulatedMs / (1000 * result.modelS)).toBeCloseTo(1, 1);
  });

  test('says what the render alone takes when nothing can help', () => {
    // 80 ms and cv 1: e^(ln 80 - ln 2 / 2 + 2.326 * sqrt(ln 2)) = 392 ms
    expect(plan({ ...options, objective: { quantile: 0.99, limitS: 0.3 } })).toEqual({
      isPossible: false,
      renderQuantileS: expect.closeTo(0.392, 3),
    });
  });
});

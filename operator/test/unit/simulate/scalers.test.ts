/** The peers' algorithms with worked numbers. */
import { hpa } from '../../../simulate/scalers/hpa.ts';
import { kpa } from '../../../simulate/scalers/kpa.ts';
import type { PodView, View } from '../../../simulate/scalers/scaler.ts';

function pods(cpus: number[], starting = 0): PodView[] {
  const ready = cpus.map((cpu, index) => ({ name: `p${index}`, readyForS: 600, ageS: 620, cpu, takenS: 1 }));
  const others = Array.from({ length: starting }, (_unused, index) => ({
    ...{ name: `s${index}`, readyForS: -5, ageS: 15, cpu: undefined, takenS: undefined },
  }));
  return [...ready, ...others];
}

function view(fields: Partial<View>): View {
  return {
    nowS: 1000,
    replicas: fields.pods?.length ?? 0,
    pods: [],
    concurrency: 0,
    taken: 0,
    places: 0,
    refusedTotal: 0,
    ...fields,
  };
}

const BOUNDS = { min: 1, max: 100 };

describe('HPA at 70 %', () => {
  const decide = (fields: Partial<View>) => hpa('hpa', { ...BOUNDS, target: 0.7 }).step(view(fields));

  test.each([
    // ceil(4 * 0.98 / 0.7) = ceil(5.6)
    ['adds by the ratio', pods([0.98, 0.98, 0.98, 0.98]), 6],
    ['tolerates 10 %: 0.77 / 0.7 = 1.1', pods([0.77, 0.77]), 2],
    ['and no more', pods([0.78, 0.78]), 3],
    ['removes: ceil(4 * 0.3 / 0.7) = 2, nothing to stabilise on', pods([0.3, 0.3, 0.3, 0.3]), 2],
    // With the two that start at 0: (4 * 1) / 6 / 0.7 = 0.95, within the tolerance.
    ['counts pods that start as 0 % on the way up', pods([1, 1, 1, 1], 2), 6],
    // ceil(0.95 / 0.7 * 20) = 28; at most twice as many, or four more
    ['adds at most as many again in 15 s', pods(Array(20).fill(0.95)), 28],
    ['from 1 to 5 at most', pods([6]), 5],
    ['without metrics holds', pods([], 3), 3],
  ])('%s', (_what, seen, expected) => {
    expect(decide({ pods: seen })).toBe(expected);
  });

  test('goes down only to the most that it wanted in the last five minutes', () => {
    const scaler = hpa('hpa', { ...BOUNDS, target: 0.7 });
    const at = (nowS: number, cpu: number) => scaler.step(view({ nowS, pods: pods([cpu, cpu, cpu, cpu]) }));
    expect(at(0, 0.7)).toBe(4);
    expect(at(15, 0.1)).toBe(4);
    expect(at(299, 0.1)).toBe(4);
    expect(at(301, 0.1)).toBe(1);
  });
});

describe('KPA with 4 workers a pod: 2.8 requests at a time per pod', () => {
  const run = (concurrencies: number[], ready: number) => {
    const scaler = kpa('kpa', BOUNDS, 4);
    return concurrencies.map((concurrency, index) =>
      scaler.step(view({ nowS: 2 * index, concurrency, pods: pods(Array(ready).fill(0.5)) })),
    );
  };

  test('scales to the stable mean', () => {
    expect(run(Array(30).fill(14), 5).at(-1)).toBe(5);
    expect(run(Array(30).fill(15), 5).at(-1)).toBe(6);
  });

  test('panics when the last 6 s take twice the pods', () => {
    // Stable: 27 * 14 + 3 * 60 over 30 = 18.6, 7 pods; the last three looks: 60 / 2.8 = 22 pods, more than 2 * 5.
    expect(run([...Array(27).fill(14), 60, 60, 60], 5).at(-1)).toBe(22);
  });

  test('never shrinks in panic', () => {
    expect(run([...Array(27).fill(14), 60, 60, 60, 14, 14, 14], 5).at(-1)).toBe(22);
  });

  test('halves at most', () => {
    expect(run(Array(30).fill(0), 10).at(-1)).toBe(5);
  });
});

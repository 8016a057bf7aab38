/** The picture of README.md: what it shows is no accident of its seed. */
import { inTurn, oneQueue, requests, SECONDS, WORKERS, waiting } from '../../../simulate/lanes.ts';

const seeds = Array.from({ length: 200 }, (_unused, seed) => seed + 1);
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const longestWait = (system: ReturnType<typeof inTurn>) =>
  Math.max(...system.renders.map(({ arrivesS, beginsS }) => Math.min(beginsS, SECONDS) - arrivesS));

test('whatever the seed, a queue with a watchdog lets requests wait for less', () => {
  const worse = seeds.filter((seed) => longestWait(oneQueue(requests(seed))) > longestWait(inTurn(requests(seed))));
  expect(worse).toEqual([]);
});

test('the seed of the picture is no lucky one', () => {
  const shown = requests();
  for (const system of [inTurn, oneQueue]) {
    const waits = seeds.map((seed) => longestWait(system(requests(seed))));
    const ratio = longestWait(system(shown)) / mean(waits);
    expect(ratio).toBeGreaterThan(0.2);
    expect(ratio).toBeLessThan(5);
  }
});

test('no worker renders two requests at a time, and no request is lost', () => {
  for (const system of [inTurn, oneQueue]) {
    const all = requests();
    const { renders } = system(all);
    expect(renders.length).toBe(all.length);
    for (let worker = 0; worker < WORKERS; worker += 1) {
      const own = renders
        .filter((render) => render.worker === worker)
        .sort((one, other) => one.beginsS - other.beginsS);
      const overlaps = own.filter((render, index) => index > 0 && render.beginsS < (own[index - 1]?.endsS ?? 0));
      expect(overlaps).toEqual([]);
    }
  }
});

test('who waits is counted from the arrival to the beginning', () => {
  const system = inTurn([
    { arrivesS: 0, renderS: 2 },
    ...Array.from({ length: WORKERS - 1 }, () => ({ arrivesS: 0, renderS: 1 })),
    { arrivesS: 0.5, renderS: 1 },
  ]);
  expect(waiting(system)).toEqual([
    { atS: 0.5, count: 1 },
    { atS: 2, count: 0 },
  ]);
});

/**
 * Two requests a second that get their worker stuck, for a minute: how much of the workers is left to everybody else.
 * In real time and with the default of watchdog.stallTimeout: a kill costs stallTimeout and about a second more, so
 * that with a shorter one the second would weigh more.
 */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';

const SECONDS = 60;
const WORKERS = 4;
const SPEC = { workersPerPod: WORKERS, queue: { timeout: '60s' } } as const;
const EVIL = { headers: { 'x-loop': '1', host: 'shop.example' } };
const tell = ({ status, headers }: Answer) => [status, headers['x-corelane-error']].join(' ').trim();
const isUp = (pod: Pod) => Promise.all(pod.workers.map((_unused, worker) => until('it is up', () => pod.isUp(worker))));

/** Workers' time from the beginning of a render that got stuck to the next process, as a part of all. */
function lost(pod: Pod) {
  const begins = pod.events({ event: 'begin', id: 'attack' });
  const ms = begins.map(({ worker, at }) => {
    const up = pod.events({ event: 'up', worker }).find((event) => event.at > at);
    return (up?.at ?? Number.POSITIVE_INFINITY) - at;
  });
  return { stuck: begins.length, share: ms.reduce((sum, one) => sum + one, 0) / (WORKERS * SECONDS * 1000) };
}

/** Evil requests come to one pod after the other, honest ones for three pages to all of them. */
async function attack(pods: Pod[]) {
  const evil: Promise<Answer>[] = [];
  const honest: Promise<Answer>[] = [];
  const begin = performance.now();
  for (let n = 0; n < 2 * SECONDS; n += 1) {
    evil.push((pods[n % pods.length] as Pod).get('/?id=attack', EVIL));
    for (const pod of pods) for (const page of [0, 1, 2]) honest.push(pod.get(`/?ms=50&id=page-${page}`));
    await new Promise((resolve) => setTimeout(resolve, begin + 500 * (n + 1) - performance.now()));
  }
  const answers = await Promise.all(honest);
  const waits = answers.map(({ elapsedMs }) => elapsedMs).sort((a, b) => a - b);
  return {
    evil: new Set((await Promise.all(evil)).map(tell)),
    honest: new Set(answers.map(tell)),
    p99: Math.round(waits[Math.floor(0.99 * waits.length)] ?? 0),
  };
}

function check(pods: Pod[], { evil, honest, p99 }: Awaited<ReturnType<typeof attack>>) {
  const losses = pods.map(lost);
  const kept = 1 - losses.reduce((sum, { share }) => sum + share, 0) / pods.length;
  const stuck = losses.map((loss) => loss.stuck);
  console.log(
    `honest traffic kept ${(100 * kept).toFixed(1)} % of the workers, p99 ${p99} ms; stuck: ${stuck.join(', ')}`,
  );
  expect(honest).toEqual(new Set(['200']));
  for (const count of stuck) expect(count).toBeLessThanOrEqual(2);
  expect(kept).toBeGreaterThanOrEqual(0.9);
  expect(evil).toEqual(new Set(['502 worker-stuck', '503 poison']));
}

test('one pod keeps 90 % of its workers', async () => {
  const pod = await Pod.start(SPEC);
  try {
    await isUp(pod);
    check([pod], await attack([pod]));
  } finally {
    await pod.stop();
  }
}, 180_000);

test('so do two that share their work', async () => {
  const fleet = await Fleet.start(2, SPEC);
  try {
    await Promise.all(fleet.pods.map(isUp));
    check(fleet.pods, await attack(fleet.pods));
  } finally {
    await fleet.stop();
  }
}, 180_000);

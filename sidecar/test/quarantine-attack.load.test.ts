/**
 * Two requests a second that get their worker stuck, for a minute: how much of the workers is left to everybody else.
 * In real time and with the default of watchdog.stallTimeout: a kill costs stallTimeout and about a second more, so
 * that with a shorter one the second would weigh more.
 */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';

const SECONDS = 60;
const WORKERS = 4;
const SPEC = { workersPerPod: WORKERS, queue: { timeout: '60s' } } as const;
const EVIL = { headers: { 'x-loop': '1', host: 'shop.example' } };
const tell = ({ status, headers }: Answer) => [status, headers['x-corelane-error']].join(' ').trim();
const POISON = '503 poison';
const isUp = (pod: Pod) => Promise.all(pod.workers.map((_unused, worker) => until('it is up', () => pod.isUp(worker))));

/**
 * Workers' time from the beginning of a render that got stuck to the next process, as a part of all. The start of a
 * process counts as what it takes on a core of its own: these tests share two cores with others.
 */
function lost(pod: Pod) {
  const begins = pod.events({ event: 'begin', id: 'attack' });
  const ms = begins.map(({ worker, at }) => {
    const up = pod.events({ event: 'up', worker }).find((event) => event.at > at);
    const { startedAt = Number.POSITIVE_INFINITY, startCpuMs = 0 } = up ?? {};
    return startedAt - at + startCpuMs;
  });
  return { stuck: begins.length, share: ms.reduce((sum, one) => sum + one, 0) / (WORKERS * SECONDS * 1000) };
}

/**
 * Evil requests come to one pod after the other, honest ones for three pages to all of them.
 * @param told what evil clients have been told so far
 */
async function attack(pods: Pod[], told: Set<string>) {
  const evil: Promise<Answer>[] = [];
  const honest: Promise<Answer>[] = [];
  const begin = performance.now();
  for (let n = 0; n < 2 * SECONDS; n += 1) {
    const answer = (pods[n % pods.length] as Pod).get('/?id=attack', EVIL);
    evil.push(answer);
    answer.then((one) => told.add(tell(one))).catch(() => {}); // the attack fails then
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
  const where = `${pods.length} pod${pods.length > 1 ? 's' : ''}`;
  figure(`${where}: workers left to honest traffic`, 100 * kept, '%', '>= 90 %');
  figure(`${where}: p99 of honest requests`, p99, 'ms');
  figure(`${where}: most workers stuck in a pod`, Math.max(...stuck), '', '<= 2');
  expect(honest).toEqual(new Set(['200']));
  for (const count of stuck) expect(count).toBeLessThanOrEqual(2);
  expect(kept).toBeGreaterThanOrEqual(0.9);
  expect(evil).toEqual(new Set(['502 worker-stuck', POISON]));
}

let pod: Pod;
let fleet: Fleet;
let attacks: Record<'pod' | 'fleet', ReturnType<typeof attack>>;

/** The second attack begins as soon as the first one gets nobody stuck any more: they wait for most of the minute. */
beforeAll(async () => {
  [pod, fleet] = await Promise.all([Pod.start(SPEC), Fleet.start(2, SPEC)]);
  await Promise.all([pod, ...fleet.pods].map(isUp));
  const told = new Set<string>();
  const first = attack([pod], told);
  first.catch(() => {}); // its test tells
  await until('it is refused', () => told.has(POISON));
  await until('nobody is stuck any more', () => pod.events({ event: 'up' }).length === WORKERS + lost(pod).stuck);
  attacks = { pod: first, fleet: attack(fleet.pods, new Set()) };
  attacks.fleet.catch(() => {});
});
afterAll(() => Promise.all([pod?.stop(), fleet?.stop()]));

test('one pod keeps 90 % of its workers', async () => check([pod], await attacks.pod), 180_000);

test('so do two that share their work', async () => check(fleet.pods, await attacks.fleet), 180_000);

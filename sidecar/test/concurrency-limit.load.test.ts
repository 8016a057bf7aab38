/**
 * I1 and I2 in their general form: with a number above 1 no worker ever renders more than that at a time, and a worker
 * that dies loses only what it had begun. Two pods that share their work, clients that leave, requests of a class
 * beside, second tries, and numbers that change meanwhile. Here because of their load, and of chance.
 */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, type Pod, until, type WorkerEvent } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpec, RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { renderServiceSpec } from '../../operator/src/api/validated-spec.ts';
import { liveSerial, renderLive } from '../../operator/src/render/live.ts';
import { figure } from '../../operator/test/support/figure.ts';

/** HAProxy and the worker hear of fewer places at most so much later; and some, on a busy machine. */
const MOMENT_MS = 3_500;
const INPUT: Partial<RenderServiceSpecInput> = {
  workersPerPod: 2,
  concurrency: 3,
  balance: 'leastconn',
  queue: { maxLength: 500, timeout: '60s' },
  classes: [{ name: 'api', match: [{ pathPrefix: '/api' }], concurrency: 4 }],
};

let fleet: Fleet;
/** Numbers in force, and since when. */
let numbers: { limit: number; at: number }[];
let isOver = false;
const now = () => performance.timeOrigin + performance.now();

beforeAll(async () => {
  numbers = [{ limit: 3, at: 0 }];
  fleet = await Fleet.start(2, INPUT);
});
afterEach(() => {
  isOver = true;
});
afterAll(() => fleet?.stop());

interface Sent {
  id: string;
  answer?: Answer | undefined;
}
let lastId = 0;

/** Clients of the first pod that ask again and again until `isOver`. */
function load(clients: number, page: string, call: () => Parameters<Pod['get']>[1] = () => ({})): Promise<Sent[]> {
  const [home] = fleet.pods as [Pod];
  const sent: Sent[] = [];
  const client = async () => {
    while (!isOver) {
      lastId += 1;
      const options = call();
      const sort = page.startsWith('/api') ? 'class' : options?.method === 'POST' ? 'render-post' : 'render-get';
      const id = `${sort}-${lastId}`;
      sent.push({ id, answer: await home.get(`${page}&id=${id}`, options).catch(() => undefined) });
    }
  };
  return Promise.all(Array.from({ length: clients }, client)).then(() => sent);
}

async function setNumber(concurrency: number): Promise<void> {
  const before = numbers.at(-1)?.limit ?? 0;
  // A larger one may count as soon as the file is there, a smaller one counts when the last has heard of it.
  const at = concurrency > before ? now() : now() + MOMENT_MS;
  numbers.push({ limit: concurrency, at });
  for (const pod of fleet.pods) {
    const spec = renderServiceSpec.parse({ template: pod.spec.template, ...INPUT, concurrency }) as RenderServiceSpec;
    const settings = renderLive(spec);
    pod.writeLive(settings);
    const serial = `serial=${liveSerial(settings)}\ncanary=1\nsticky=1\n`;
    await until('it has them', async () => (await pod.get('/live', { port: PORTS.stats })).body === serial);
  }
  await until('it counts', () => now() > at);
}

const limitAt = (at: number) => numbers.findLast((number) => number.at <= at)?.limit ?? 0;

/** Renders that a process had when each began, itself included; requests of the class are none. */
function levels(): { at: number; renders: number; all: number }[] {
  return fleet.pods.flatMap((pod) => {
    const going = new Map<string, { renders: number; all: number }>();
    return pod.events().flatMap(({ event, id, worker, pid, at }) => {
      if (event !== 'begin' && event !== 'end') return [];
      const of = going.get(`${worker} ${pid}`) ?? { renders: 0, all: 0 };
      going.set(`${worker} ${pid}`, of);
      const change = event === 'begin' ? 1 : -1;
      of.all += change;
      if (id?.startsWith('render-')) of.renders += change;
      return event === 'begin' && id?.startsWith('render-') ? [{ at, ...of }] : [];
    });
  });
}

const begunIn = (pod: Pod) => pod.events({ event: 'begin' });
const mostSince = (began: number) =>
  Math.max(0, ...levels().flatMap(({ at, renders }) => (at > began ? [renders] : [])));

test('a worker that dies loses only what it had begun, while pods share their work', async () => {
  isOver = false;
  const [home, other] = fleet.pods as [Pod, Pod];
  const post = () => ({ method: 'POST', body: 'x' });
  const sent = [load(20, '/?ms=300'), load(20, '/?ms=300', post), load(6, '/api?ms=40')];
  await until('the other pod helps', () => begunIn(other).length > 20);
  const killed = new Set<string>();
  /** What a worker had begun that was killed, and nobody has ended. */
  const cut = () => {
    const ended = new Set(fleet.pods.flatMap((pod) => pod.events({ event: 'end' })).map(({ id }) => id));
    const isCut = (pod: number, { worker, pid, id }: WorkerEvent) =>
      worker === 0 && killed.has(`${pod} ${pid}`) && !ended.has(id);
    return fleet.pods.flatMap((pod, index) => begunIn(pod).filter((event) => isCut(index, event)));
  };
  const isOf =
    (sort: string) =>
    ({ id }: WorkerEvent) =>
      id?.startsWith(sort) === true;
  const kill = async (pod: Pod) => {
    const victim = pod.server(0);
    killed.add(`${fleet.pods.indexOf(pod)} ${victim}`);
    await pod.kill(0, victim, 'KILL');
    await until('another one is up', async () => pod.server(0) !== victim && (await pod.isUp(0)));
    await until('second tries are over', () => !cut().some(isOf('render-get-')));
  };
  await kill(other);
  await until('one has died with a POST', async () => {
    await kill(home);
    return cut().some(isOf('render-post-'));
  });
  isOver = true;
  const all = (await Promise.all(sent)).flat();
  const failed = all.filter(({ answer }) => answer?.status !== 200).map(({ id }) => id);
  expect(failed.filter((id) => !cut().some((begun) => begun.id === id))).toEqual([]);
  // What is safe to be rendered again has been.
  expect(failed.filter((id) => id.startsWith('render-get-'))).toEqual([]);
});

test('never more than the number of the moment: clients that leave, proxies and workers that die, other numbers', async () => {
  isOver = false;
  const began = now();
  const [home, other] = fleet.pods as [Pod, Pod];
  const impatient = () => ({ signal: AbortSignal.timeout(Math.round(20 + 100 * Math.random())) });
  const sent = [
    load(30, '/?ms=60'),
    load(10, '/?ms=90', impatient),
    load(8, '/?ms=800'),
    load(6, '/api?ms=40'),
    load(4, '/?block=5&ms=20'),
  ];
  const isFull = (limit: number, since: number) => until(`${limit} at a time`, () => mostSince(since) === limit);
  await isFull(3, began);
  await setNumber(5);
  await isFull(5, numbers.at(-1)?.at ?? 0);
  for (const pod of [home, other]) {
    await pod.kill(1, pod.server(1), 'KILL');
    await pod.killProxy(pod.haproxy, 'haproxy');
    const isBack = async () => (await pod.isUp(0)) && (await pod.isUp(1));
    await until('all are up', () => isBack().catch(() => false));
  }
  await setNumber(2);
  const narrow = now();
  await until('it goes on', () => levels().filter(({ at }) => at > narrow).length > 100);
  await setNumber(4);
  await isFull(4, numbers.at(-1)?.at ?? 0);
  isOver = true;
  const answers = (await Promise.all(sent)).flat().flatMap(({ answer }) => (answer?.status === 200 ? [answer] : []));
  const handedOver = answers.filter(({ body }) => JSON.parse(body).headers['x-corelane-handed-over'] !== undefined);
  expect(handedOver.length).toBeGreaterThan(0);
  const since = levels().filter(({ at }) => at > began);
  const tooMany = since.filter(({ at, renders }) => renders > limitAt(at));
  expect(since.some(({ renders, all }) => all > renders)).toBe(true);
  figure('renders begun above the concurrency of the moment', tooMany.length, `of ${since.length}`, '0');
  expect(tooMany).toEqual([]);
  for (const pod of [home, other])
    for (const server of ['line', 'late'])
      expect(await pod.metric(`haproxy_server_limit_sessions{proxy="${server}",server="slots"}`)).toBe(8);
});

/**
 * `concurrency: Auto` under load: how workers find their numbers, from rates and shares of time, and keep them.
 * Here because the verdicts depend on the load of the machine.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { numbers } from './concurrency-auto.ts';

let pod: Pod;
const { limitOf, placesIn, placesOf, inLine, mostInFlight } = numbers(() => pod);

/** Ends the loads of a test that has failed, too. */
const loads = new Set<() => void>();
const stop = () => pod?.stop();
afterEach(() => {
  for (const end of loads) end();
  loads.clear();
});

/** A render that waits six times as long as it keeps the event loop busy: seven or so at a time. */
const WAITS = '/?block=10&ms=60';
/** One that waits for nothing. */
const COMPUTES = '/?block=10';
/** HAProxy hears of fewer places at most so much later than the worker's supervisor; and some, on a busy machine. */
const MOMENT_MS = 3_500;

const overlaps = (worker: number) => pod.runtimeMetric(worker, 'corelane_worker_overlap_total');

/** Value of a metric of a worker with labels of its own; undefined if it has none. */
async function labelled(worker: number, name: string, labels = ''): Promise<number | undefined> {
  const { body } = await pod.get(`/workers/${worker}/metrics`, { port: PORTS.stats });
  const line = body.split('\n').find((text) => text.startsWith(`${name}{worker="${worker}"${labels}}`));
  return line === undefined ? undefined : Number(line.split(' ')[1]);
}

/** Clients that ask for a page again and again, until told to stop. */
function load(clients: number, page: string, call: () => Parameters<Pod['get']>[1] = () => ({})) {
  let isOver = false;
  loads.add(() => {
    isOver = true;
  });
  const answers: Answer[] = [];
  const client = async () => {
    while (!isOver) {
      const answer = await pod.get(page, call()).catch(() => undefined);
      if (answer) answers.push(answer);
    }
  };
  const clientsEnd = Promise.all(Array.from({ length: clients }, client));
  return {
    async end(): Promise<Answer[]> {
      isOver = true;
      await clientsEnd;
      return answers;
    },
  };
}

const now = () => performance.timeOrigin + performance.now();

describe('two workers', () => {
  const MAX = 12;
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 2,
      concurrency: 'Auto',
      concurrencyRange: { max: MAX },
      queue: { maxLength: 200, timeout: '60s' },
    });
  });
  afterAll(stop);

  test('renders that compute stay one at a time, and nobody waits in a worker', async () => {
    const began = now();
    const clients = load(16, COMPUTES);
    const busy = async (worker: number) =>
      Number(await labelled(worker, 'corelane_worker_level_seconds_total', ',concurrency="1"'));
    await until('both have worked for six seconds', async () => (await busy(0)) > 6 && (await busy(1)) > 6, 60_000);
    const answers = await clients.end();
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(mostInFlight(began)).toBe(1);
    for (const worker of [0, 1]) {
      expect([await limitOf(worker), await placesOf(worker)]).toEqual([1, 1]);
      expect(await labelled(worker, 'corelane_worker_concurrency_changes_total', ',direction="up"')).toBe(0);
    }
    expect([await inLine(), await overlaps(0), await overlaps(1)]).toEqual([2, 0, 0]);
  });

  test('for renders that wait it opens within seconds, and queue, peers and log say the same number', async () => {
    const began = now();
    const clients = load(60, WAITS);
    // While they work: what is learned when the load ends, on a busy machine, is another thing.
    const ratioOf = (worker: number) => labelled(worker, 'corelane_worker_wait_ratio');
    const hasOpened = async (worker: number) => (await limitOf(worker)) >= 4 && Number(await ratioOf(worker)) > 1;
    await until(
      'both have opened, for they wait longer than they compute',
      async () => (await hasOpened(0)) && (await hasOpened(1)),
    );
    await until('HAProxy has heard the same, and its queue lets as many through', async () => {
      const places = await Promise.all([placesOf(0), placesOf(1)]);
      const limits = await Promise.all([limitOf(0), limitOf(1)]);
      return `${places}` === `${limits}` && (await inLine()) === places.reduce((sum, one) => sum + one);
    });
    const late = await placesIn('proxy="late",server="slots"');
    figure('requests that HAProxy lets through to two workers whose renders wait', late, '', '>= 8');
    expect(late).toBeGreaterThanOrEqual(8);
    await until('so many are rendered at a time', () => mostInFlight(began) >= 4);
    const answers = await clients.end();
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    figure('most requests at a time in a worker whose renders wait', mostInFlight(began), '', `<= ${MAX}`);
    expect(mostInFlight(began)).toBeLessThanOrEqual(MAX);
    for (const worker of [0, 1]) {
      const [first] = (await pod.supervisorLog(worker)).filter(({ event }) => event === 'concurrency');
      expect(first).toMatchObject({
        from: 1,
        to: 2,
        because: expect.stringMatching(/^with 1 in progress the event loop is idle for [0-9]+ % of the time$/),
        waitRatio: expect.any(Number),
        busy: { 1: expect.any(Number) },
      });
    }
  });

  /** Renders that hang until they are released: they open all places, so that the limit cannot change any more. */
  async function fill(name: string) {
    const ids = Array.from({ length: 2 * MAX + 6 }, (_unused, n) => `${name}-${n}`);
    const answers = ids.map((id) => pod.get(`/?hold=1&id=${id}`, { method: 'POST', body: id }).catch(() => undefined));
    const begun = () => pod.events({ event: 'begin' }).filter(({ id }) => ids.includes(id ?? ''));
    await until('all places that there may be are taken', () => begun().length === 2 * MAX);
    return { ids, answers, begun };
  }

  test('a process that dies loses only what it had begun, and the next one begins where that was', async () => {
    const { ids, answers, begun } = await fill('dies');
    const victim = pod.server(0);
    const lost = begun().flatMap(({ worker, id }) => (worker === 0 ? [id] : []));
    expect(lost.length).toBe(MAX);
    await pod.kill(0, victim, 'KILL');
    pod.release(...ids);
    const statuses = await Promise.all(answers.map(async (answer) => (await answer)?.status));
    expect(ids.filter((_id, index) => statuses[index] !== 200).sort()).toEqual(lost.sort());
    await until('another one is up', async () => pod.server(0) !== victim && (await pod.isUp(0)));
    expect(await limitOf(0)).toBeGreaterThanOrEqual(4);
    await until('HAProxy knows', async () => (await placesOf(0)) === (await limitOf(0)));
  });

  test('the limit of the moment holds: clients that leave, workers and a HAProxy that die, a limit that falls', async () => {
    /** When each number was seen. */
    const seen: { at: number; limits: number[] }[] = [];
    let isOver = false;
    loads.add(() => {
      isOver = true;
    });
    const watching = (async () => {
      while (!isOver) {
        const limits = await Promise.all([limitOf(0), limitOf(1)]).catch(() => undefined);
        if (limits) seen.push({ at: now(), limits });
      }
    })();
    const began = now();
    const impatient = () => ({ signal: AbortSignal.timeout(Math.round(20 + 240 * Math.random())) });
    const waiting = [load(40, WAITS), load(20, '/?block=5&ms=300', impatient)];
    await until('it has opened', async () => (await limitOf(0)) >= 4 && (await limitOf(1)) >= 4);
    await pod.kill(0, pod.server(0), 'KILL');
    await pod.killProxy(pod.haproxy, 'haproxy');
    const isOpen = async () =>
      (await pod.isUp(0)) && (await pod.isUp(1)) && (await placesOf(0)) >= 4 && (await placesOf(1)) >= 4;
    await until('all are up, with the places of before', () => isOpen().catch(() => false));
    await Promise.all(waiting.map((one) => one.end()));
    const computing = [load(40, COMPUTES), load(10, COMPUTES, impatient)];
    await until('it falls to one', async () => (await limitOf(0)) === 1 && (await limitOf(1)) === 1, 60_000);
    const fallen = now();
    await until('all that came before is over', () => now() > fallen + MOMENT_MS);
    await Promise.all(computing.map((one) => one.end()));
    isOver = true;
    await watching;
    const tooMany = pod.events({ event: 'begin' }).filter(({ at, worker, inFlight = 0 }) => {
      const moment = seen.filter((one) => Math.abs(one.at - at) < MOMENT_MS);
      return at > began && inFlight > Math.max(...moment.map(({ limits }) => limits[worker] ?? 0));
    });
    figure('renders begun above the limit of the moment', tooMany.length, '', '0');
    expect(tooMany).toEqual([]);
    expect(mostInFlight(fallen + MOMENT_MS)).toBeLessThanOrEqual(1);
  });
});

describe('what hangs, and what is not to be learnt from', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 1,
      concurrency: 'Auto',
      concurrencyRange: { max: 3 },
      warmup: { requests: 5, path: '/?ms=500' },
      queue: { timeout: '60s' },
      timeouts: { render: '60s' },
    });
  });

  afterAll(stop);

  test('renders of the warm-up', async () => {
    const warmed = await labelled(0, 'corelane_worker_level_idle_seconds_total', ',concurrency="1"');
    expect(warmed).toBeGreaterThan(2);
    // The first look after it, and another one.
    const computing = load(4, COMPUTES);
    const level = () => labelled(0, 'corelane_worker_level_seconds_total', ',concurrency="1"');
    const before = Number(await level());
    await until('it has worked for four seconds', async () => Number(await level()) > before + 4);
    await computing.end();
    expect([
      await limitOf(0),
      await labelled(0, 'corelane_worker_concurrency_changes_total', ',direction="up"'),
    ]).toEqual([1, 0]);
  });

  test('an open debugger: it falls, and does not rise', async () => {
    const waiting = Array.from({ length: 6 }, (_unused, n) => pod.get(`/?until=answer&id=opens-${n}`));
    await until('it has opened', async () => (await limitOf(0)) === 3);
    pod.release('answer');
    await Promise.all(waiting);
    const computing = load(8, COMPUTES);
    await until('it is one again', async () => (await limitOf(0)) === 1, 60_000);
    await computing.end();
    await pod.kill(0, pod.server(0), 'USR1');
    const clients = load(8, WAITS);
    const held = () => labelled(0, 'corelane_worker_concurrency_held', ',reason="inspector"');
    await until('it says why', async () => (await held()) === 1);
    expect(await limitOf(0)).toBe(1);
    await clients.end();
  });
});

describe('renders that were given up', () => {
  const MAX = 2;
  /** So many for each place (auto-concurrency.cjs). */
  const ASIDE_MAX = 8 * MAX;
  let before: number | undefined;
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 1,
      concurrency: 'Auto',
      concurrencyRange: { max: MAX },
      queue: { timeout: '60s' },
      timeouts: { render: '1s' },
      runtime: { recycle: { memory: '256Mi' } },
    });
  });
  afterAll(stop);
  /** And the supervisor has seen it work. */
  beforeEach(async () => {
    await until('it is up', () => pod.isUp(0));
    const clients = load(4, WAITS);
    await until('it has opened', async () => (await limitOf(0)) === MAX);
    await clients.end();
    before = pod.server(0);
  });

  const abandoned = () => pod.runtimeMetric(0, 'corelane_worker_abandoned_renders');
  const replaced = async () => (await pod.supervisorLog(0)).filter(({ event }) => event === 'kill').length;
  /** Pages that hang, and when each was answered. */
  const hang = (name: string, count: number, page = `until=${name}`) =>
    Array.from({ length: count }, async (_unused, n) => {
      const { status } = await pod.get(`/?${page}&id=${name}-${n}`);
      return { id: `${name}-${n}`, status, at: now() };
    });

  test('those that wait give their places back, and no worker is replaced: other pages are answered', async () => {
    const hung = hang('dead', ASIDE_MAX - MAX);
    const others: Promise<Answer>[] = [];
    for (let n = 0; n < 5; n += 1) {
      await until('some have been given up', async () => (await abandoned()) >= MAX * (n + 1));
      others.push(pod.get(`/?id=beside-${n}`));
    }
    const ended = await Promise.all(hung);
    expect(ended.map(({ status }) => status)).toEqual(ended.map(() => 504));
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect([await abandoned(), pod.server(0), await replaced()]).toEqual([ended.length, before, 0]);
    // Of those that somebody waits for there were never more. The worker hears of the end before the client.
    const begun = pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('dead-'));
    const atOnce = begun.map(({ at }) => {
      const others = begun.filter((one) => one.at <= at).map(({ id }) => ended.find((answer) => answer.id === id));
      return others.filter((answer) => Number(answer?.at) > at + 500).length;
    });
    expect(Math.max(...atOnce)).toBe(MAX);
    pod.release('dead');
    await until('they have come to their end', async () => (await abandoned()) === 0);
    expect((await pod.get('/?id=then')).status).toBe(200);
    expect([pod.server(0), await replaced()]).toEqual([before, 0]);
  });

  test('a worker that has too many of them is replaced', async () => {
    await Promise.all(hang('many', ASIDE_MAX));
    expect([await abandoned(), await replaced()]).toEqual([ASIDE_MAX, 0]);
    await Promise.all(hang('more', 1));
    await until('it is another one', async () => pod.server(0) !== before && (await pod.isUp(0)));
    expect((await pod.supervisorLog(0)).filter(({ event }) => event === 'kill')).toMatchObject([
      { reason: 'abandoned', requests: [expect.any(String)] },
    ]);
  });

  test('one that computes keeps its place: its worker is replaced', async () => {
    const kills = await replaced();
    await Promise.all(hang('busy', 1, 'slices=20000'));
    await until('it is another one', async () => pod.server(0) !== before && (await pod.isUp(0)));
    expect(await replaced()).toBe(kills + 1);
  });

  test('without memory for them the worker is replaced', async () => {
    const kills = await replaced();
    expect((await pod.get('/?keep=170')).status).toBe(200);
    await Promise.all(hang('large', 3));
    await until('it is another one', async () => pod.server(0) !== before && (await pod.isUp(0)));
    expect((await replaced()) - kills).toBe(1);
  });
});

test('the worker itself holds back what is above the limit, whoever sends it', async () => {
  pod = await Pod.start({ workersPerPod: 1, concurrency: 'Auto' });
  try {
    const send = `const send = () => require('node:http').get({ host: '127.0.0.1', port: process.env.PORT, path: '/?ms=100', agent: false }, (response) => response.resume());`;
    const script = `${send} for (let n = 0; n < 5; n += 1) send();`;
    await docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', script);
    expect([mostInFlight(), await overlaps(0)]).toEqual([1, 4]);
  } finally {
    await pod.stop();
  }
});

test('a new pod that has begun where the fleet is finds a number of its own', async () => {
  pod = await Pod.start({ workersPerPod: 2, concurrency: 'Auto', concurrencyRange: { max: 12 } }, { median: 9 });
  try {
    expect([await limitOf(0), await limitOf(1)]).toEqual([8, 8]);
    // What is true of the fleet need not be true here.
    const clients = load(30, COMPUTES);
    await until('it finds its own', async () => (await limitOf(0)) === 1 && (await limitOf(1)) === 1, 60_000);
    await clients.end();
  } finally {
    await pod.stop();
  }
});

test('without a supervisor it is min, whatever clients do', async () => {
  const begin = { workersPerPod: 1, concurrency: 'Auto' as const, queue: { timeout: '60s' } };
  pod = await Pod.start(begin, { command: ['env', '--unset=NODE_OPTIONS', 'node', '/app/worker.mjs'] });
  try {
    const clients = load(20, WAITS);
    await until('it has rendered', () => pod.events({ event: 'end' }).length > 60);
    expect([mostInFlight(), await placesOf(0), await inLine()]).toEqual([1, 1, 1]);
    await clients.end();
  } finally {
    await pod.stop();
  }
});

test('with several processes behind the port it is min', async () => {
  const begin = { workersPerPod: 1, concurrency: 'Auto' as const, queue: { timeout: '60s' } };
  pod = await Pod.start(begin, { command: ['node', '/app/cluster.cjs'], env: { FORKS: '2' } });
  try {
    const clients = load(20, WAITS);
    const held = () => labelled(0, 'corelane_worker_concurrency_held', ',reason="processes"');
    await until('it says why', async () => (await held()) === 1);
    await until('it has rendered', () => pod.events({ event: 'end' }).length > 60);
    expect([await limitOf(0), await placesOf(0)]).toEqual([1, 1]);
    await clients.end();
  } finally {
    await pod.stop();
  }
});

/** Who waits for whom, and who is refused before the queue is full. */
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import {
  asks,
  begun,
  CHROME,
  CRAWLER,
  enqueue,
  FULL_TOTAL,
  keepBusy,
  PERSON,
  PREFETCH,
  REFUSED_TOTAL,
} from './priority.ts';

let pod: Pod;
const stop = () => pod?.stop();
const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error'], headers['retry-after']];

describe('people, browsers that look ahead, crawlers', () => {
  beforeAll(async () => {
    const queue = { maxLength: 4, timeout: '60s' };
    const classes = [
      { name: 'crawler', match: [{ visitor: 'Crawler' }], delay: '5m', maxQueue: '50%' },
      { name: 'prefetch', match: [{ visitor: 'Prefetch' }], delay: '4m', maxQueue: '75%' },
      { name: 'soon', match: [{ header: { name: 'X-Soon' } }], delay: '100ms', maxQueue: '100%' },
    ] as const;
    pod = await Pod.start({
      workersPerPod: 1,
      queue,
      priority: { classes: classes.map((one) => ({ ...one, match: [...one.match] })) },
    });
  });
  afterAll(stop);

  test('each goes before those below, whenever they came', async () => {
    const busy = await keepBusy(pod);
    const ids = ['first-crawler', 'first-prefetch', 'first-person', 'second-person'];
    const answers = await enqueue(pod, [
      ['first-crawler', CRAWLER],
      ['first-prefetch', PREFETCH],
      ['first-person', PERSON],
      ['second-person', PERSON],
    ]);
    await busy.release();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(begun(pod, ids)).toEqual(['first-person', 'second-person', 'first-prefetch', 'first-crawler']);
  });

  test('nobody waits for ever: who has waited for longer than the delay goes before those that come', async () => {
    const busy = await keepBusy(pod);
    const [old] = await enqueue(pod, [['old', asks({ 'x-soon': '1' })]]);
    // So that it is older than its delay, by HAProxy's own clock.
    const uptime = () => pod.metric('haproxy_process_uptime_seconds');
    const since = await uptime();
    await until('HAProxy has counted a second', async () => (await uptime()) >= since + 2);
    const [young] = await enqueue(pod, [['young', PERSON]], 1);
    await busy.release();
    expect([(await old)?.status, (await young)?.status]).toEqual([200, 200]);
    expect(begun(pod, ['old', 'young'])).toEqual(['old', 'young']);
  });

  test('who is lower is refused earlier, and counted for itself', async () => {
    const [full, crawlers, ahead] = await Promise.all(
      [FULL_TOTAL, ...['crawler', 'prefetch'].map(REFUSED_TOTAL)].map((name) => pod.metric(name)),
    );
    const busy = await keepBusy(pod);
    const waiting = await enqueue(pod, [
      ['p1', PERSON],
      ['c1', CRAWLER],
    ]);
    expect(error(await pod.get('/?id=c2', CRAWLER))).toEqual([503, 'queue-full', '300']);
    waiting.push(...(await enqueue(pod, [['a1', PREFETCH]], 2)));
    expect(error(await pod.get('/?id=a2', PREFETCH))).toEqual([503, 'queue-full', '240']);
    waiting.push(...(await enqueue(pod, [['p2', PERSON]], 3)));
    for (const call of [PERSON, CRAWLER])
      expect(error(await pod.get('/?id=none', call)).slice(0, 2)).toEqual([503, 'queue-full']);
    await busy.release();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(await pod.metric(REFUSED_TOTAL('crawler'))).toBe((crawlers ?? 0) + 2);
    expect(await pod.metric(REFUSED_TOTAL('prefetch'))).toBe((ahead ?? 0) + 1);
    // What adds pods.
    expect(await pod.metric(FULL_TOTAL)).toBe((full ?? 0) + 1);
    expect(begun(pod, ['c2', 'a2', 'none'])).toEqual([]);
  });
});

describe('which class it is', () => {
  beforeAll(async () => {
    const classes = [
      { name: 'prefetch', match: [{ visitor: 'Prefetch' as const }], delay: '1s' },
      { name: 'report', match: [{ pathPrefix: '/report/v1.2/' }], delay: '2s' },
      {
        name: 'job',
        match: [{ header: { name: 'X-Job', value: 'batch.1' } }, { header: { name: 'X-Any' } }, { cookie: 'pre.view' }],
        delay: '4s',
      },
      { name: 'both', match: [{ pathPrefix: '/both', userAgent: 'Robo.1' }], delay: '5s' },
      { name: 'crawler', match: [{ visitor: 'Crawler' as const }], delay: '6s', maxQueue: '0%' },
    ];
    pod = await Pod.start({ workersPerPod: 1, priority: { classes } });
  });
  afterAll(stop);

  test.each<[string, string, string, object]>([
    ['a person', '', '/', {}],
    ['a browser that looks ahead', 'prefetch', '/', { 'sec-purpose': 'prefetch' }],
    ['Next does', 'prefetch', '/', { 'next-router-prefetch': '1' }],
    ['Firefox does', 'prefetch', '/', { 'x-moz': 'prefetch' }],
    ['a crawler', 'crawler', '/', { 'user-agent': 'Googlebot' }],
    ['a crawler that says that it looks ahead', 'crawler', '/', { 'user-agent': 'Googlebot', purpose: 'prefetch' }],
    ['a client that names a class', '', '/', { 'x-corelane-class': 'crawler' }],
    ['a crawler that names a better one', 'crawler', '/', { 'user-agent': 'a bot', 'x-corelane-class': 'prefetch' }],
    ['a path', 'report', '/report/v1.2', {}],
    ['below it', 'report', '/report/v1.2/a/b', {}],
    ['written in another way', 'report', '/%72eport//./v1.2/x/../%61', {}],
    ['by way of another', 'report', '/x/../report/v1%2e2', {}],
    ['another path', '', '/report/v1.20', {}],
    ['the dot is a dot', '', '/report/v1-2', {}],
    ['below another path', '', '/a/report/v1.2', {}],
    ['a cookie', 'job', '/', { cookie: 'a=1; pre.view=' }],
    ['the first cookie', 'job', '/', { cookie: 'pre.view=1' }],
    ['another cookie', '', '/', { cookie: 'xpre.view=1; pre.viewx=1; pre-view=1; a=pre.view' }],
    ['the value of a header', 'job', '/', { 'x-job': 'BATCH.1' }],
    ['X-Job, spelled with _', '', '/', { x_job: 'batch.1' }],
    ['X-Any, spelled with a dot', '', '/', { 'x.any': '0' }],
    ['another value', '', '/', { 'x-job': 'batch.1, x' }],
    ['the dot of a value', '', '/', { 'x-job': 'batchx1' }],
    ['any value', 'job', '/', { 'x-any': '0' }],
    ['no value', '', '/', { 'x-any': '' }],
    ['both of two', 'both', '/both/a', { 'user-agent': `${CHROME} robo.1` }],
    ['one of two', '', '/both', {}],
    ['the other one', '', '/', { 'user-agent': `${CHROME} robo.1` }],
    ['the worst of several', 'both', '/both', { 'user-agent': `${CHROME} Robo.1`, cookie: 'pre.view=1', 'x-any': '1' }],
    ['bytes that are no text', '', '/', { cookie: '\x80\xff', 'x-job': '"; return 200;' }],
  ])('%s', async (what, expected, path, headers) => {
    const id = `class-${what.replace(/\W/g, '-')}`;
    // Where a worker is free nobody is refused, whatever maxQueue is.
    const { status, body } = await pod.get(path, asks({ ...headers, 'x-request-id': id }));
    expect([status, Object.keys(JSON.parse(body).headers ?? {}).filter((name) => name === 'x-corelane-class')]).toEqual(
      [200, []],
    );
    const line = await until('it is logged', async () =>
      (await pod.accessLog()).find(({ requestId }) => requestId === id),
    );
    expect(line.class).toBe(expected);
  });
});

/** Settings that change while a pod runs: each is seen at work, and no request has anything of it but the new value. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { type Call, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { LIVE_FILE, PORTS } from '../../operator/src/api/names.ts';
import { error, type Input, liveSettings, statuses } from './live.ts';

let pod: Pod;
const stop = () => pod?.stop();
const { live, settingsOf, change, hold } = liveSettings(() => pod);

describe('one worker', () => {
  const input: Input = {
    ...{ workersPerPod: 1, queue: { maxLength: 1, timeout: '60s' }, timeouts: { render: '60s' } },
    fallback: { html: '<p>one</p>' },
  };
  beforeAll(async () => {
    pod = await Pod.start(input);
    // A pod is ready up to 0.1 s before HAProxy's own check. What comes before that check counts as waiting.
    await until('its worker is up', () => pod.isUp(0));
  });
  afterAll(stop);
  afterEach(() => change(input));

  test('queue.maxLength: more may wait, or fewer, and who waits already is served', async () => {
    const busy = await hold(['queue-busy']);
    const waiting = [pod.get('/?id=queue-1')];
    await pod.queued(1);
    expect(error(await pod.get('/'))).toEqual([503, 'queue-full']);
    await change({ ...input, queue: { maxLength: 3, timeout: '60s' } });
    for (const id of ['queue-2', 'queue-3']) waiting.push(pod.get(`/?id=${id}`));
    await pod.queued(3);
    expect(error(await pod.get('/'))).toEqual([503, 'queue-full']);
    await change({ ...input, queue: { maxLength: 0, timeout: '60s' } });
    expect(error(await pod.get('/'))).toEqual([503, 'queue-full']);
    await busy.release();
    expect(await statuses(waiting)).toEqual([200, 200, 200]);
    expect((await pod.get('/')).status).toBe(200);
  });

  test('fallback.html: another page', async () => {
    const browser = { headers: { accept: 'text/html', 'user-agent': 'Mozilla/5.0 (X11) Firefox/140.0' } };
    await change({ ...input, queue: { maxLength: 0, timeout: '60s' } });
    const busy = await hold(['page-busy']);
    expect((await pod.get('/', browser)).body).toBe('<p>one</p>');
    await change({ ...input, queue: { maxLength: 0, timeout: '60s' }, fallback: { html: '<p>two</p>' } });
    // nginx looks at an open file once a second.
    await until('the other page', async () => (await pod.get('/', browser)).body === '<p>two</p>');
    await busy.release();
  });

  test('what is wrong changes nothing, and the pod says why', async () => {
    const file = join(pod.run, '../live', LIVE_FILE);
    const serial = (await live()).trim();
    const settings = settingsOf(pod, { ...input, queue: { maxLength: 7, timeout: '60s' } })[LIVE_FILE];
    for (const [text, problem] of [
      [settings.replace('queue-length-max=7', 'queue-length-max=70000'), 'queue-length-max is not from 0 to 10000'],
      [settings.slice(0, -1), 'does not end with a line'],
      [settings.replace('version=1', 'version=9'), 'is of another version'],
      [`${settings}evil\n`, 'has a line that is not name=number'],
    ] as const) {
      writeFileSync(file, text);
      await until(problem, async () => (await live()) === `${serial}\nproblem=${problem}\n`);
    }
    expect(await logs(pod.haproxy)).toContain('live settings: the file is of another version');
  });

  test('nobody sets anything by the port that tells of it', async () => {
    const before = await live();
    for (const call of [
      { method: 'PUT', body: 'queue-length-max=0\n' },
      { method: 'POST', body: 'serial=1\n' },
      { headers: { authorization: 'Bearer x' } },
    ] as Call[]) {
      const { status } = await pod.get('/live', { ...call, port: PORTS.stats });
      expect(status).toBe(call.method ? 405 : 200);
    }
    expect(await live()).toBe(before);
  });
});

test('a HAProxy that is started again has them before it accepts a request', async () => {
  const input = (maxLength: number): Input => ({ workersPerPod: 1, queue: { maxLength, timeout: '3s' } });
  // Nobody renders, so whoever may wait does, and is answered otherwise.
  pod = await Pod.start(input(100), { workers: false });
  try {
    await change(input(0));
    const before = await live();
    await pod.killProxy(pod.haproxy, 'haproxy', { withChildren: true });
    expect(error(await pod.get('/'))).toEqual([503, 'queue-full']);
    expect(await live()).toBe(before);
  } finally {
    await pod.stop();
  }
});

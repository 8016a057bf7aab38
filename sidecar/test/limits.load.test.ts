/**
 * Renders and handlers that are beyond their limit, and bodies of 8 MB that a pod refuses before all of them has come.
 * Here because of time-outs of 1 to 5 s that must outlast something else.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { error } from './limits.ts';

/** More than nginx gets rid of before HAProxy answers: sockets and buffers on the way hold some 230 kB. */
const LARGE_BODY = Buffer.alloc(8_000_000, 'x');

describe.each(['Safe', 'Always'] as const)(
  'an answer that comes before all of a body is through, replay: %s',
  (replay) => {
    let busy: Pod;
    beforeAll(async () => {
      busy = await Pod.start({ workersPerPod: 1, queue: { maxLength: 1, timeout: '3s' }, replay });
    });
    afterAll(() => busy?.stop());
    const post = (id: string) => busy.get(`/?id=${id}`, { method: 'POST', body: LARGE_BODY });

    test('a full queue, and a wait that was too long', async () => {
      const held = busy.get('/?hold=1&id=held');
      await busy.begun('held');
      const waits = post('waits');
      await busy.queued(1);
      const refused = await Promise.all(Array.from({ length: 10 }, (_unused, n) => post(`refused-${n}`)));
      expect(refused.map(error)).toEqual(Array(10).fill([503, 'queue-full', '1']));
      expect(error(await waits)).toEqual([503, 'queue-timeout', '1']);
      busy.release('held');
      expect((await held).status).toBe(200);
      expect(busy.events({ event: 'begin' })).toHaveLength(1);
      const tries = async () =>
        (await busy.accessLog()).filter(({ method }) => method === 'POST').map((line) => line.tries);
      await until('they are logged', async () => (await tries()).length === 11);
      // One each: nothing was lost that could be sent again.
      expect(await tries()).toEqual(Array(11).fill('503'));
      expect((await post('after')).status).toBe(200);
    });

    test('no worker', async () => {
      const [worker = ''] = busy.workers;
      await docker('stop', '--time', '1', worker);
      await until('it is down', async () => !(await busy.isUp(0)));
      expect(error(await post('no-worker'))).toEqual([503, 'no-worker', '1']);
      await docker('start', worker);
      await until('it is back', () => busy.isUp(0));
      expect((await post('back')).status).toBe(200);
    });
  },
);

test('a render beyond its limit is given up', async () => {
  const pod = await Pod.start({ workersPerPod: 1, timeouts: { render: '4s' } });
  try {
    expect(error(await pod.get('/?hold=1&id=too-long'))).toEqual([504, 'render-timeout', undefined]);
    pod.release('too-long');
    await until('the render ends', () => pod.events({ event: 'end', id: 'too-long' })[0]);
  } finally {
    await pod.stop();
  }
});

test('what may change something is given up later: after timeouts.handler', async () => {
  const pod = await Pod.start({ workersPerPod: 2, timeouts: { render: '1s', handler: '5s' } });
  try {
    const form = pod.get('/?hold=1&id=form', { method: 'POST', body: 'x' });
    const { worker } = await pod.begun('form');
    const before = pod.server(worker);
    expect(error(await pod.get('/?hold=1&id=page'))).toEqual([504, 'render-timeout', undefined]);
    // The page has begun later, and it is over; the form has begun earlier, and it is not.
    expect(pod.events({ event: 'end', id: 'form' })).toEqual([]);
    expect(await Promise.race([form, Promise.resolve('waits')])).toBe('waits');
    expect(error(await form)).toEqual([504, 'render-timeout', undefined]);
    await until('its worker is replaced', () => pod.server(worker) !== before);
  } finally {
    await pod.stop();
  }
});

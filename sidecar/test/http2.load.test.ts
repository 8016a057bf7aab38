/**
 * HTTP/2 in a pod that stops, within the delay of its drain, and in one that was not told to speak it. Here because a
 * test must be quicker than that delay, and because each starts a pod.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { headers, open, request, TYPE } from './apps/frames.mjs';
import { ask, closeAll, connections, session } from './http2.ts';

afterEach(closeAll);

test('where it is not asked for nobody speaks it', async () => {
  const plain = await Pod.start({ workersPerPod: 1 });
  try {
    const came = open({ port: plain.port(PORTS.http) });
    connections.push(came);
    await until('it is closed', () => came.ended);
    expect(came.frames.filter(({ type }) => type === TYPE.settings)).toEqual([]);
  } finally {
    await plain.stop();
  }
});

test('a pod that stops says GOAWAY, finishes its streams, and loses nothing', async () => {
  const stopping = await Pod.start({ workersPerPod: 1, http2: { enabled: true }, drain: { delay: '10s' } });
  try {
    const came = open({ port: stopping.port(PORTS.http) });
    connections.push(came);
    came.send(headers(1, request('/?hold=1&id=last')), headers(3, request('/?id=queued')));
    await stopping.begun('last');
    const idle = open({ port: stopping.port(PORTS.http) });
    connections.push(idle);
    idle.send(headers(1, request('/ping')));
    await until('it is answered', () => idle.whole(1));
    const hooks = [stopping.haproxy, stopping.nginx].map((container) => docker('exec', container, 'corelane-drain'));
    await until('it drains', async () => (await stopping.get('/readyz', { port: PORTS.health })).status === 503);
    const late = open({ port: stopping.port(PORTS.http) });
    connections.push(late);
    late.send(headers(1, request('/?id=late')));
    // It refuses a response that is about its connection.
    const strict = ask(session(stopping), '/?id=strict');
    stopping.release('last');
    await until('all is answered', () => late.whole(1) && came.whole(1) && came.whole(3));
    expect([late.status(1), came.status(1), came.status(3)]).toEqual([200, 200, 200]);
    expect((await strict).status).toBe(200);
    await until('they are told', () => late.goaway() === 0 && came.goaway() === 0);
    // Long before nginx itself is: it still takes what comes.
    expect((await stopping.get('/ping')).status).toBe(503);
    await Promise.all(hooks);
    await until('all are told', () => [came, idle, late].every((one) => one.goaway() === 0));
  } finally {
    await stopping.stop();
  }
});

/**
 * PROXY headers that do not come, or that are none, by the clock: how fast a log grows, and when a connection is
 * closed.
 */
import { once } from 'node:events';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { converse } from './proxy-protocol.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    ...{ workersPerPod: 1, timeouts: { clientHeader: '1s' } },
    forwarded: { proxyProtocol: true },
  });
});
afterAll(() => pod?.stop());

test('the log does not grow with those that have no header', async () => {
  const lines = async () => (await logs(pod.nginx)).split('\n').filter((line) => /PROXY|header/i.test(line)).length;
  const [before, begun] = [await lines(), Date.now()];
  for (let n = 0; n < 50; n += 1) {
    const { socket } = await converse(pod, n % 2 ? 'GET / HTTP/1.1\r\n\r\n' : 'PROXY TCP4 localhost 5.6.7.8 1 80\r\n');
    await once(socket, 'close');
  }
  const now = await lines();
  const allowed = 2 + (Date.now() - begun) / 1000;
  figure('log lines of 50 connections without a PROXY header', now - before, '', `<= ${allowed.toFixed(1)}`);
  expect(now).toBeGreaterThan(0);
  expect(now - before).toBeLessThanOrEqual(allowed);
});

test('who sends nothing, or half a header, is closed after timeouts.clientHeader', async () => {
  const silent = await converse(pod);
  const half = await converse(pod, 'PROXY TCP4 1.2');
  await Promise.all([once(silent.socket, 'close'), once(half.socket, 'close')]);
  expect([silent.text(), half.text()]).toEqual(['', '']);
});

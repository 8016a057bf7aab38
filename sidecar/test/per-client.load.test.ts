/** Limits for each client, under a flood: its verdict is a rate. */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { program, received } from './neighbours.ts';
import { from, startLimited } from './per-client.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await startLimited();
});
afterAll(() => pod?.stop());

test('clients that ask faster than nginx answers keep nobody waiting', async () => {
  const address = 'X-Forwarded-For: 203.0.113.20';
  const head = `POST / HTTP/1.1\r\nHost: a\r\n${address}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`;
  const stalled = await Promise.all([1, 2, 3].map(() => rawConnection(pod.port(PORTS.http))));
  for (const socket of stalled) {
    socket.write(head);
    await new Promise((resolve) => socket.once('data', resolve));
  }
  // Each is answered 429, which costs nothing but nginx' time.
  const stop = program(
    pod,
    `const requests = Buffer.from('GET / HTTP/1.1\\r\\nHost: a\\r\\n${address}\\r\\n\\r\\n'.repeat(1000));
    // nginx closes after keepalive_requests.
    const open = () => {
      const socket = require('node:net').connect({ host: '127.0.0.1', port: ${PORTS.http} });
      const write = () => { while (socket.writable && socket.write(requests)); };
      socket.on('connect', write).on('drain', write).on('error', () => {}).on('close', open).resume();
    };
    for (let n = 0; n < 50; n += 1) open();`,
  );
  try {
    const before = await received(pod, 'lo');
    await until('they ask', async () => (await received(pod, 'lo')) > before + 1_000_000);
    let served = 0;
    const began = performance.now();
    for (let n = 0; n < 20; n += 1)
      void from(pod, `203.0.113.${100 + n}`, `/?id=beside-${n}`).then(
        () => (served += 1),
        () => {},
      );
    await until('others are served', () => served === 20, 15_000);
    figure('time of 20 other requests during a flood of one client', (performance.now() - began) / 1000, 's', '< 15 s');
    const now = await received(pod, 'lo');
    await until('they still ask', async () => (await received(pod, 'lo')) > now + 1_000_000);
  } finally {
    await stop();
    for (const socket of stalled) socket.destroy();
  }
});

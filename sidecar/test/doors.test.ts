/** The ports that are not for clients, and that every pod of the cluster may reach: 8998 and 8999. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 2, drain: { delay: '0s', timeout: '60s' } };

let fleet: Fleet;
let pod: Pod;
beforeAll(async () => {
  fleet = await Fleet.start(1, SPEC);
  pod = fleet.pods[0] as Pod;
});
afterAll(() => fleet?.stop());

test('what is not there is 404, and costs no page', async () => {
  const paths = [
    '/nothing',
    '/workers/x/metrics',
    '/workers/0/../',
    '/workers/0/why/1',
    '/workers/0/heap',
    '//',
    '/metrics/',
  ];
  for (const path of paths) expect([path, (await pod.get(path, { port: PORTS.stats })).status]).toEqual([path, 404]);
  expect((await pod.get('/nothing', { port: PORTS.health })).status).toBe(404);
});

test('no listener of HAProxy speaks HTTP/2', async () => {
  const bytes = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
  for (const socket of ['front', 'replay', 'slots', 'waiting-room'])
    expect([socket, await pod.throughSocket(`${socket}.sock`, bytes)]).toEqual([
      socket,
      expect.stringMatching(/^HTTP\/1\.1 4/),
    ]);
});

test('no program of the pod can listen beside a proxy, not even one of the same user', async () => {
  const listen = `
    for my $where (@ARGV) {
      print "$where\n" if IO::Socket::INET->new(LocalAddr => $where, Listen => 1, ReuseAddr => 1, ReusePort => 1);
    }`;
  const { http, peers, health, stats, figures } = PORTS;
  const taken = [http, peers, health, stats, figures].flatMap((port) => [`0.0.0.0:${port}`, `127.0.0.1:${port}`]);
  const free = '127.0.0.1:9099';
  expect(await docker('exec', pod.haproxy, 'perl', '-MIO::Socket::INET', '-e', listen, ...taken, free)).toBe(free);
});

test('no program in a worker reaches a socket of the proxies', async () => {
  const [worker = ''] = pod.workers;
  // Names of all sockets in the pod's network, whichever container they are in. One with @ needs no file.
  const names = `awk 'NF > 7 { print $8 }' /proc/net/unix | sort -u`;
  expect(await docker('exec', worker, 'sh', '-c', names)).toContain('/run/corelane/');
  const reached = `${names} | while read -r name; do
    case $name in @*) echo "$name" ;; *) [ ! -e "$name" ] || echo "$name" ;; esac; done`;
  expect(await docker('exec', worker, 'sh', '-c', reached)).toBe('');
});

/**
 * Port 9001 under a flood, and fleets whose keys change or with strangers among them: each takes pods of its own, and
 * when a pod asks another one is a matter of time.
 */
import net from 'node:net';
import { docker, logs, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { Fleet, knownPeers } from '../../e2e/harness/engine/fleet.ts';
import { FLEET_KEY, PEERS_HOST, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { connectionHead } from './apps/peer-tokens.mjs';
import { hello } from './peer.ts';
import { begunIn, OTHER_KEY, pages, patient, shares } from './peers.ts';

describe('one pod', () => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 2 });
    for (const worker of [0, 1]) await until('the worker is up', () => pod.isUp(worker));
  });
  afterAll(() => pod?.stop());

  test('connections without the key are few, however many come, and requests do not notice', async () => {
    const sockets = Array.from({ length: 1000 }, () => net.connect(pod.port(PORTS.peers), '127.0.0.1'));
    for (const socket of sockets) socket.on('error', () => {}).on('connect', () => socket.write(connectionHead()));
    const open = () => pod.metric('haproxy_frontend_current_sessions{proxy="peers"}');
    const most: number[] = [];
    await until('they are given up', async () => {
      most.push(await open());
      expect((await pod.get('/?ms=1')).status).toBe(200);
      return sockets.every(
        ({ destroyed, readyState }) => destroyed || readyState === 'closed' || readyState !== 'open',
      );
    });
    for (const socket of sockets) socket.destroy();
    figure('connections without the key that are open at once', Math.max(...most), 'of 1000', '<= 120');
    expect(Math.max(...most)).toBeLessThanOrEqual(120);
  });
});

describe('a fleet', () => {
  const strangers: string[] = [];
  let fleet: Fleet;
  afterEach(async () => {
    if (strangers.length > 0) await docker('rm', '--force', ...strangers.splice(0));
    await fleet?.stop();
  });

  /** Starts somebody who is in DNS as the pods are. */
  async function stranger(mode: string, key = ''): Promise<string> {
    const network = ['--network', fleet.network, '--network-alias', PEERS_HOST];
    const apps = new URL('apps', import.meta.url).pathname;
    const env = ['--env', `MODE=${mode}`, '--env', `KEY=${key}`];
    const mount = ['--volume', `${apps}:/app:ro`];
    const container = await start(...network, ...env, ...mount, NODE_IMAGE, 'node', '/app/stranger.mjs');
    strangers.push(container);
    return container;
  }

  async function heard(container: string): Promise<string[]> {
    return (await logs(container))
      .split('\n')
      .filter((line) => line.startsWith('"'))
      .map((line) => JSON.parse(line));
  }

  test('a new key reaches one pod after the other, and they share all the time', async () => {
    fleet = await Fleet.start(2, patient);
    const [home, other] = fleet.pods as [Pod, Pod];
    await shares(fleet, 'old');
    other.writeKey(OTHER_KEY);
    await until('the new key counts', async () => (await hello(other, OTHER_KEY, await other.address())) !== '');
    await shares(fleet, 'mixed');
    home.writeKey(OTHER_KEY);
    await until('the new key counts', async () => (await hello(home, OTHER_KEY, await home.address())) !== '');
    await shares(fleet, 'new');
    // The file vanishes with its Secret, which takes nothing from pods that have had it.
    for (const pod of fleet.pods) pod.writeKey(null);
    await until('it is said', async () =>
      (await logs(other.haproxy)).includes('is missing; the key that was in it stays'),
    );
    await shares(fleet, 'vanished');
  });

  test('an old key counts for a while only', async () => {
    const edit = (_file: string, text: string) => text.replace(/overlap-ms=[0-9]+/, 'overlap-ms=1');
    fleet = await Fleet.start(1, patient, { edit });
    const [home] = fleet.pods as [Pod];
    const opens = async (key: string) => (await hello(home, key, await home.address())) !== '';
    expect(await opens(FLEET_KEY)).toBe(true);
    home.writeKey(OTHER_KEY);
    await until('the old one is none', async () => !(await opens(FLEET_KEY)));
    expect(await opens(OTHER_KEY)).toBe(true);
  });

  test('a pod without a key works alone, says so once, and shares when it gets one', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    const lone = await fleet.add(patient, { key: 'too short' });
    await fleet.untilAllKnown();
    expect((await pages(3, home)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await pages(3, lone)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await hello(lone, 'too short', await lone.address())).toBe('');
    expect([begunIn(home).length, begunIn(lone).length]).toEqual([3, 3]);
    const said = (await logs(lone.haproxy)).split('\n').filter((line) => line.includes('works alone'));
    expect(said).toEqual([expect.stringContaining('the key file is shorter than 32 bytes')]);
    lone.writeKey(FLEET_KEY);
    await shares(fleet, 'late');
    expect((await logs(lone.haproxy)).includes(FLEET_KEY)).toBe(false);
  });

  test('strangers at addresses of peers get nothing, and cost nothing', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    const modes = ['closes', 'silent', 'says-yes', 'endless-line', 'endless-headers', 'endless-body', 'slow'];
    const containers = await Promise.all(modes.map((mode) => stranger(mode)));
    await until('they are taken for peers', async () => (await knownPeers(home)) === 1 + modes.length);
    const heardAll = () => Promise.all(containers.map(heard));
    await until('all were asked', async () => {
      expect((await pages(6, home)).map(({ status }) => status)).toEqual(Array(6).fill(200));
      return (await heardAll()).every((texts) => texts.length > 0);
    });
    for (const texts of await heardAll()) {
      expect(texts.join('')).toContain('X-Corelane-Ask: hello');
      for (const never of ['id=p', 'secret=', 'X-Corelane-Revision', FLEET_KEY])
        expect(texts.join('')).not.toContain(never);
    }
    const kib = await memoryKib(home);
    figure('resident memory of HAProxy beside hostile peers', kib / 1024, 'MiB', '< 100 MiB');
    expect(kib).toBeLessThan(100 * 1024);
  });

  test.each(['no-proof', 'wrong-proof'])(
    'a page from somebody else than who has reserved is none: %s',
    async (mode) => {
      fleet = await Fleet.start(1, patient);
      const [home] = fleet.pods as [Pod];
      const container = await stranger(mode, FLEET_KEY);
      await until('it has got a request', async () => {
        const answers = await pages(3, home);
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
        for (const { body, headers } of answers) expect(`${body}${JSON.stringify(headers)}`).not.toContain('forged');
        return (await heard(container)).some((text) => text.includes('id=p'));
      });
      for (const line of await home.accessLog()) expect(JSON.stringify(line)).not.toContain('forged');
    },
  );

  test('the page of who has reserved counts', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    await stranger('proven', FLEET_KEY);
    await until('a page is of it', async () => (await pages(3, home)).some(({ body }) => body === 'of a peer'));
  });
});

/** Resident memory of a pod's HAProxy. */
async function memoryKib(pod: Pod): Promise<number> {
  const find =
    'for status in /proc/[0-9]*/status; do grep -q "Name:.haproxy$" $status && grep VmRSS $status; done; true';
  const sizes = (await docker('exec', pod.haproxy, 'sh', '-c', find)).match(/[0-9]+/g) ?? [];
  return Math.max(...sizes.map(Number));
}

/** Process 1 of the proxies, with what operators of other versions, and nobody, would write into pod.env. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  docker,
  logs,
  prepare,
  RESTRICTED,
  runSidecar,
  SIDECAR_IMAGE,
  start,
} from '../../e2e/harness/engine/docker.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { PROTOCOL_VERSION } from '../../operator/src/render/pod-env.ts';
import { changed, complaint, config, POD_ENV } from './entrypoint.ts';

const NEXT = String(PROTOCOL_VERSION + 1);

beforeAll(prepare);

test.each(['haproxy', 'nginx'] as const)('what the operator writes is taken by %s, as whatever user', async (proxy) => {
  expect(await complaint(POD_ENV, proxy)).toBe('');
  // OpenShift gives each namespace users of its own, in group 0.
  expect(await complaint(POD_ENV, proxy, '--user', '1000920000:0')).toBe('');
});

test.each(['haproxy', 'nginx'] as const)(
  'an operator that speaks another version of the protocol: %s does not start, and says so',
  async (proxy) => {
    expect(await complaint(changed('CORELANE_PROTOCOL_VERSION', NEXT), proxy)).toBe(
      `this sidecar image speaks version ${PROTOCOL_VERSION} of the protocol, the operator that made this pod version ${NEXT}: give the operator the sidecar image of its own release`,
    );
    // What the container's environment says counts for nothing.
    const other = ['--env', `CORELANE_PROTOCOL_VERSION=${PROTOCOL_VERSION}`];
    expect(await complaint('# empty\n', proxy, ...other)).toBe(
      '/etc/corelane/pod.env has no CORELANE_PROTOCOL_VERSION=N',
    );
    expect(await complaint(undefined, proxy)).toMatch(/pod\.env: No such file or directory\. The operator .* is older/);
  },
);

test.each([
  ['a command for the shell of the hook', 'CORELANE_X=$(reboot)', /line 7: not CORELANE_NAME=VALUE/],
  ['a name that is not ours', 'LD_PRELOAD=/tmp/x.so', /line 7: not CORELANE_NAME=VALUE/],
  ['a line without an end', `CORELANE_X=${'1'.repeat(1_000_000)}`, /CORELANE_X is too long/],
])('a pod.env with %s is refused', async (_what, line, expected) => {
  expect(await complaint(`${POD_ENV}${line}\n`, 'nginx')).toMatch(expected);
});

test.each(['', '65536', '9000x'])('port "%s" is refused', async (port) => {
  const refusal = (name: string) => `${name} in /etc/corelane/pod.env must be a whole number from 1 to 65535`;
  expect(await complaint(changed('CORELANE_HTTP_PORT', port), 'nginx')).toBe(refusal('CORELANE_HTTP_PORT'));
  expect(await complaint(changed('CORELANE_HEALTH_PORT', port), 'haproxy')).toBe(refusal('CORELANE_HEALTH_PORT'));
});

test('what the hook calculates with is a number, and of this file', async () => {
  expect(await complaint(changed('CORELANE_DRAIN_ACCEPT_MS_MAX', '0'), 'nginx')).toBe('');
  for (const value of ['1/0', '08', 'abc'])
    expect(await complaint(changed('CORELANE_DRAIN_ACCEPT_MS_MAX', value), 'nginx')).toMatch(/must be a whole number/);
  // A Service of the namespace may be called corelane-http: Kubernetes then sets such a variable.
  const without = POD_ENV.replace(/^CORELANE_HTTP_PORT=.*\n/m, '');
  const link = ['--env', 'CORELANE_HTTP_PORT=9000'];
  expect(await complaint(without, 'nginx', ...link)).toMatch(/^CORELANE_HTTP_PORT in .* must be a whole number/);
});

test('whatever another version writes, its number is told', async () => {
  const next = `${changed('CORELANE_PROTOCOL_VERSION', NEXT)}CORELANE_LIST=a, b\nOTHER={}\n`;
  expect(await complaint(next, 'nginx')).toMatch(
    new RegExp(`speaks version ${PROTOCOL_VERSION} of the protocol, .* version ${NEXT}`),
  );
});

test('a line that NUL hides from us is no way around', async () => {
  expect(await complaint(Buffer.from(`${POD_ENV}CORELANE_X=1\0$(reboot)\n`), 'nginx')).toMatch(/line 7/);
});

describe('with a stand-in for the proxy', () => {
  /** So that a shell sees its traps. */
  const WAITS = 'echo begun; while :; do sleep 0.05; done';
  const containers: string[] = [];
  const folders: string[] = [];
  afterEach(async () => {
    if (containers.length > 0) await docker('rm', '--force', ...containers.splice(0));
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  /** Starts `script` as the proxy of that name. */
  async function standIn(
    proxy: 'haproxy' | 'nginx',
    script: string,
    files: Record<string, string>,
    ...options: string[]
  ) {
    const folder = mkdtempSync(join(tmpdir(), 'corelane-entrypoint-'));
    folders.push(folder);
    chmodSync(folder, 0o755);
    for (const [file, text] of Object.entries({ ...config, ...files })) writeFileSync(join(folder, file), text);
    writeFileSync(join(folder, proxy), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    chmodSync(join(folder, proxy), 0o755);
    const container = await start(
      ...['--network', 'none', ...RESTRICTED, '--volume', `${folder}:/etc/corelane:ro`],
      ...['--tmpfs', '/tmp:mode=1777', '--tmpfs', '/run/corelane:mode=1777,uid=10001'],
      ...['--env', 'PATH=/etc/corelane:/usr/bin:/bin', ...options.map((option) => option.replace('FOLDER', folder))],
      ...[SIDECAR_IMAGE, proxy],
    );
    containers.push(container);
    return { container };
  }

  const stateOf = async (container: string) =>
    JSON.parse(await docker('inspect', '--format', '{{json .State}}', container)) as {
      Running: boolean;
      ExitCode: number;
    };

  async function exitCode(container: string): Promise<number> {
    await until('it ends', async () => !(await stateOf(container)).Running);
    return (await stateOf(container)).ExitCode;
  }

  const said = (container: string, text: string) =>
    until(`it says ${text}`, async () => (await logs(container)).includes(text));

  test('HAProxy gets what it cannot find out, and only its sockets', async () => {
    const resolv = [
      '# nameserver 192.0.2.9',
      'nameservers 192.0.2.8',
      'nameserver %eth0',
      'nameserver fe80::1%eth0',
      'nameserver 192.0.2.1',
      `search ${'x'.repeat(200)}.example ${'y'.repeat(900)} shop.svc.cluster.test svc.cluster.test cluster.test svc.other.test`,
    ].join('\n');
    const script =
      'env | grep ^CORELANE | sort; for fd in /proc/self/fd/*; do readlink $fd; done; echo all; exec sleep 600';
    const { container } = await standIn(
      ...(['haproxy', script, { 'resolv.conf': `${resolv}\n` }] as const),
      ...['--volume', 'FOLDER/resolv.conf:/etc/resolv.conf:ro', '--env', 'CORELANE_PEERS=shop-peers.shop.svc'],
      ...['--env', 'CORELANE_HOST_IPS=192.0.2.7,fd00::7,evil;x,300.1.1.1'],
    );
    await said(container, '\nall');
    const lines = (await logs(container)).split('\n');
    expect(lines).toContain('CORELANE_NAMESERVER=fe80::1');
    expect(lines).toContain('CORELANE_PEERS=shop-peers.shop.svc.cluster.test');
    expect(lines).toContain('CORELANE_NODE=192.0.2.7 fd00::7 169.254.7.127 fd16:9254:7127:1337:ffff:ffff:ffff:ffff ');
    expect(lines).toContain(`CORELANE_PROTOCOL_VERSION=${PROTOCOL_VERSION}`);
    // front.sock, replay.sock, timed.sock, cache.sock, cache-again.sock, the port of the probes.
    expect(lines.filter((line) => line.startsWith('socket:'))).toHaveLength(6);
    expect(lines.filter((line) => /^\/(etc|proc|run)/.test(line))).toEqual([]);
  });

  test('one that dies is started again three times, and its exit code is that of the container', async () => {
    const { container } = await standIn('haproxy', 'exit 3', {});
    expect(await exitCode(container)).toBe(3);
    expect((await logs(container)).match(/haproxy ended with 3 and is started again/g)).toHaveLength(3);
  });

  test('one that is not there is 127, and so is another command; one that cannot be executed is 126', async () => {
    const { container } = await standIn('nginx', '', {}, '--env', 'PATH=/nowhere');
    expect(await exitCode(container)).toBe(127);
    await expect(runSidecar([], '/nowhere/program')).rejects.toMatchObject({ code: 127 });
    await expect(runSidecar([], '/etc/passwd')).rejects.toMatchObject({ code: 126 });
  });

  test.each(['haproxy', 'nginx'] as const)(
    'SIGTERM ends %s before it listens to signals, and nothing has failed',
    async (proxy) => {
      const { container } = await standIn(proxy, 'echo begun; exec sleep 600', {});
      await said(container, 'begun');
      await docker('kill', '--signal', 'TERM', container);
      expect(await exitCode(container)).toBe(0);
    },
  );

  test('an nginx that has forgotten QUIT is told again', async () => {
    const forgets = `echo $$ >/tmp/nginx.pid; n=0; trap 'n=$((n + 1)); [ $n -lt 2 ] || exit 0' QUIT; ${WAITS}`;
    const { container } = await standIn('nginx', forgets, {});
    await said(container, 'begun');
    await docker('kill', '--signal', 'TERM', container);
    expect(await exitCode(container)).toBe(0);
  });

  test('after its drain the container of nginx waits for kubelet, or for the end of the drain', async () => {
    const { container } = await standIn('nginx', `echo $$ >/tmp/nginx.pid; trap 'exit 0' QUIT; ${WAITS}`, {});
    await said(container, 'begun');
    await docker('exec', container, 'touch', '/run/corelane/drain/begun', '/run/corelane/forgotten');
    await docker('kill', '--signal', 'USR1', container);
    const has = (file: string) =>
      docker('exec', container, 'test', '-e', file).then(
        () => true,
        () => false,
      );
    await until('nginx has ended', () => has('/run/corelane/nginx-stopped'));
    expect((await stateOf(container)).Running).toBe(true);
    await docker('exec', container, 'rm', '/run/corelane/drain/begun');
    expect(await exitCode(container)).toBe(0);
  });

  test('kubelet is told, too', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'corelane-entrypoint-'));
    folders.push(folder);
    const message = join(folder, 'message');
    writeFileSync(message, '');
    chmodSync(message, 0o666);
    const other = changed('CORELANE_PROTOCOL_VERSION', NEXT);
    const { container } = await standIn(
      'nginx',
      '',
      { 'pod.env': other },
      '--volume',
      `${message}:/dev/termination-log`,
    );
    expect(await exitCode(container)).toBe(1);
    expect(readFileSync(message, 'utf8')).toMatch(
      new RegExp(`^this sidecar image speaks version ${PROTOCOL_VERSION} .*version ${NEXT}: .*\\n$`),
    );
  });
});

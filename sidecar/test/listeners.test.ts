/** However many ports nginx listens on, the process before it gives all of them up when the pod stops. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { docker, logs, prepare, RESTRICTED, SIDECAR_IMAGE, start } from './docker.ts';
import { until } from './pod.ts';

const PORTS = [9000, 9443, 9444, 9445];
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path /tmp/${what};`);
const CONFIG = `pid /tmp/nginx.pid;
events {}
http {
${TEMPORARY.join('\n')}
access_log off;
server {
${PORTS.map((port) => `listen ${port};`).join('\n')}
include /tmp/listen-ipv6*.conf;
return 204;
}
}
`;

test('four of them, for both families, are more open files than a POSIX shell has words for', async () => {
  await prepare();
  const folder = mkdtempSync(join(tmpdir(), 'corelane-listeners-'));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'nginx.conf'), CONFIG);
  const container = await start(
    ...['--network', 'none', ...RESTRICTED, '--volume', `${folder}:/etc/corelane:ro`],
    ...['--tmpfs', '/tmp:mode=1777', '--tmpfs', '/run/corelane:mode=1777', SIDECAR_IMAGE, 'nginx'],
  );
  try {
    const serves = () =>
      docker('exec', container, 'test', '-s', '/tmp/nginx.pid').then(
        () => true,
        () => false,
      );
    await until('nginx serves', serves).catch(async (error) => {
      throw new Error(`${error.message}\n${await logs(container)}`);
    });
    await docker('stop', '--time', '20', container);
    const state = await docker('inspect', '--format', '{{.State.ExitCode}}', container);
    expect({ state, log: await logs(container) }).toEqual({
      state: '0',
      log: expect.not.stringContaining('not found'),
    });
  } finally {
    await docker('rm', '--force', container);
    rmSync(folder, { recursive: true });
  }
});

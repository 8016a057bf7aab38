/** What of the Lua only computes, in the Lua of the HAProxy that ships: sidecar/test/lua has the tests. */
import { chmodSync, cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare, runSidecar } from '../../e2e/harness/engine/docker.ts';

const FOLDER = fileURLToPath(new URL('lua', import.meta.url));
const files = readdirSync(FOLDER).filter((file) => file !== 'harness.lua');

const config = (file: string) => `global
  lua-prepend-path /usr/share/corelane/haproxy/?.lua
  lua-load /etc/corelane/lua/harness.lua
  lua-load /etc/corelane/lua/${file}
defaults
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend none
  bind unix@/run/corelane/none.sock
`;

beforeAll(prepare);

test.each(files)('%s', async (file) => {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-lua-'));
  try {
    chmodSync(folder, 0o755);
    cpSync(FOLDER, join(folder, 'lua'), { recursive: true });
    writeFileSync(join(folder, 'haproxy.cfg'), config(file));
    // By `env`: `haproxy` alone would be process 1's, which wants more files.
    await runSidecar(
      ['--volume', `${folder}:/etc/corelane:ro`],
      'env',
      'haproxy',
      '-c',
      '-f',
      '/etc/corelane/haproxy.cfg',
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Every golden configuration is read by the real parsers, in the image that ships. */
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare, runSidecar } from '../../e2e/harness/engine/docker.ts';

const GOLDEN = fileURLToPath(new URL('../../operator/test/unit/render/golden/', import.meta.url));
const names = readdirSync(GOLDEN)
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => file.slice(0, -'.yaml'.length));

beforeAll(prepare);

test('there are goldens', () => expect(names.length).toBeGreaterThan(3));

test.each(names)(
  'HAProxy and nginx accept %s',
  async (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'corelane-parse-'));
    try {
      chmodSync(folder, 0o755);
      const files = readdirSync(GOLDEN).filter((file) => file.startsWith(`${name}.`));
      for (const file of files) copyFileSync(`${GOLDEN}${file}`, join(folder, file.slice(name.length + 1)));
      const mounts = ['--volume', `${folder}:/etc/corelane:ro`];
      await runSidecar(mounts, 'haproxy', '-c', '-dW'); // a warning counts as an error
      await runSidecar(mounts, 'nginx', '-t');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  60_000,
);

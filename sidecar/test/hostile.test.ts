/** Every configuration that a random or malicious resource gets past admission is read by the real parsers (I7). */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseRenderService } from '../../operator/src/api/resource.ts';
import { renderConfig } from '../../operator/src/render/index.ts';
import { HOSTILE_COUNT, HOSTILE_SEED, hostileResource } from '../../operator/test/support/hostile.ts';
import { prepare, runSidecar } from './docker.ts';

/** Names the files that a parser complains about, and says what it said. A warning of HAProxy counts. */
const CHECK = `
  export CORELANE_ANY_ADDRESS='*'
  for file in /cases/*.haproxy.cfg; do haproxy -c -dW -f "$file" >/tmp/said 2>&1 || { echo "$file"; cat /tmp/said; }; done
  for file in /cases/*.nginx.conf; do nginx -t -q -e stderr -c "$file" >/tmp/said 2>&1 || { echo "$file"; cat /tmp/said; }; done
  echo "checked $(ls /cases | wc -l) files"`;

beforeAll(prepare);

/** Different configurations by the number of the first resource that has them. */
function configurations(): Map<string, string> {
  const files = new Map<string, string>();
  const seen = new Set<string>();
  for (let index = 0; index < HOSTILE_COUNT; index += 1) {
    const parsed = parseRenderService(hostileResource(HOSTILE_SEED, index));
    if (!parsed.ok) continue;
    for (const [file, text] of Object.entries(renderConfig(parsed.renderService.spec))) {
      if (!seen.has(text)) files.set(`${index}.${file}`, text);
      seen.add(text);
    }
  }
  return files;
}

test(`HAProxy and nginx accept what admission accepts, seed ${HOSTILE_SEED}`, async () => {
  const files = configurations();
  expect(files.size).toBeGreaterThan(HOSTILE_COUNT / 5);
  const folder = mkdtempSync(join(tmpdir(), 'corelane-hostile-'));
  try {
    const cases = join(folder, 'cases');
    mkdirSync(cases);
    for (const [file, text] of files) writeFileSync(join(cases, file), text);
    for (const path of [folder, cases]) chmodSync(path, 0o755);
    const said = await runSidecar(['--volume', `${cases}:/cases:ro`], 'sh', '-c', CHECK);
    expect(said).toBe(`checked ${files.size} files`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 300_000);

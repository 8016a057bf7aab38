/**
 * Every configuration that a random or malicious resource gets past admission is read by the real parsers (I7). Here
 * because there are hundreds of them.
 */
import { prepare } from '../../e2e/harness/engine/docker.ts';
import { parseRenderService } from '../../operator/src/api/resource.ts';
import { renderConfig } from '../../operator/src/render/index.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { HOSTILE_COUNT, HOSTILE_SEED, hostileResource } from '../../operator/test/support/hostile.ts';
import { parserComplaints } from './parsers.ts';

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
  figure(`different configurations of ${HOSTILE_COUNT} hostile resources`, files.size, '', `> ${HOSTILE_COUNT / 5}`);
  expect(files.size).toBeGreaterThan(HOSTILE_COUNT / 5);
  expect(await parserComplaints(files)).toBe(`checked ${files.size} files`);
});

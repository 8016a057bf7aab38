/**
 * Whole configuration files for input specs. `UPDATE_GOLDEN=1` rewrites them; the sidecar tests feed them to the real
 * parsers.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { renderConfig } from '../../../src/render/index.ts';
import { renderLive } from '../../../src/render/live.ts';

const GOLDEN = new URL('golden/', import.meta.url);
const cases = readdirSync(GOLDEN)
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => file.slice(0, -'.yaml'.length));

function read(file: string): string {
  return readFileSync(new URL(file, GOLDEN), 'utf8');
}

test('there are cases', () => expect(cases.length).toBeGreaterThan(3));

test.each(cases)('%s', (name) => {
  const spec = renderServiceSpec.parse(parse(read(`${name}.yaml`)));
  for (const [file, text] of Object.entries({ ...renderConfig(spec), ...renderLive(spec) })) {
    const golden = `${name}.${file}`;
    if (process.env.UPDATE_GOLDEN) writeFileSync(new URL(golden, GOLDEN), text);
    expect(text).toBe(read(golden));
  }
});

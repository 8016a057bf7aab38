/**
 * All objects of a plan, for resources in `golden/*.in.yaml`. `UPDATE_GOLDEN=1` rewrites the `*.out.yaml`. What the
 * proxies' configuration says is golden in ../render; here it would only change these files with every word of it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { parseRenderService } from '../../../src/api/resource.ts';
import { desiredObjects } from '../../../src/plan/index.ts';

const GOLDEN = new URL('golden/', import.meta.url);
const cases = readdirSync(GOLDEN)
  .filter((file) => file.endsWith('.in.yaml'))
  .map((file) => file.slice(0, -'.in.yaml'.length));

function read(file: string): string {
  return readFileSync(new URL(file, GOLDEN), 'utf8');
}

/** The objects as YAML, with placeholders for configurations and for hashes over them. */
function plan(input: string): string {
  const { metadata, spec } = parse(input);
  const parsed = parseRenderService({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { namespace: 'default', uid: 'UID', generation: 1, resourceVersion: '1', ...metadata },
    spec,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const objects = desiredObjects(
    parsed.renderService,
    { image: 'sidecar:1', pullPolicy: 'IfNotPresent' },
    { namespace: 'corelane-system', monitoring: [] },
  );
  const documents = objects.map((object) => {
    const data = Object.keys((object.data as object | undefined) ?? {}).map((file) => [file, '<configuration>']);
    const shown = object.data ? { ...object, data: Object.fromEntries(data) } : object;
    return stringify(shown, { aliasDuplicateObjects: false, lineWidth: 0 });
  });
  return documents
    .join('---\n')
    .replaceAll(/((?:applied-hash|corelane\.dev\/revision): )\S+/g, '$1<hash>')
    .replaceAll(new RegExp(`${metadata.name}-[0-9a-f]{10}\\b`, 'g'), `${metadata.name}-<hash>`);
}

test('there are cases', () => expect(cases.length).toBeGreaterThan(3));

test.each(cases)('%s', (name) => {
  const output = plan(read(`${name}.in.yaml`));
  if (process.env.UPDATE_GOLDEN) writeFileSync(new URL(`${name}.out.yaml`, GOLDEN), output);
  expect(output).toBe(read(`${name}.out.yaml`));
});

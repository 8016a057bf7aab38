/** The apps of examples/frameworks: each has a page, a RenderService that can be applied, and nothing of a registry. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { renderServiceSpec } from '../../src/api/validated-spec.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
const names = readdirSync(join(root, 'examples/frameworks'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test('there are some', () => {
  expect(names).toEqual(
    expect.arrayContaining(['angular', 'astro', 'hypernova', 'next', 'nuxt', 'react-router', 'sveltekit']),
  );
});

describe.each(names)('%s', (name) => {
  const file = (path: string) => read('examples/frameworks', name, path);

  test('its RenderService is taken as it is, and leaves compressing to nginx', () => {
    const resource = parse(file('renderservice.yaml'));
    expect([resource.kind, resource.metadata.name]).toEqual(['RenderService', name]);
    const spec = renderServiceSpec.parse(resource.spec);
    expect(spec.compression.enabled).toBe(true);
    expect(spec.template.spec?.containers[0]).toMatchObject({
      image: `corelane.local/example-${name}:dev`,
      securityContext: { readOnlyRootFilesystem: true, runAsNonRoot: true },
    });
  });

  test('its Dockerfile has two stages, packages by the lock file, and a user', () => {
    const text = file('Dockerfile');
    expect(text.match(/^FROM /gm)).toHaveLength(2);
    expect(text).toMatch(/^RUN npm ci .*--ignore-scripts/m);
    expect(text).toMatch(/^USER [0-9]+$/m);
  });

  test('its packages have versions, and its lock file names no registry', () => {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(file('package.json'));
    for (const version of Object.values({ ...dependencies, ...devDependencies }))
      expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(file('package-lock.json')).not.toContain('"resolved"');
  });

  test('it does what all do, and has a page that is linked', () => {
    expect(file('work.mjs')).toBe(read('sidecar/test/frameworks/work.mjs'));
    expect(existsSync(join(root, `docs/frameworks/${name}.md`))).toBe(true);
    for (const map of ['docs/frameworks/README.md']) expect(read(map)).toContain(`(${name}.md)`);
  });
});

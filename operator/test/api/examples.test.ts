/** Every example that a user may copy is accepted as it stands. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type Json, StatusError } from '../support/api-client.ts';
import { repository } from '../support/api-server.ts';
import { sharedServer } from '../support/world.ts';

const examples = globSync('examples/{*,autoscaling/hpa}.yaml', { cwd: repository }).sort();

/** Makes the namespaces that a file has or presumes: a dry run makes none for the objects after it. */
async function createNamespaces(file: string): Promise<void> {
  const objects = parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Json);
  for (const name of new Set(objects.map((object) => object?.metadata?.namespace).filter(Boolean))) {
    try {
      await sharedServer().admin().post('/api/v1/namespaces', { metadata: { name } });
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 409) throw error; // another example has it, too
    }
  }
}

test('there are examples', () => {
  expect(examples).not.toEqual([]);
});

test.each(examples)('%s is accepted', async (example) => {
  const file = join(repository, example);
  await createNamespaces(file);
  const output = await sharedServer().kubectl().run('apply', '--server-side', '--dry-run=server', '-f', file);
  expect(output).toContain('renderservice.corelane.dev/');
});

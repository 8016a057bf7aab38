/**
 * Every example is applied to the cluster and becomes Ready.
 *
 * A load test: it waits for the pods of every example, which takes about a minute.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { apply, kubectl } from '../harness/cluster/cluster.ts';
import { installOperator } from '../harness/cluster/operator.ts';
import { example, untilReady } from '../harness/cluster/renderservice.ts';
import { ROOT } from '../harness/cluster/shell.ts';

const NAMESPACE = 'examples';
/** The storefront has a story of its own. */
const files = readdirSync(join(ROOT, 'examples')).filter(
  (file) => file.endsWith('.yaml') && file !== 'storefront.yaml',
);

function renderServiceName(text: string): string {
  const documents = parseAllDocuments(text).map(
    (document) => document.toJS() as { kind: string; metadata: { name: string } },
  );
  return documents.find(({ kind }) => kind === 'RenderService')?.metadata.name as string;
}

/** On two cores two pods with two whole CPUs each have no room: the share is what differs from the file. */
function small(text: string): string {
  const documents = parseAllDocuments(text).map((document) => {
    const resource = document.toJS();
    for (const container of resource.spec?.template?.spec?.containers ?? []) {
      container.resources = { requests: { cpu: '50m', memory: '64Mi' } };
    }
    return JSON.stringify(resource);
  });
  return documents.join('\n---\n');
}

beforeAll(async () => {
  await installOperator();
  await apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ${NAMESPACE}}}`);
  // All at once: their pods wait for one another, and the tests for the last one only.
  for (const file of files) await apply(small(example(file)), '-n', NAMESPACE);
});

afterAll(async () => {
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false']);
});

describe('each file in examples/', () => {
  test('there are examples', () => expect(files.length).toBeGreaterThan(0));

  test.each(files)(
    '%s becomes Ready',
    async (file) => {
      const name = renderServiceName(example(file));
      await untilReady(NAMESPACE, name);
      await kubectl(['-n', NAMESPACE, 'delete', 'renderservice', name, '--wait=false']);
    },
    240_000,
  );
});

/**
 * YAML of the documentation and the examples: all of it parses, and what is meant for a RenderService is valid. A block
 * that begins with `spec:`, or with fields of a spec, is a part of one.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { parseRenderService, type RenderServiceResource } from '../../src/api/resource.ts';
import { specShape } from '../../src/api/spec.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const exclude = (path: string) => /node_modules|(^|\/)dist(\/|$)/.test(path);
const files = globSync('{*.md,{docs,charts,e2e,examples,sidecar}/**/*.md,examples/**/*.yaml}', { cwd: root, exclude });
const FIELDS = new Set(Object.keys(specShape.shape));
const TEMPLATE = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };

interface Block {
  where: string;
  text: string;
}

/** Blocks of YAML of a page, each with the line that it begins in; an example is one block. */
function blocksOf(file: string): Block[] {
  const text = readFileSync(join(root, file), 'utf8');
  if (file.endsWith('.yaml')) return [{ where: file, text }];
  return [...text.matchAll(/^( *)```ya?ml\n(.*?)^ *```/gms)].map(({ index, 1: indent = '', 2: body = '' }) => ({
    where: `${file}:${text.slice(0, index).split('\n').length}`,
    text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

/** The resource that a document is, or is a part of; nothing where it is something else. */
function resourceOf(document: Record<string, unknown>): RenderServiceResource | undefined {
  const metadata = { name: 'shop', namespace: 'shop', uid: '1', generation: 1, resourceVersion: '1' };
  const kind = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService' };
  if (document.kind === 'RenderService') {
    return { ...kind, metadata: { ...metadata, ...(document.metadata as object) }, spec: document.spec };
  }
  if (document.kind !== undefined) return undefined;
  const { spec = Object.keys(document).every((key) => FIELDS.has(key)) && document } = document;
  return spec ? { ...kind, metadata, spec: { template: TEMPLATE, ...spec } } : undefined;
}

const blocks = files.flatMap(blocksOf);

test('there are pages and examples', () => {
  expect(blocks.length).toBeGreaterThan(40);
});

test.each(blocks)('$where', ({ text }) => {
  const documents = parseAllDocuments(text);
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  for (const document of documents) {
    const resource = resourceOf(document.toJS());
    if (resource) expect(parseRenderService(resource)).toMatchObject({ ok: true });
  }
});

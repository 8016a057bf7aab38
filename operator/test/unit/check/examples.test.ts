/** What we show fits nodes of 4 vCPUs, and has nothing that somebody must decide. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allocatableCpu } from '../../../check/cpu.ts';
import { checkRenderService } from '../../../check/index.ts';
import { unknownSurroundings } from '../../../check/workload.ts';
import { parseManifests } from '../../../convert/manifests.ts';
import type { RenderServiceResource } from '../../../src/api/resource.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const [, first = ''] = /```yaml\n(apiVersion: corelane.*?)```/s.exec(read('README.md')) ?? [];
const texts = [
  ['README.md', first],
  ...globSync('examples/*.yaml', { cwd: root })
    .sort()
    .map((file) => [file, read(file)]),
] as [file: string, text: string][];

/** Codes and levels from `warning` on. */
function found(text: string, file: string): string[] {
  const surroundings = { ...unknownSurroundings(), nodes: [{ cpu: allocatableCpu(4), name: 'a node of 4 vCPUs' }] };
  return parseManifests(text, file)
    .filter(({ kind }) => kind === 'RenderService')
    .flatMap(({ value }) => checkRenderService(value as unknown as RenderServiceResource, surroundings).findings)
    .filter(({ level }) => level !== 'info')
    .map(({ code, level }) => `${code} ${level}`);
}

test('there are examples', () => expect(texts.length).toBeGreaterThan(5));

test.each(texts)('%s', (file, text) => {
  expect(found(text, file)).toEqual([]);
});

test('one worker more in the first example would fit no node of 4', () => {
  expect(found(first.replace('workersPerPod: 3', 'workersPerPod: 4'), 'README.md')).toEqual(['C003 error']);
});

test.each([
  [1, 0.94],
  [2, 1.93],
  [4, 3.92],
  [8, 7.91],
  [64, 63.77],
])('of %d vCPUs pods can have %d', (vcpus, cpu) => {
  expect(allocatableCpu(vcpus)).toBeCloseTo(cpu, 5);
});

/** How often the operator looks for the ConfigMap of `fallback`, and what it says. */
import { parseRenderService, type RenderService } from '../../src/api/resource.ts';
import { Shells } from '../../src/controller/shells.ts';
import { ApiError, type Rest } from '../../src/kube/rest.ts';

let nowMs = 0;
let asked: string[] = [];
let answer: () => unknown;
let shells: Shells;

beforeEach(() => {
  nowMs = 0;
  asked = [];
  answer = () => {
    throw new ApiError(404, 'NotFound', 'not found');
  };
  const rest = {
    async request(method: string, path: string) {
      asked.push(`${method} ${path}`);
      return answer();
    },
  } as unknown as Rest;
  shells = new Shells(rest, () => nowMs);
});

function renderService(fallback?: object): RenderService {
  const parsed = parseRenderService({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'shop', namespace: 'default', uid: '1', generation: 1, resourceVersion: '1' },
    spec: { template: { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } }, ...(fallback && { fallback }) },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.renderService;
}

const named = renderService({ configMap: { name: 'shell' } });

test('where no ConfigMap is named nobody looks', async () => {
  for (const fallback of [undefined, { html: '<p>' }])
    expect(await shells.problem(renderService(fallback))).toBeUndefined();
  expect(asked).toEqual([]);
});

test('what is missing is looked for again after 15 s, what is there after a minute', async () => {
  const missing = 'fallback: there is no ConfigMap "shell", so browsers get JSON';
  expect(await shells.problem(named)).toEqual({ problem: missing, afterMs: 15_000 });
  nowMs = 14_000;
  expect(await shells.problem(named)).toEqual({ problem: missing, afterMs: 1_000 });
  expect(asked).toEqual(['GET /api/v1/namespaces/default/configmaps/shell']);
  nowMs = 15_000;
  answer = () => ({ data: { 'index.html': '<p>' } });
  expect(await shells.problem(named)).toBeUndefined();
  nowMs = 74_000;
  expect(await shells.problem(named)).toBeUndefined();
  expect(asked).toHaveLength(2);
  nowMs = 75_000;
  answer = () => ({ data: {} });
  expect(await shells.problem(named)).toMatchObject({ problem: expect.stringContaining('no key "index.html"') });
});

test('another name is looked for at once', async () => {
  await shells.problem(named);
  await shells.problem(renderService({ configMap: { name: 'other' } }));
  expect(asked[1]).toBe('GET /api/v1/namespaces/default/configmaps/other');
});

test('a key that every object has is not there', async () => {
  answer = () => ({ data: {} });
  const { problem } = (await shells.problem(renderService({ configMap: { name: 'shell', key: 'toString' } }))) ?? {};
  expect(problem).toContain('has no key "toString"');
});

test('bytes are a page, too', async () => {
  answer = () => ({ binaryData: { 'index.html': 'PHA+' } });
  expect(await shells.problem(named)).toBeUndefined();
});

test('an API server that cannot say so keeps nobody from going on', async () => {
  answer = () => {
    throw new ApiError(500, 'InternalError', 'down');
  };
  expect(await shells.problem(named)).toBeUndefined();
});

test('who is gone is forgotten', async () => {
  await shells.problem(named);
  shells.keepOnly(new Set());
  await shells.problem(named);
  expect(asked).toHaveLength(2);
});

/** `corelane cache purge`, as a user calls it: what it asks of which pod, and what it says where that does not work. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../../support/bare-environment.ts';
import { forwardingApi, kubeconfigFor, type Pod } from '../../support/forwarding-api.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function corelane(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number; stdout: string; stderr: string }>();
  execFile(
    process.execPath,
    [join(root, 'operator/bin/corelane.mjs'), 'cache', ...args],
    { env: bareEnvironment(folder, env) },
    (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
  );
  return promise;
}

/** With an API server that has these pods. */
async function purge(pods: Pod[], ...args: string[]) {
  const api = await forwardingApi(pods);
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, kubeconfigFor(api.url));
  try {
    return { ...(await corelane(['purge', 'shop', ...args], { KUBECONFIG: file })), asked: api.asked };
  } finally {
    api.close();
  }
}

const answer = (status: string, body: string) =>
  `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const DONE = answer('200 OK', 'done\n');
const pods = (...answers: Partial<Pod>[]) => answers.map((one, index) => ({ name: `shop-${index}`, ...one }));

test.each([
  [[], '"purge" and one name of a RenderService are needed'],
  [['fill', 'shop'], '"purge" and one name of a RenderService are needed'],
  [['purge', 'shop', 'blog'], '"purge" and one name of a RenderService are needed'],
  [
    ['purge', 'shop', '--path', 'products'],
    '--path must be a path such as /products/1, without a query, not "products"',
  ],
  [['purge', 'shop', '--path', '/a?b'], '--path must be a path'],
  [['purge', 'shop', '--path', '/a\r\nX: y'], '--path must be a path'],
  [['purge', 'shop', '--tag', 'a,b'], '--tag must be one tag of Cache-Tag, without blanks and commas, not "a,b"'],
  [['purge', 'shop', '--tag', 'a', '--path', '/'], '--path and --tag do not go together'],
])('%j is refused with a sentence', async (args, message) => {
  const { code, stdout, stderr } = await corelane(args);
  expect({ code, stdout, stderr }).toEqual({ code: 64, stdout: '', stderr: expect.stringContaining(message) });
});

test('without a cluster says so', async () => {
  const said = 'corelane: there is no kubeconfig: set KUBECONFIG, or make ~/.kube/config\n';
  expect(await corelane(['purge', 'shop'])).toEqual({ code: 1, stdout: '', stderr: said });
});

test('every running pod is asked, with the header that no URL can have sent', async () => {
  const { asked, ...outcome } = await purge(pods({ answer: DONE }, { answer: DONE }, { phase: 'Pending' }));
  expect({ ...outcome, stdout: outcome.stdout.split('\n').toSorted() }).toEqual({
    code: 0,
    stdout: ['', 'shop-0: done', 'shop-1: done'],
    stderr: '',
  });
  expect(Object.keys(asked).toSorted()).toEqual(['shop-0', 'shop-1']);
  const [request] = asked['shop-0'] ?? [];
  expect(request).toMatch(/^POST \/purge-pod HTTP\/1\.1\r\n/);
  expect(request).toMatch(/^X-Corelane-Purge: \*\r$/m);
});

test.each([
  ['--path', '//products/1', '//products/1'],
  ['--path', '/größe', '/gr%C3%B6%C3%9Fe'],
  ['--path', '/a,b', '/a%2Cb'],
  ['--tag', 'products', 'tag:products'],
])('%s %s', async (option, value, item) => {
  const { asked } = await purge(pods({ answer: DONE }), option, value);
  expect(asked['shop-0']?.[0]).toContain(`\r\nX-Corelane-Purge: ${item}\r\n`);
});

test('a pod that does not do it is named, with the reason; the others have done it', async () => {
  const { code, stdout, stderr } = await purge(
    pods({ answer: DONE }, {}, { answer: answer('403 Forbidden', 'X-Corelane-Purge is missing\n') }),
  );
  expect({ code, stdout, stderr: stderr.split('\n').toSorted() }).toEqual({
    code: 1,
    stdout: 'shop-0: done\n',
    stderr: [
      '',
      'shop-1: it keeps no pages: spec.cache is not enabled',
      'shop-2: status 403: X-Corelane-Purge is missing',
    ],
  });
});

test('where nothing keeps pages a program of the pod may answer: it moves no cursor, and what it says has an end', async () => {
  const acting = '\u001b[2J\u001b]0;owned\u0007\r\n\u009b2J.';
  const { code, stderr } = await purge(
    pods({ answer: answer('500 x', acting) }, { answer: answer('500 x', 'y'.repeat(100_000)) }),
  );
  expect([code, stderr.split('\n').toSorted()]).toEqual([
    1,
    ['', 'shop-0: status 500:  [2J ]0;owned 2J', 'shop-1: the answer has more than 4096 bytes'],
  ]);
});

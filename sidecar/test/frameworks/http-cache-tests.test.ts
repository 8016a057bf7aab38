/** The cache against RFC 9111, as http-cache-tests has it: which of its required tests fail, docs/cache.md explains. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { jest } from '@jest/globals';
import { Pod } from '../../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import { application } from './application.ts';

jest.setTimeout(300_000);

/** Begins of names. */
const EXPLAINED = [
  ...['304-', 'cc-resp-must-revalidate-stale', 'conditional-etag-vary-headers', 'age-parse-prefix'],
  ...['stale-close-', 'partial-use-headers', 'surrogate-'],
  ...['Content-Range', 'Set-Cookie', 'Transfer-Encoding'].map((name) => `headers-store-${name}`),
];
const PASS_MIN = 129;

interface Suite {
  tests: { id: string; kind?: string; browser_only?: boolean }[];
}

test('what is required of a shared cache', async () => {
  const folder = await application('http-cache-tests');
  const server = 'node_modules/http-cache-tests/server/server.mjs';
  const start = `cd /app && npm_config_protocol=http npm_config_port=$PORT npm_config_pidfile=/tmp/pid exec node ${server}`;
  // Its state is in one process, and it asks for several pages at a time.
  const spec = { workersPerPod: 1, concurrency: 100, cache: { enabled: true } };
  const pod = await Pod.start(spec, { folder, command: ['sh', '-c', start] });
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ['cli.mjs'], {
      cwd: join(folder, 'node_modules/http-cache-tests'),
      env: { npm_config_base: `http://127.0.0.1:${pod.port(PORTS.http)}`, npm_config_id: '' },
      maxBuffer: 64 * 1024 * 1024,
    });
    const results: Record<string, unknown> = JSON.parse(stdout.slice(stdout.indexOf('{')));
    const required = await requiredTests(folder);
    const ran = required.filter((id) => results[id] !== undefined);
    const failed = ran.filter((id) => results[id] !== true);
    expect(failed.filter((id) => !EXPLAINED.some((begin) => id.startsWith(begin)))).toEqual([]);
    expect(ran.length - failed.length).toBeGreaterThanOrEqual(PASS_MIN);
  } finally {
    await pod.stop();
  }
});

async function requiredTests(folder: string): Promise<string[]> {
  const read = async (name: string): Promise<Suite | Suite[]> => {
    const url = pathToFileURL(join(folder, 'node_modules/http-cache-tests/tests', name));
    return (await import(url.href)).default;
  };
  const suites = [await read('index.mjs'), await read('surrogate-control.mjs')].flat();
  return suites.flatMap(({ tests }) =>
    tests.filter(({ kind = 'required' }) => kind === 'required').map(({ id }) => id),
  );
}

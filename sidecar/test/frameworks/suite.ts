/** What the worker runtime must do for an app, whatever framework it is made with. Behind the real sidecar image. */

import http from 'node:http';
import { docker } from '../../../e2e/harness/engine/docker.ts';
import { type Call, Pod, until, type WorkerOptions } from '../../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { stuckLines } from './application.ts';

export interface Framework {
  /** Of its RenderService, as far as it matters here. */
  spec?: Partial<RenderServiceSpecInput>;
  worker: () => Promise<WorkerOptions>;
  /** How a page is asked for; by its path if it is not said here. */
  ask?: (page: string) => [path: string, call: Call];
  /** Hypernova answers nothing but POST, and at once. */
  lacks?: 'HEAD and streams';
  /** Of a page that is whole: as the framework makes it, or the runtime. */
  tag?: RegExp;
  /** The stack names `work.mjs`, where an app is stuck, in this way. */
  source: string;
}

const LIMIT = 'corelane_worker_concurrency_limit';

/** Runs in a worker's container: sends requests past the proxies, the second one when the first is on its way. */
const SEND = `
  const http = require('node:http');
  const send = ({ path, method = 'GET', headers, body }) => new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: process.env.PORT, path, method, headers, agent: false };
    http.request(options, (response) => {
      let text = '';
      response.on('data', (chunk) => { text += chunk; });
      response.on('end', () => resolve(text));
    }).on('error', reject).end(body);
  });
  Promise.all(JSON.parse(process.argv[1]).map(send)).then((texts) => console.log(JSON.stringify(texts)));
`;

async function pastTheProxies(pod: Pod, calls: [path: string, call: Call][]): Promise<string[]> {
  const requests = JSON.stringify(calls.map(([path, call]) => ({ path, ...call })));
  return JSON.parse(await docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', SEND, requests));
}

/** A page of which a part has come. */
export function begin(pod: Pod, path: string): Promise<{ text(): string; ended: Promise<void> }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: pod.port(PORTS.http), path, agent: false };
    const request = http.get(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      const ended = new Promise<void>((end) => response.on('end', end));
      resolve({ text: () => text, ended });
    });
    request.on('error', reject);
  });
}

/**
 * The tests of some frameworks, each with a pod of its own; all are started together.
 * @param further tests of one of them
 */
export function testFrameworks(
  stallTimeout: string,
  frameworks: Record<string, Framework>,
  further?: (name: string, thePod: () => Pod) => void,
): void {
  const pods: Record<string, Pod> = {};
  beforeAll(async () => {
    const workers: Record<string, WorkerOptions> = {};
    // One after the other: each of them keeps all cores busy.
    for (const [name, { worker }] of Object.entries(frameworks)) workers[name] = await worker();
    const started = Object.entries(frameworks).map(async ([name, { spec }]) => {
      // `framework` would set Auto, and tests here count the requests that a worker has at a time.
      const own = { workersPerPod: 1, concurrency: 1, replay: 'Never', watchdog: { stallTimeout } } as const;
      const pod = await Pod.start({ ...spec, ...own }, workers[name]);
      pods[name] = pod;
      // What a page of an example waits for.
      pod.release('released');
      await until('HAProxy has said the limit', async () => (await pod.runtimeMetric(0, LIMIT)) === 1);
    });
    await Promise.all(started);
  });
  afterAll(() => Promise.all(Object.values(pods).map((pod) => pod.stop())));
  for (const [name, framework] of Object.entries(frameworks))
    describe(name, () => {
      testFramework(framework, () => pods[name] as Pod);
      further?.(name, () => pods[name] as Pod);
    });
}

function testFramework({ ask, lacks, source, tag }: Framework, thePod: () => Pod): void {
  const asked = ask ?? ((page: string): [string, Call] => [`/${page === 'page' ? '' : page}`, {}]);
  const get = (page: string, call: Call = {}) => {
    const [path, own] = asked(page);
    return thePod().get(path, { ...own, ...call });
  };
  const metric = (name: string) => thePod().runtimeMetric(0, name);

  test('it is up and watched, and its renders are counted', async () => {
    const { status, body } = await get('page');
    expect([status, body]).toEqual([200, expect.stringContaining('page')]);
    expect((await thePod().supervisorLog(0)).find(({ event }) => event === 'up')).toMatchObject({ watched: true });
    const { body: metrics } = await thePod().get('/workers/0/metrics', { port: PORTS.stats });
    expect(metrics).toMatch(/corelane_worker_render_duration_seconds_count\{worker="0",concurrency="1"\} 1\n/);
  });

  test('the concurrency limiter holds a second request back until the first response has ended', async () => {
    const pages = lacks ? ['slow', 'slow'] : ['stream', 'slow', 'stream'];
    const texts = await pastTheProxies(thePod(), pages.map(asked));
    for (const text of texts) expect(text).toContain('in flight: 1');
    expect(await metric('corelane_worker_overlap_total')).toBe(pages.length - 1);
    expect(await metric('corelane_worker_requests_in_flight')).toBe(0);
  });

  test('a stuck render is found, killed, and its place known', async () => {
    const { status, headers } = await get('stuck');
    expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-stuck']);
    const stalls = (await thePod().supervisorLog(0)).filter(({ event }) => event === 'stalled');
    const places = stuckLines().map((line) => `renderPrice ${source}:${line}`);
    expect(stalls).toHaveLength(1);
    expect(places).toContain(stalls[0]?.in);
    await until('it serves again', async () => (await get('page')).status === 200);
  });

  if (lacks) return;
  test('HEAD and streams', async () => {
    const head = await get('page', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, '']);
    const stream = await get('stream');
    expect([stream.status, stream.body]).toEqual([200, 'in flight: 1.....']);
    expect((await get('page')).status).toBe(200);
  });

  if (tag)
    test('who has the page gets 304', async () => {
      const { headers } = await get('page');
      expect(headers.etag).toMatch(tag);
      const again = await get('page', { headers: { 'if-none-match': headers.etag ?? '' } });
      expect([again.status, again.body]).toEqual([304, '']);
      expect((await get('page')).status).toBe(200);
    });
}

/** `corelane dashboard` as a user starts it, on a cluster: an API server that lists pods and forwards their ports. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { PageFrame } from '../../../live/page-frame.ts';
import { until } from '../../../local/http.ts';
import { bareEnvironment } from '../../support/bare-environment.ts';
import { forwardingApi, kubeconfigFor, type Pod } from '../../support/forwarding-api.ts';
import { cpuProfile } from '../dashboard/sources.ts';

const CLI = join(fileURLToPath(new URL('../../../..', import.meta.url)), 'operator/bin/corelane.mjs');
const SHOP = {
  metadata: { name: 'shop', namespace: 'default', generation: 1 },
  spec: { replicas: 60, template: { spec: { containers: [{ name: 'worker', image: 'shop' }] } } },
  status: { observedGeneration: 1 },
};
const EVENT = {
  metadata: { name: 'shop.1', namespace: 'default' },
  ...{ reason: 'ScaledUp', message: 'scaled 50 -> 60: CPU 81 % > 70 %', eventTime: '2026-11-25T12:00:00.000000Z' },
};
const HAPROXY = `
haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1
haproxy_server_current_sessions{proxy="workers",server="worker-0"} 1
haproxy_backend_current_queue{proxy="line"} 1
`;
const PAGES: Record<string, string> = {
  '/corelane/metrics?detail=1': 'corelane_worker_up{worker="0"} 1\ncorelane_worker_requests_total{worker="0"} 12\n',
  '/now': JSON.stringify({ requests: [{ id: 'a', what: 'GET /<b>\u001b[2J\u202e', ms: 1_234 }] }),
  '/profile?seconds=10': cpuProfile('render'),
};

function pageOf(head: string): string {
  const [, path = ''] = head.split(' ');
  const body = path.startsWith('/metrics') ? HAPROXY : PAGES[path];
  const status = body === undefined ? '404 Not Found' : '200 OK';
  return `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body ?? '')}\r\n\r\n${body ?? ''}`;
}

const pods = Array.from(
  { length: 60 },
  (_unused, index): Pod => ({
    name: `shop-${index}`,
    answer: pageOf,
    object: {
      metadata: { labels: { 'pod-template-hash': '7f9c' } },
      spec: { containers: [{ name: 'worker-0' }] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
  }),
);

/** Of a revision that rests: it gets no requests, so it is not among them. */
const RESTING: Pod = {
  ...(pods[0] as Pod),
  name: 'shop-rests',
  object: {
    ...pods[0]?.object,
    metadata: { labels: { 'corelane.dev/revision': 'aa', 'corelane.dev/serving': 'false' } },
  },
};

let folder: string;
let api: Awaited<ReturnType<typeof forwardingApi>>;
let running: ChildProcess | undefined;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-'));
  api = await forwardingApi([RESTING, ...pods], { 'renderservices/shop': SHOP, events: { items: [EVENT] } });
  writeFileSync(join(folder, 'kubeconfig'), kubeconfigFor(api.url));
});
afterAll(() => {
  running?.kill('SIGKILL');
  api.close();
  rmSync(folder, { recursive: true });
});

const env = () => bareEnvironment(folder, { KUBECONFIG: join(folder, 'kubeconfig') });

/** The first frame that is so. */
async function frameOf(url: string, is: (frame: PageFrame) => boolean): Promise<PageFrame> {
  const { body } = await fetch(new URL('told', url));
  let text = '';
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    const found = parts
      .flatMap((part) => /^event: frame\ndata: (.*)$/s.exec(part)?.[1] ?? [])
      .map((one) => JSON.parse(one));
    const frame = found.find(is);
    if (frame) return frame;
  }
  throw new Error('the stream has ended');
}

test('all pods through the API server, Events on the time line, a profile, and an end', async () => {
  const child = spawn(process.execPath, [CLI, 'dashboard', 'shop', '--interval', '1s'], { env: env() });
  running = child;
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk;
    });
  const url = await until('it says where it is', () => /^http:\/\/127\.0\.0\.1:\d+\/\S+\/$/m.exec(said)?.[0], 60_000);
  expect(said).toContain('This address has a key in it');
  expect(await (await fetch(url)).text()).toContain('<script type="module" src="page.js">');
  expect((await fetch(new URL('/', url))).status).toBe(404);

  const frame = await frameOf(url, ({ entries }) => entries.length > 0);
  expect(frame).toMatchObject({ name: 'shop', namespace: 'default', podsNotAsked: 0, notes: [] });
  expect(frame.pods).toHaveLength(60);
  expect(frame.revisions).toEqual([{ revision: '7f9c', pods: 60, ready: 60 }]);
  expect(Object.keys(api.asked)).not.toContain(RESTING.name);
  expect(frame.entries).toEqual([
    { atMs: Date.parse('2026-11-25T12:00:00Z'), kind: 'scaling', what: 'scaled 50 -> 60', why: 'CPU 81 % > 70 %' },
  ]);
  // Each of them is asked what it renders, and what it says is text.
  expect(new Set(frame.lanes.map(({ requests }) => requests[0]?.what))).toEqual(new Set(['GET /<b> [2J ']));

  const { origin } = new URL(url);
  const made = await fetch(new URL('profiles?pod=shop-3&worker=0', url), { method: 'POST', headers: { origin } });
  const { id, title } = (await made.json()) as { id: string; title: string };
  expect(title).toBe('worker-0 of shop-3');
  expect(await (await fetch(new URL(`profiles/${id}.html`, url))).text()).toContain('CPU profile: busy');

  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test.each([
  [['dashboard'], 64, 'one name of a RenderService is needed'],
  [['dashboard', 'shop', '--port', '70000'], 64, '--port must be a number from 0 to 65535'],
  [['dashboard', 'shop', '--interval', '10ms'], 64, '--interval must be 1s or more'],
  [['dashboard', 'blog'], 1, 'there is no RenderService blog in namespace default'],
])('%s says what is wrong', async (args, code, message) => {
  const ended = promisify(execFile)(process.execPath, [CLI, ...args], { env: env() });
  await expect(ended).rejects.toMatchObject({ code, stderr: expect.stringContaining(message) });
});

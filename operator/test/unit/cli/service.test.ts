/**
 * `corelane explain`, `logs` and `top`, as a user calls them: what they read through the API server, and that no byte
 * of a stranger reaches the terminal as it is.
 */
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

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function corelane(args: string[], env: Record<string, string> = {}): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  execFile(
    process.execPath,
    [join(root, 'operator/bin/corelane.mjs'), ...args],
    { env: bareEnvironment(folder, env) },
    (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
  );
  return promise;
}

const SHOP = {
  metadata: { name: 'shop', namespace: 'default', generation: 1 },
  spec: { replicas: 2, template: { spec: { containers: [{ name: 'worker', image: 'shop' }] } } },
  status: { observedGeneration: 1 },
};

/** With an API server that has these pods. */
async function withPods(pods: Pod[], args: string[], resource: object = SHOP, more: Record<string, object> = {}) {
  const api = await forwardingApi(pods, { 'renderservices/shop': resource, ...more });
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, kubeconfigFor(api.url));
  try {
    return { ...(await corelane(args, { KUBECONFIG: file })), asked: api.asked };
  } finally {
    api.close();
  }
}

const HAPROXY = `
haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1
haproxy_server_current_sessions{proxy="workers",server="worker-0"} 1
haproxy_backend_current_queue{proxy="line"} 3
`;
const POD = `
corelane_worker_up{worker="0"} 1
corelane_worker_requests_total{worker="0"} 12
corelane_requests_total{code="5xx",reason="queue-full"} 2
corelane_requests_total{code="5xx",reason="a\u009b2J\u202eb"} 1
corelane_worker_last_stall_timestamp_seconds{worker="0",in="a\u009b2J"} 1e300
corelane_request_queue_duration_seconds_bucket{le="+Inf"} 40
`;
const NOW = { requests: [{ id: 'a', what: 'GET /\u001b[2J\u001b]0;owned\u0007', ms: 1_234 }] };

const page = (body: string, status = '200 OK') =>
  `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

function pageOf(head: string): string {
  const [, path = ''] = head.split(' ');
  if (path.startsWith('/metrics')) return page(HAPROXY);
  if (path === '/corelane/metrics?detail=1') return page(POD);
  return path === '/now' ? page(JSON.stringify(NOW)) : page('', '404 Not Found');
}

const OBJECT = {
  metadata: { labels: { 'pod-template-hash': '7f9c' } },
  spec: { containers: [{ name: 'worker-0' }] },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};
const SERVING: Pod = { name: 'shop-0', answer: pageOf, object: OBJECT };
const LOST: Pod = {
  name: 'shop-1',
  phase: 'Pending',
  object: {
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'False', message: '0/3 nodes are available: 3 Insufficient \u001b[31mcpu.' },
      ],
    },
  },
};

/** Of a revision that rests: it is ready, and gets no requests. */
const RESTING: Pod = {
  ...SERVING,
  name: 'shop-rests',
  object: { ...OBJECT, metadata: { labels: { 'corelane.dev/revision': 'aa', 'corelane.dev/serving': 'false' } } },
};

/** Nothing that a terminal obeys, and no line break that a text has brought. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is about
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

test.each([
  [['explain'], 'one name of a RenderService is needed'],
  [['explain', 'a', 'b'], 'one name of a RenderService is needed'],
  [['explain', 'a', '--for', '10ms'], '--for must be from 1s to 5m, not "10ms"'],
  [['explain', 'a', '--for', 'soon'], '--for must be a time such as 80ms or 2s, not "soon"'],
  [['logs', 'a'], '--slow is needed'],
  [['logs', '--slow'], 'one name of a RenderService is needed'],
  [['logs', 'a', '--slow', '--since', '25h'], '--since must be at most 24h, not "25h"'],
  [['logs', 'a', '--slow', '--limit', '0'], '--limit must be a number from 1 to 1000, not "0"'],
  [['explain', 'a', '-o', 'yaml'], '-o must be json'],
  [['top', 'a', '-o', 'yaml'], '-o must be json'],
  [['top', 'a', '-A'], '--all-namespaces goes with no name'],
  [['top', '-A', '-n', 'shop'], '--all-namespaces goes with no name'],
  [['top', '-A', '--local'], '--all-namespaces goes with no name'],
  [['top', 'a', '--interval', '1ms'], '--interval must be 1s or more, not "1ms"'],
])('%j is refused with a sentence', async (args, message) => {
  const { code, stdout, stderr } = await corelane(args);
  expect({ code, stdout, stderr }).toEqual({ code: 64, stdout: '', stderr: expect.stringContaining(message) });
});

test('explain: pods, their figures, and what the scheduler says', async () => {
  const { code, stdout, stderr, asked } = await withPods([SERVING, LOST], ['explain', 'shop', '--for', '1s']);
  expect({ code, stderr, lines: stdout.split('\n') }).toEqual({
    code: 0,
    stderr: '',
    lines: [
      'default/shop: no request has been answered; 0.0 requests/s over 1 s',
      '1 worker in 1 of 2 pods: 1 busy; 3 requests wait',
      'Now: 1 of 1 worker is busy, 3 requests wait, and pod shop-1 cannot be scheduled: 0/3 nodes are available: 3 Insufficient  [31mcpu',
      'Next: add nodes, or ask for less: resources of the template x workersPerPod, and spec.sidecar',
      '',
    ],
  });
  expect(stdout).not.toMatch(OBEYED);
  // Two looks of two pages, and nothing of the pod that does not run.
  expect(Object.entries(asked).map(([name, heads]) => [name, heads.length])).toEqual([['shop-0', 4]]);
});

test.each([
  [['explain', 'shop', '--for', '1s'], /^1 worker in 1 pod: 1 busy; 3 requests wait$/m],
  [['top', 'shop'], /^ {2}shop-0 +0 +up/m],
  [['top', '--interval', '1s'], /^default +shop +1\/1 +1 +1 +3 /m],
])('%s leaves out pods that rest', async (args, told) => {
  const { code, stdout, asked } = await withPods([RESTING, SERVING], args, SHOP, { renderservices: { items: [SHOP] } });
  expect([code, stdout]).toEqual([0, expect.stringMatching(told)]);
  expect(stdout).not.toContain(RESTING.name);
  expect(Object.keys(asked)).toEqual(['shop-0']);
});

test('explain: what a pod does not tell is said; one that answers nonsense, or without end, is no more than that', async () => {
  const silent = { ...SERVING, answer: undefined };
  const nonsense = { ...SERVING, name: 'shop-2', answer: page('x'.repeat(100_000)) };
  const endless = { ...SERVING, name: 'shop-3', answer: page('y\n'.repeat(1_500_000)) };
  const { code, stdout } = await withPods([silent, nonsense, endless], ['explain', 'shop', '--for', '1s']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^Not known: 2 pods did not tell \(shop-0: .*\)$/m)]);
});

test('explain: no such service, no pods, no cluster', async () => {
  const [none, empty, nowhere] = [
    await withPods([], ['explain', 'blog']),
    await withPods([], ['explain', 'shop'], { ...SHOP, spec: { ...SHOP.spec, replicas: 0 } }),
    await corelane(['explain', 'shop']),
  ];
  expect([none.code, none.stderr]).toEqual([1, 'corelane: there is no RenderService blog in namespace default\n']);
  expect([empty.code, empty.stdout]).toEqual([
    0,
    expect.stringContaining('Now: there are no pods: spec.replicas is 0\n'),
  ]);
  expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('there is no kubeconfig')]);
});

const line = (changes: object) =>
  JSON.stringify({
    ...{
      time: '2026-11-25T12:03:11+00:00',
      requestId: 'a',
      method: 'GET',
      uri: '/',
      status: 200,
      error: '',
      stuckIn: '',
    },
    ...{ worker: 'worker-0', pod: '', queueMs: 0, renderMs: 40, firstByteMs: 41, totalSeconds: 0.041, tries: '200' },
    ...changes,
  });

test('logs --slow: lines of all pods; hostile bytes stay what they are, the log of one that cannot be read is named', async () => {
  const hostile = {
    uri: '/\u001b[2J\u001b]0;owned\u0007\r\n\u009bA\u202eevil',
    method: 'G\u001b[31mT',
    requestId: '\u0007',
  };
  const log = Buffer.concat([
    Buffer.from(`${line({ uri: '/before' })}\n`),
    Buffer.from(`${line({ ...hostile, queueMs: 900, totalSeconds: 0.94, firstByteMs: 940 })}\n`),
    Buffer.from([0x1b, 0x5b, 0x32, 0x4a, 0xff, 0xfe, 0x0a]),
    Buffer.from(`{"time":"${'x'.repeat(200_000)}\n`),
    Buffer.from(line({ renderMs: 800, totalSeconds: 0.8, firstByteMs: 800, uri: '/last', stuckIn: '\u001b[0m' })),
  ]);
  const pods = [
    { ...SERVING, log },
    { ...SERVING, name: 'shop-2' },
  ];
  const { code, stdout, stderr } = await withPods(pods, ['logs', 'shop', '--slow']);
  expect([code, stderr]).toEqual([
    1,
    'corelane: the log of nginx of pod shop-2 cannot be read: 403 may not read logs\n',
  ]);
  expect(stdout.split('\n')[0]).toBe(
    '3 requests in the last 10m of 1 pod; 2 took 500 ms or more (66.7 %): 1 waited for a worker, 1 rendered for long',
  );
  expect(stdout).toMatch(/ behind 40 ms of GET \/before {2,}G \[31mT \/ \[2J \]0;owned A evil$/m);
  expect(stdout).toMatch(/ GET \/last$/m);
  expect(stdout).not.toMatch(OBEYED);
});

test('top without a terminal: once, as text', async () => {
  const { code, stdout, stderr, asked } = await withPods([SERVING, LOST], ['top', 'shop']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(
    /^ {2}POD +WORKER +STATE +LANE +FOR +CPU .*\n {2}shop-0 +0 +up +▇ +1\.2 s .* GET \/ \[2J \]0;owned $/m,
  );
  expect(stdout).not.toMatch(OBEYED);
  // What it renders is told to those only who can set a header.
  expect(asked['shop-0']?.find((head) => head.startsWith('GET /now'))).toMatch(/^X-Corelane-Runtime: true\r$/m);
});

const event = (at: string, reason: string, message: string, more: object = {}) => ({
  ...{ type: 'Normal', reason, message, eventTime: `2026-11-25T${at}.000000Z`, firstTimestamp: null },
  ...more,
});
const EVENTS = {
  events: {
    items: [
      event('12:05:00', 'ScalingStopped', 'no metrics', { type: 'Warning', series: { count: 3 } }),
      event('12:03:09', 'Scaled', '2 -> 3 pods\u001b[2J'),
    ],
  },
};

test('explain: Events in order, whatever order they came in; as JSON the same, with codes', async () => {
  const args = ['explain', 'shop', '--for', '1s'];
  const text = await withPods([SERVING, LOST], args, SHOP, EVENTS);
  expect(text.stdout.split('\n').slice(4)).toEqual([
    'Events (UTC, the newest last):',
    '  12:03:09 Scaled: 2 -> 3 pods [2J',
    '  12:05:00 Warning ScalingStopped (3 times): no metrics',
    '',
  ]);
  const { code, stdout } = await withPods([SERVING, LOST], [...args, '-o', 'json'], SHOP, EVENTS);
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    {
      ...{ namespace: 'default', name: 'shop', waiting: 3, workers: { all: 1, busy: 1, down: 0, silent: 0 } },
      pods: { all: 2, ready: 1, asked: 1, notTold: [] },
      findings: [{ code: 'saturated, not scheduled', next: expect.stringMatching(/^add nodes/) }],
      events: [
        { time: '2026-11-25T12:03:09.000Z', reason: 'Scaled', count: 1 },
        { time: '2026-11-25T12:05:00.000Z', type: 'Warning', reason: 'ScalingStopped', count: 3 },
      ],
      text: [expect.stringMatching(/^default\/shop: /), ...Array(3).fill(expect.any(String))],
    },
  ]);
  expect(stdout.replaceAll('\n', '')).not.toMatch(OBEYED);
});

test('explain: Events that cannot be read take nothing from what was asked', async () => {
  const args = ['explain', 'shop', '--for', '1s'];
  const broken = { events: { items: 7 } };
  const { code, stdout } = await withPods([SERVING], args, SHOP, broken);
  expect([code, stdout.split('\n').at(-2)]).toEqual([
    0,
    expect.stringMatching(/^Events: not known, events of namespace default cannot be listed: /),
  ]);
  expect(stdout).toMatch(/^Now: /m);
  const asJson = await withPods([SERVING], [...args, '-o', 'json'], SHOP, broken);
  expect([asJson.code, JSON.parse(asJson.stdout)]).toMatchObject([0, { name: 'shop', events: null }]);
});

test('top as JSON: each worker, and what it renders', async () => {
  const { code, stdout } = await withPods([SERVING, LOST], ['top', 'shop', '-o', 'json']);
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    {
      findings: [{ code: 'saturated, not scheduled' }],
      lanes: [{ pod: 'shop-0', worker: 'worker-0', state: 'up', busy: 1, requests: [{ id: 'a', ms: 1_234 }] }],
    },
  ]);
  expect(stdout.replaceAll('\n', '')).not.toMatch(OBEYED);
});

test('top without a name: all services, those in trouble first; one that cannot be looked at is named', async () => {
  const services = ['blog', 'gone', 'shop'].map((name) => ({ metadata: { name, namespace: 'default' } }));
  const blog = { ...SHOP, metadata: { ...SHOP.metadata, name: 'blog' }, spec: { ...SHOP.spec, replicas: 0 } };
  const more = { renderservices: { items: services }, 'renderservices/blog': blog };
  const args = ['top', '--interval', '1s'];
  const { code, stdout, stderr } = await withPods([SERVING], args, SHOP, more);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^namespace default: 3 RenderServices\nNAMESPACE +NAME +PODS +WORKERS +BUSY .* NOW\n/);
  expect(stdout).toMatch(/^default +shop +1\/1 +1 +1 +3 .* saturated: 1 of 1 worker is busy, 3 requests wait$/m);
  expect(stdout).toMatch(/^default +gone +- .* there is no RenderService gone in namespace default$/m);
  const json = await withPods([SERVING], [...args, '-o', 'json'], SHOP, more);
  expect(JSON.parse(json.stdout)).toMatchObject({
    services: [{ name: 'blog' }, { name: 'gone', error: expect.any(String) }, { name: 'shop', waiting: 3 }],
    leftOut: 0,
  });
  const none = await withPods([], ['top']);
  expect([none.code, none.stdout]).toEqual([
    0,
    expect.stringMatching(/^namespace default: there is no RenderService\n/),
  ]);
});

test('profile: what a program says in place of its supervisor moves no cursor, and has an end', async () => {
  const acting = '\u001b[2J\u001b]0;owned\u0007\u009b2J\u202e';
  const refused = await withPods([{ ...SERVING, answer: page(acting, '500 x') }], ['profile', 'shop']);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^corelane: worker-0 of shop-0: .*owned/m)]);
  expect(refused.stderr).not.toMatch(OBEYED);
  const endless = await withPods([{ ...SERVING, answer: page('y'.repeat(100_000), '500 x') }], ['profile', 'shop']);
  expect(endless.stderr).toContain('corelane: the answer has more than 4096 bytes\n');
});

/** Slow requests of access logs: who waited, behind whom, and that nobody's bytes do more than be read. */
import { type Reason, SlowRequests, slowLines } from '../../../live/slow-requests.ts';

/** A line as nginx writes it. */
function line(changes: object = {}): string {
  return JSON.stringify({
    ...{ time: '2026-11-25T12:03:11+00:00', requestId: 'a1', client: '10.0.0.1', proxy: '10.0.0.1', method: 'GET' },
    ...{ uri: '/p/shoes?page=3', status: 200, error: '', stuckIn: '', worker: 'worker-0', pod: '', queueMs: 0 },
    ...{ renderMs: 40, firstByteMs: 41, totalSeconds: 0.041, bytesReceived: 200, bytesSent: 9_000, tries: '200' },
    ...{ traceparent: '', ...changes },
  });
}

function found(lines: string[], { thanMs = 500, kept = 20 } = {}): SlowRequests {
  const requests = new SlowRequests({ thanMs, kept });
  for (const text of lines) requests.add(text, 'storefront-1');
  return requests;
}

const shown = (lines: string[]) => slowLines(found(lines), { thanMs: 500, since: '10m', pods: 1 });

test.each<[string, object, Reason, string]>([
  [
    'waited',
    { queueMs: 900, renderMs: 40, totalSeconds: 0.941, firstByteMs: 940 },
    'queue',
    'behind 40 ms of GET /before',
  ],
  ['rendered', { renderMs: 900, totalSeconds: 0.901, firstByteMs: 901 }, 'render', 'rendered'],
  ['read slowly', { renderMs: 40, totalSeconds: 4.2, firstByteMs: 41 }, 'client', 'client, or a stream'],
  [
    'was refused',
    {
      worker: '',
      status: 503,
      error: 'queue-timeout',
      queueMs: 10_000,
      renderMs: null,
      firstByteMs: 10_001,
      totalSeconds: 10.001,
      tries: '503',
    },
    'failed',
    'queue-timeout',
  ],
  [
    'got its worker stuck',
    {
      status: 502,
      error: 'worker-stuck',
      stuckIn: 'render /app/a.js:3',
      queueMs: 3,
      renderMs: null,
      firstByteMs: 10_900,
      totalSeconds: 10.9,
      tries: '502',
    },
    'failed',
    'worker-stuck, stuck in render /app/a.js:3',
  ],
  [
    'lost a worker',
    { queueMs: 300, renderMs: 400, totalSeconds: 0.8, firstByteMs: 800, tries: '502, 200' },
    'died',
    'a worker died with it',
  ],
  [
    'waited for a page',
    { worker: '', queueMs: null, renderMs: null, cache: 'waited', totalSeconds: 0.8, firstByteMs: 800 },
    'cache',
    'waited for the same page',
  ],
  [
    'was handed over',
    { pod: '10-1-2-3', queueMs: 600, renderMs: 40, totalSeconds: 0.64, firstByteMs: 640 },
    'queue',
    'waited for a worker, handed over',
  ],
])('one that %s', (_what, changes, reason, why) => {
  const lines = [line({ uri: '/before?secret=1' }), line(changes)];
  expect(found(lines).slowest.map((one) => one.reason)).toEqual([reason]);
  expect(shown(lines).at(-1)).toContain(`  ${why}  `);
});

test('what is told of all, and the slowest first', () => {
  const lines = [
    line(),
    line({ renderMs: 700, totalSeconds: 0.7, firstByteMs: 700 }),
    line({ queueMs: 1_900, renderMs: 40, totalSeconds: 1.94, firstByteMs: 1_940, uri: '/waits' }),
    line({ queueMs: 900, renderMs: 40, totalSeconds: 0.94, firstByteMs: 940, worker: 'worker-1' }),
    'not a line',
    '{"time":',
    '[error] 7#7: upstream',
  ];
  expect(shown(lines)).toEqual([
    '4 requests in the last 10m of 1 pod; 3 took 500 ms or more (75.0 %): 2 waited for a worker, 1 rendered for long',
    '',
    'ENDED     TOTAL    QUEUE  RENDER  STATUS  WORKER                 WHY                            REQUEST',
    '12:03:11  1.9 s  1900 ms   40 ms  200     storefront-1/worker-0  behind 700 ms of GET /p/shoes  GET /waits',
    '12:03:11  0.9 s   900 ms   40 ms  200     storefront-1/worker-1  waited for a worker            GET /p/shoes?page=3',
    '12:03:11  0.7 s   0.0 ms  700 ms  200     storefront-1/worker-0  rendered                       GET /p/shoes?page=3',
  ]);
  expect(shown([line()])).toEqual(['1 request in the last 10m of 1 pod; 0 took 500 ms or more (0.0 %)']);
  expect(shown([])).toEqual([
    '0 requests in the last 10m of 1 pod; 0 took 500 ms or more (0.0 %)',
    'Pods with accessLog.enabled: false log no requests.',
  ]);
});

test('a sample: it says so, and nobody knows who had the worker before', () => {
  const lines = [
    line({ samplingPercent: 12.5 }),
    line({ samplingPercent: 12.5, queueMs: 900, totalSeconds: 0.94, firstByteMs: 940 }),
    line({ samplingPercent: 100, status: 503, error: 'queue-full', worker: '', renderMs: null, tries: '503' }),
  ];
  const sentence = /^. requests? in the last 10m of 1 pod \(a sample: accessLog\.samplingPercent\); /;
  expect(shown(lines)[0]).toMatch(sentence);
  // With samplingPercent: 0 no other line says so.
  expect(shown(lines.slice(-1))[0]).toMatch(sentence);
  expect(shown(lines).at(-1)).toContain('  waited for a worker  ');
});

test('of many the slowest are kept, whatever their order', () => {
  const all = Array.from({ length: 1_000 }, (_unused, index) => 1 + ((index * 37) % 1_000));
  const requests = found(
    all.map((s) => line({ totalSeconds: s })),
    { kept: 3 },
  );
  expect(requests.slowest.map(({ request }) => request.totalMs)).toEqual([1_000_000, 999_000, 998_000]);
  expect(requests.counts).toMatchObject({ all: 1_000, slow: 1_000 });
});

test('a file, or a class, has had no render slot: nobody waited for it', () => {
  const lines = [
    line({ uri: '/api', servedAs: 'api' }),
    line({ queueMs: 900, renderMs: 40, totalSeconds: 0.94, firstByteMs: 940 }),
  ];
  expect(found(lines).slowest[0]?.behind).toBeUndefined();
});

test.each([
  ['numbers that are none', { totalSeconds: 'x' }],
  ['a URL that is none', { uri: 7 }],
  ['a missing field', { worker: undefined }],
])('%s: passed over', (_what, changes) => {
  expect(found([line(changes)]).counts.all).toBe(0);
});

test('a URL of any length stays in its column, and a worker of any name', () => {
  const [, , , row = ''] = shown([
    line({ uri: `/${'x'.repeat(5_000)}`, worker: 'w'.repeat(900), renderMs: 900, totalSeconds: 0.9 }),
  ]);
  expect(row.length).toBeLessThan(300);
});

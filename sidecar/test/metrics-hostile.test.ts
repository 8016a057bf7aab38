/**
 * Programs of a pod that write a page of metrics themselves: in place of a supervisor, or of nginx while that is away.
 * Prometheus throws away a page with one line that it cannot read, and keeps each series that it has ever seen.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { metricsPage, samplesOf } from './metrics.ts';

/** Where nginx has its figures, and where the supervisor of worker-0 listens. */
const PLACES = { nginx: 9100, supervisor: 9102 };
/** Nginx is away; the others are. */
const ELSEWHERE = (file: string, text: string) =>
  ['nginx.conf', 'pod.env'].includes(file)
    ? text.replace(/(listen 127\.0\.0\.1:|CORELANE_FIGURES_PORT=)9100\b/, (_all, before) => `${before}9199`)
    : text;

const NAMES = ['corelane_requests_total', 'corelane_worker_cpu_seconds_total', 'corelane_worker_other'];
const LABELS = [
  'worker="0",a="1",a="2"',
  'worker="0",worker="0"',
  'worker="0",__name__="up"',
  'code="5xx",code="2xx",reason=""',
  'code="5xx",reason="",__name__="up"',
  'code="5xx",reason="\ud800"',
  'code="5xx",reason="queue-full",namespace="other",renderservice="other"',
  'worker="0",namespace="other",renderservice="other"',
  ...Array.from({ length: 300 }, (_unused, n) => `code="2xx",reason="x${n}"`),
];
/** What the two may say: when it is there, their parts are on the page. */
const MARKS = ['corelane_requests_total{code="4xx",reason="poison"}', 'corelane_worker_cpu_seconds_total{worker="0"}'];
const NUMBERS = ['9'.repeat(400), '1e', '1-1', '--1', '0x1', 'NaN', ''];

function hostilePage(): string {
  const families = NAMES.map((name) => {
    const head = `# HELP ${name} Something.\n# TYPE ${name} counter\n`;
    const lines = [
      ...MARKS.filter((mark) => mark.startsWith(`${name}{`)).map((mark) => `${mark} 7`),
      ...LABELS.map((labels) => `${name}{${labels}} 1`),
      ...NUMBERS.map((n) => `${name}{worker="0"} ${n}`),
    ];
    return `${head}${lines.join('\n')}\n`;
  });
  return `${families.join('')}corelane_requests_handed_over_total{direction="out"} ${'9'.repeat(400)}\n`;
}

const PROGRAM = `
const { createServer } = require('node:http');
createServer((_request, response) => response.end('page')).listen(process.env.PORT, '127.0.0.1');
const page = ${JSON.stringify(hostilePage())};
for (const port of ${JSON.stringify(Object.values(PLACES))})
  createServer((_request, response) => response.setHeader('content-length', Buffer.byteLength(page)).end(page))
    .on('clientError', (_error, socket) => socket.destroy())
    .listen(port, '127.0.0.1');
`;

let pod: Pod;
beforeAll(async () => {
  // Without the worker runtime nobody else has that port.
  const command = ['env', '--unset=NODE_OPTIONS', 'node', '-e', PROGRAM];
  pod = await Pod.start({ workersPerPod: 1 }, { command, edit: ELSEWHERE });
});
afterAll(() => pod?.stop());

test.each(['', '?detail=1'])(
  'the page %s is one that Prometheus can read, and has no series of their making',
  async (query) => {
    const page = await until('their parts are on the page', async () => {
      const now = samplesOf(await metricsPage(pod, query));
      return MARKS.every((mark) => now.get(mark) === 7) ? now : undefined;
    });
    const others = [...page.keys()].filter((name) => !name.startsWith('corelane_worker_') && !MARKS.includes(name));
    const known = /^corelane_(workers|queue_length|peers_known|requests_handed_over_total)\b/;
    expect(others.filter((name) => !known.test(name))).toEqual([]);
    // Of a worker's, too, where it is not asked for all.
    const ofWorker = [...page.keys()].filter((name) => name.startsWith('corelane_worker_'));
    if (query === '') expect(ofWorker).toEqual([MARKS[1]]);
  },
);

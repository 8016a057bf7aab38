/** What `corelane top` shows, on terminals of any size: golden files, and what must hold on each of them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { frame, inOrder, type Lane, markOf, ORDERS, type View } from '../../../live/lanes.ts';
import { windowOf } from '../../../live/window.ts';
import { fiveSecondsBefore, fleet, full, pod, worker } from './fleet.ts';

const lane = (
  name: string,
  index: number,
  changes: Parameters<typeof worker>[1] = {},
  more: Partial<Lane> = {},
): Lane => {
  const own = worker(index, changes);
  return { pod: name, worker: own, marks: '··▇▇·▇▇▇'.concat(markOf(own)), requests: [], cpu: 0.42, ...more };
};
const rendering = (what: string, ms: number) => ({ requests: [{ id: 'a', what, ms }] });

const LANES: Lane[] = [
  lane('storefront-7f9c-0', 0),
  lane('storefront-7f9c-0', 1, { busy: 1, oldSpaceBytes: 300 * 2 ** 20 }, rendering('GET /p/shoes?page=3', 80)),
  lane('storefront-7f9c-1', 0, { busy: 1, silentS: 9.4 }, { ...rendering('POST /render', 9_400), cpu: 1 }),
  lane('storefront-7f9c-1', 1, { up: false, crashLoop: { exitCode: 1, backoffSeconds: 3 } }, { cpu: undefined }),
  lane(
    'storefront-7f9c-2',
    0,
    { blocked: true },
    {
      requests: [
        { id: 'x', what: 'GET /slow', ms: 60_000 },
        { id: 'y', what: 'GET /b', ms: 3 },
      ],
    },
  ),
  lane('storefront-7f9c-2', 1, { busy: 1, requests: 9_000 }, rendering(`GET /search?q=${'long'.repeat(60)}`, 700)),
];

function view(changes: Partial<View> = {}): View {
  const snapshot = fleet({ pods: [0, 1, 2].map((index) => pod(index, { figures: full() })) });
  const window = windowOf(snapshot, fiveSecondsBefore(snapshot));
  return { snapshot, window, lanes: LANES, order: 'stuck', chosen: 0, panel: [], message: '', ...changes };
}

const names = (lanes: Lane[]) => lanes.map((one) => `${one.pod.at(-1)}/${one.worker.name.at(-1)}`);

test.each([
  ['wide', { width: 140, height: 24 }, {}],
  ['usual', { width: 80, height: 24 }, { chosen: 2, message: 'profiling worker-0' }],
  [
    'with a stack',
    { width: 100, height: 20 },
    { panel: ['', 'worker-0 stuck 10 s', '    at render /app/a.js:3', ...Array(40).fill('    at more')] },
  ],
  ['narrow', { width: 40, height: 12 }, { chosen: 5 }],
])('%s', (name, size, changes) => {
  const lines = frame(view(changes), { ...size, hasKeys: true });
  const text = `${lines.map(({ text: one, style }) => `${style.padEnd(7)}|${one}`).join('\n')}\n`;
  const golden = fileURLToPath(new URL(`golden-top/${name.replaceAll(' ', '-')}.txt`, import.meta.url));
  if (process.env.UPDATE_GOLDEN) writeFileSync(golden, text);
  expect(text).toBe(readFileSync(golden, 'utf8'));
});

test('on a terminal of any size nothing is wider or higher than it', () => {
  for (let width = 1; width < 130; width += 7)
    for (let height = 1; height < 30; height += 1)
      for (const chosen of [0, 3, 5])
        for (const lanes of [LANES, [], LANES.slice(0, 1)]) {
          const lines = frame(view({ chosen, lanes, panel: ['', 'x'.repeat(200)] }), { width, height, hasKeys: true });
          expect(lines.length).toBeLessThanOrEqual(height);
          expect(Math.max(...lines.map(({ text }) => text.length))).toBeLessThanOrEqual(width);
        }
});

test('the one that is chosen is in sight, whatever the number of lanes', () => {
  const lanes = Array.from({ length: 200 }, (_unused, index) => lane(`pod-${String(index).padStart(3, '0')}`, 0));
  for (const chosen of [0, 1, 57, 198, 199]) {
    const lines = frame(view({ lanes, chosen, order: 'name' }), { width: 100, height: 20, hasKeys: true });
    expect(lines.filter(({ text }) => text.startsWith('> '))).toMatchObject([
      { text: expect.stringContaining(`pod-${String(chosen).padStart(3, '0')}`), style: 'chosen' },
    ]);
  }
});

test('without keys there are none, and nothing is chosen', () => {
  const lines = frame(view(), { width: 100, height: Number.MAX_SAFE_INTEGER, hasKeys: false });
  expect(lines.some(({ text }) => text.includes('[q]') || text.startsWith('>'))).toBe(false);
  expect(lines).toHaveLength(5 + LANES.length);
});

test.each([
  ['stuck', ['1/0', '1/1', '2/0', '2/1', '0/1', '0/0']],
  ['time', ['2/0', '1/0', '2/1', '0/1', '0/0', '1/1']],
  ['cpu', ['1/0', '0/0', '0/1', '2/0', '2/1', '1/1']],
  ['heap', ['0/1', '0/0', '1/0', '1/1', '2/0', '2/1']],
  ['requests', ['2/1', '0/0', '0/1', '1/0', '1/1', '2/0']],
  ['name', ['0/0', '0/1', '1/0', '1/1', '2/0', '2/1']],
] as const)('by %s', (order, expected) => {
  expect(names(inOrder(LANES, order))).toEqual(expected);
});

test('every order is tried above', () => {
  expect(ORDERS).toEqual(['stuck', 'time', 'cpu', 'heap', 'requests', 'name']);
});

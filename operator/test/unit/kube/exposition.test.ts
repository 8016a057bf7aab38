/** Reading a page that a pod has written, whoever wrote the pod. */
import { Exposition } from '../../../src/pods/exposition.ts';

const LINE = 'haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1\n';

test('names, labels and values', () => {
  const page = new Exposition(`# HELP a b\n${LINE}a 2\na{b="c"} 3.5\nbroken{ 1\na{b="c",d=} 4\n`);
  expect(page.all('haproxy_server_status')).toEqual([
    { labels: { proxy: 'workers', server: 'worker-0', state: 'UP' }, value: 1 },
  ]);
  expect(page.sum('a')).toBe(9.5);
  expect(page.all('a', { b: 'c' }).map(({ value }) => value)).toEqual([3.5, 4]);
  expect(page.sum('missing')).toBe(0);
});

test('lines of a name are found wherever they stand, and however often they are asked for', () => {
  const text = `${LINE}# TYPE b gauge\nb{x="1"} 1\nc{x="1"} 2\nb{x="2",y="1"} 3\r\nb{x="2"} 4\nb 5\nbb{x="2"} 6\nb{ax="2"} 7\nb{x="2"} 8`;
  const values = (page: Exposition, labels?: Record<string, string>) => page.all('b', labels).map(({ value }) => value);
  const page = new Exposition(text);
  for (let n = 0; n < 6; n += 1) {
    expect(values(page, { x: '2' })).toEqual([3, 4, 8]);
    expect(values(page, { x: '1' })).toEqual([1]);
    expect(page.all('c')).toEqual([{ labels: { x: '1' }, value: 2 }]);
  }
  expect(values(new Exposition(text))).toEqual([1, 3, 4, 5, 7, 8]);
  expect(values(new Exposition(text), { x: '2', y: '1' })).toEqual([3]);
});

test.each(['b{x="2"}3', 'b{x="2"}  3', 'b{x="2"} 3 4', 'b{x="2"} ', 'b{x="2" 3', 'b{x="2"', 'b', 'b ', ' b 1', '1b 1'])(
  '"%s" is no sample',
  (line) => {
    expect(new Exposition(`${line}\n`).all('b')).toEqual([]);
  },
);

test.each<[string, Record<string, string>]>([
  ['x="2",', { x: '2' }],
  ['x="2"y="1"', {}],
  ['x="2",y-z="1",a="b"', { x: '2' }],
  [',x="2"', {}],
  ['x="",y="="', { x: '', y: '=' }],
  ['x="2",,y="1"', { x: '2' }],
])('of the labels {%s} is read what can be', (labels, expected) => {
  expect(new Exposition(`b{${labels}} 1\n`).all('b')).toEqual([{ labels: expected, value: 1 }]);
});

const LENGTH = 500_000;
const HOSTILE = {
  'a label without end': `m{${'a'.repeat(LENGTH)}} 1`,
  'labels without a value': `m{${'a,'.repeat(LENGTH / 2)}} 1`,
  'lines of labels without a value': `m{${'a'.repeat(1_000)}} 1\n`.repeat(LENGTH / 1_000),
  'a name without end': 'a'.repeat(LENGTH),
  blanks: ' '.repeat(LENGTH),
  quotes: `m{a="${'"'.repeat(LENGTH)} 1`,
  'empty lines': '\n'.repeat(LENGTH),
  'other names in turns': 'a{b="c"} 1\nm{b="c"} 1\n'.repeat(LENGTH / 22),
  'labels that are like the wanted one': `m{xproxy="line"} 1\n`.repeat(LENGTH / 19),
};

/** Milliseconds of this process for one page, the least of some tries. */
function cost(text: string): number {
  const tries = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    new Exposition(text).sum('m');
    new Exposition(text).sum('m', { proxy: 'line' });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...tries);
}

// What was quadratic took 400 ms for 16 kB, and so 1,000 times as long for this.
test.each(Object.entries(HOSTILE))('%s costs no more than some honest pages of that length', (_what, text) => {
  // All of it is wanted.
  const line = 'm{proxy="line",server="worker-0",state="UP"} 1\n';
  const honest = cost(line.repeat(LENGTH / line.length));
  expect(cost(text)).toBeLessThan(10 * (honest + 1));
});

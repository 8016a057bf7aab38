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

const LENGTH = 500_000;
const HOSTILE = {
  'a label without end': `m{${'a'.repeat(LENGTH)}} 1`,
  'labels without a value': `m{${'a,'.repeat(LENGTH / 2)}} 1`,
  'lines of labels without a value': `m{${'a'.repeat(1_000)}} 1\n`.repeat(LENGTH / 1_000),
  'a name without end': 'a'.repeat(LENGTH),
  blanks: ' '.repeat(LENGTH),
  quotes: `m{a="${'"'.repeat(LENGTH)} 1`,
  'empty lines': '\n'.repeat(LENGTH),
};

/** Milliseconds of this process for one page, the least of some tries. */
function cost(text: string): number {
  const tries = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    new Exposition(text).sum('m');
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...tries);
}

// What was quadratic took 400 ms for 16 kB, and so 1,000 times as long for this.
test.each(Object.entries(HOSTILE))('%s costs no more than some honest pages of that length', (_what, text) => {
  const honest = cost(LINE.repeat(LENGTH / LINE.length));
  expect(cost(text)).toBeLessThan(10 * (honest + 1));
});

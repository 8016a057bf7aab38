/** The flame graph of a CPU profile: times add up, and nothing of the profile becomes markup. */
import { runInNewContext } from 'node:vm';
import { type CpuProfile, flameGraph, frames, summary } from '../../../cli/flame-graph.ts';

const frame = (functionName: string, url = '/app/a.js') => ({ functionName, url, lineNumber: 4 });
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)', ''), children: [2, 4] },
    { id: 2, callFrame: frame('render'), children: [3, 5] },
    { id: 3, callFrame: frame('</script><b>') },
    { id: 4, callFrame: frame('(idle)', '') },
    { id: 5, callFrame: frame('never') },
  ],
  samples: [2, 3, 3, 4, 2],
  timeDeltas: [10, 20, 30, 40, -5],
};

test('a box has the time of its own samples and of what it called; idle time has none', () => {
  expect(frames(profile)).toEqual({
    name: '(root)',
    at: '',
    us: 60,
    children: [
      {
        name: 'render',
        at: '/app/a.js:5',
        us: 60,
        children: [{ name: '</script><b>', at: '/app/a.js:5', us: 50, children: [] }],
      },
    ],
  });
});

test('names are texts of a bounded length, whatever a program has made them', () => {
  const callFrame = { functionName: ['x'.repeat(1_000_000)], url: { a: 1 }, lineNumber: '<' };
  const made = { nodes: [{ id: 1, callFrame }], samples: [1], timeDeltas: [10] } as unknown as CpuProfile;
  const { name, at } = frames(made);
  expect([name.length, at]).toEqual([300, '[object Object]:NaN']);
  expect(flameGraph(made, 'a').length).toBeLessThan(10_000);
});

test('names in a profile cannot end the script or begin an element', () => {
  const html = flameGraph(profile, 'worker-0 of <i>');
  expect(html.match(/<\/script>/g)).toHaveLength(1);
  expect(html).not.toContain('<b>');
  expect(html).not.toContain('<i>');
});

test('the summary names where the time was spent, wherever it was called from', () => {
  expect(summary(profile)).toBe(
    'busy 60.0 % of 0.0 s; of that in\n   83.3 %  </script><b> /app/a.js:5\n   16.7 %  render /app/a.js:5',
  );
  const idle = { ...profile, samples: [4], timeDeltas: [2_000_000] };
  expect(summary(idle)).toBe('busy 0.0 % of 2.0 s');
  expect(flameGraph(idle, '')).toContain('busy 0.0 % of 2.0 s');
});

test('the page needs no network', () => {
  expect(flameGraph(profile, '')).not.toMatch(/https?:|src=|href=|@import|url\(/);
});

test('an empty profile is an error, not an empty page', () => {
  expect(() => flameGraph({ nodes: [], samples: [], timeDeltas: [] }, '')).toThrow('empty');
});

test('a profile that a program has made up ends, and moves no cursor', () => {
  const circle = { ...profile, nodes: [{ id: 1, callFrame: frame('a'), children: [1, 1] }] };
  expect(() => runInNewContext('work()', { work: () => frames(circle) }, { timeout: 5_000 })).toThrow(
    'the profile has no node 1',
  );
  const acting = { ...profile, nodes: [{ id: 2, callFrame: frame('\u001b]0;title\u0007') }] };
  expect(summary(acting)).toMatch(/ \]0;title +\/app\/a\.js:5$/);
});

/** Conditions as kstatus reads them, and their times. */
import {
  type Condition,
  type ConditionDraft,
  mergeConditions,
  progressing,
  ready,
  stalled,
} from '../../src/api/conditions.ts';

const EARLIER = '2026-01-01T00:00:00Z';
const NOW = '2026-01-02T00:00:00Z';

function statuses(drafts: { type: string; status: string }[]): Record<string, string> {
  return Object.fromEntries(drafts.map(({ type, status }) => [type, status]));
}

test.each([
  ['ready', ready(2), { Ready: 'True', Reconciling: 'False', Stalled: 'False' }],
  [
    'progressing without enough pods',
    progressing('...', false),
    { Ready: 'False', Reconciling: 'True', Stalled: 'False' },
  ],
  [
    'progressing while enough pods serve',
    progressing('...', true),
    { Ready: 'Unknown', Reconciling: 'True', Stalled: 'False' },
  ],
  ['stalled', stalled('Rejected', '...', 0), { Ready: 'False', Reconciling: 'False', Stalled: 'True' }],
])('%s', (_what, drafts, expected) => {
  expect(statuses(drafts)).toEqual(expected);
});

test('kstatus never sees Reconciling and Stalled at a time', () => {
  for (const drafts of [ready(1), progressing('', true), progressing('', false), stalled('NotOwned', '', 1)]) {
    const { Reconciling, Stalled } = statuses(drafts);
    expect([Reconciling, Stalled]).not.toEqual(['True', 'True']);
  }
});

test('a stalled RenderService says how many pods go on serving', () => {
  expect(stalled('Rejected', 'no', 3)[0]?.message).toBe('no (3 pods keep serving)');
  expect(stalled('Rejected', 'no', 0)[0]?.message).toBe('no');
});

test('reasons and statuses are what the API takes', () => {
  for (const { reason } of [...ready(1), ...progressing('', true), ...stalled('NotOwned', '', 0)]) {
    expect(reason).toMatch(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/);
  }
});

test('a message beyond what the API takes is cut', () => {
  for (const { message } of stalled('Rejected', 'x'.repeat(100_000), 3)) {
    expect(message.length).toBeLessThanOrEqual(32_768);
  }
});

test('a condition keeps its time while its status stays, whatever else changes', () => {
  const before = mergeConditions([], progressing('one', true), 1, EARLIER);
  const after = mergeConditions(before, ready(2), 2, NOW);
  const times = Object.fromEntries(after.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]));
  expect(times).toEqual({ Ready: NOW, Reconciling: NOW, Stalled: EARLIER });
  expect(after.every(({ observedGeneration }) => observedGeneration === 2)).toBe(true);
});

test('a condition that is only told on keeps the generation that it was known for', () => {
  const [told] = mergeConditions([], [ready(2)[0] as ConditionDraft], 1, EARLIER);
  const after = mergeConditions([told as Condition], [told as Condition, ready(2)[1] as ConditionDraft], 2, NOW);
  expect(after.map(({ observedGeneration }) => observedGeneration)).toEqual([1, 2]);
  expect(after[0]).toEqual(told);
});

test('a condition of somebody else or of an older version goes', () => {
  const old = [{ type: 'Old', status: 'True' }] as unknown as Condition[];
  expect(mergeConditions(old, ready(1), 1, NOW).map(({ type }) => type)).toEqual(['Ready', 'Reconciling', 'Stalled']);
});

/** Pods stay byte for byte until the user changes them, or until it is their turn. */
import { ANNOTATION_MADE_OF, ANNOTATION_RENEWED } from '../../../src/api/names.ts';
import { parseStored, type RenderService } from '../../../src/api/resource.ts';
import { madeText, readMade } from '../../../src/plan/made.ts';
import { choosePods, type PodsBefore, withPastTurn } from '../../../src/plan/pods.ts';

const OLD = { image: 'sidecar:1' };
const NEW = { image: 'sidecar:2' };
const TURN = '2026-01-01T00:00:00Z';
const never = () => undefined;
const now = () => TURN;

function input(spec: object = {}) {
  const template = { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } };
  const written = { template, ...spec };
  const metadata = { name: 'shop', namespace: 'default', uid: 'u', generation: 1, resourceVersion: '1' };
  const parsed = parseStored({ apiVersion: '', kind: '', metadata, spec: written });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return { renderService: parsed.renderService as RenderService, written };
}

/** Pods for a spec, after those that there were. */
function choose(
  spec: object,
  sidecar: typeof OLD,
  before?: PodsBefore | PodsBefore[],
  mayRenew: () => string | undefined = never,
) {
  const { renderService, written } = input(spec);
  const { pods, change } = choosePods(renderService, written, sidecar, [before ?? []].flat(), mayRenew);
  const made = readMade(pods.annotations[ANNOTATION_MADE_OF]);
  const after = made && { annotations: { other: 'x', ...pods.annotations }, made, lives: true };
  return { pods, change, after, template: JSON.stringify(pods.template) };
}

const first = choose({}, OLD);

test('the first are made, and it is remembered of what', () => {
  expect(first.change).toBe('made');
  expect(first.after?.made.spec).toEqual(input().written);
  expect(JSON.stringify(first.after?.made.template)).toBe(first.template);
});

test('another sidecar image changes nothing, to the byte; the ConfigMap is the one that there is', () => {
  const kept = choose({}, NEW, first.after);
  expect([kept.change, kept.template]).toEqual(['kept', first.template]);
  expect(kept.pods.annotations).toEqual(first.pods.annotations);
  expect(kept.pods.config).toBeUndefined();
});

test.each([
  ['live', { queue: { maxLength: 3 }, concurrency: 4 }],
  ['not about the inside of pods', { replicas: 9, rollout: { dataPlane: 'WithNextChange' } }],
])('a change that is %s does not bring it either', (_what, spec) => {
  const kept = choose(spec, NEW, first.after);
  expect([kept.change, kept.template]).toEqual(['kept', first.template]);
});

test('a change of the user brings it', () => {
  const made = choose({ workersPerPod: 3 }, NEW, first.after);
  expect(made.change).toBe('made');
  expect(made.template).toContain('sidecar:2');
  expect(made.pods.annotations[ANNOTATION_RENEWED]).toBeUndefined();
  expect(made.after?.made.spec).toMatchObject({ workersPerPod: 3 });
});

test('its turn brings it, which is remembered until the user changes something', () => {
  const renewed = choose({}, NEW, first.after, now);
  expect(renewed.change).toBe('renewed');
  expect(renewed.template).toContain('sidecar:2');
  expect(renewed.pods.annotations[ANNOTATION_RENEWED]).toBe(TURN);
  const later = choose({}, NEW, renewed.after, () => 'later');
  expect([later.change, later.pods.annotations]).toEqual(['same', renewed.pods.annotations]);
  const back = choose({}, OLD, renewed.after);
  expect([back.change, back.pods.annotations]).toEqual(['kept', renewed.pods.annotations]);
  const changed = choose({ workersPerPod: 3 }, NEW, renewed.after);
  expect(changed.pods.annotations[ANNOTATION_RENEWED]).toBeUndefined();
});

test('nobody asks for a turn where there is nothing to renew', () => {
  let asked = 0;
  const count = () => {
    asked += 1;
    return TURN;
  };
  choose({}, OLD, first.after, count);
  choose({ workersPerPod: 3 }, NEW, first.after, count);
  expect(asked).toBe(0);
  choose({}, NEW, first.after, count);
  expect(asked).toBe(1);
});

test('a change that makes the same pods is remembered: the next version must not take it for a new one', () => {
  // Another way to write what is so unless given.
  const before = choose({ drain: { timeout: '310s' } }, OLD).after;
  const same = choose({}, OLD, before);
  const renamed = { ...before, made: { ...(before as PodsBefore).made, spec: input({ balance: 'first' }).written } };
  const remembered = choose({}, OLD, renamed as PodsBefore);
  expect([same.change, remembered.change]).toEqual(['same', 'same']);
  expect(remembered.after?.made.spec).toEqual(input().written);
});

test('what a version knows and the other does not is no change of the user', () => {
  const newer = { ...first.after, made: { ...first.after?.made, spec: { ...input().written, novelty: 1 } } };
  expect(choose({}, NEW, newer as PodsBefore).change).toBe('kept');
  const defaults = input().renderService.spec;
  const explicit = { ...first.after, made: { ...first.after?.made, spec: defaults } };
  expect(choose({}, NEW, explicit as PodsBefore).change).toBe('kept');
});

test('a spec that would be refused today is another one', () => {
  const refused = { ...first.after, made: { ...first.after?.made, spec: { template: {} } } };
  expect(choose({}, NEW, refused as PodsBefore).change).toBe('made');
});

describe('back to a revision that there is', () => {
  const second = choose({ workersPerPod: 3 }, OLD, first.after);
  const both = [second.after, first.after] as PodsBefore[];

  test('is that one, to the byte', () => {
    const back = choose({}, OLD, both);
    expect([back.change, back.pods.revision, back.template]).toEqual(['made', first.pods.revision, first.template]);
  });

  test('also where another version would make other pods by now, and no turn is asked for', () => {
    const back = choose({}, NEW, both, now);
    expect([back.change, back.pods.revision, back.template]).toEqual(['kept', first.pods.revision, first.template]);
    expect(back.pods.annotations).toEqual(first.pods.annotations);
  });

  test('but not without its pods: then the change takes the new version with it', () => {
    const gone = [second.after, { ...first.after, lives: false }] as PodsBefore[];
    expect(choose({}, NEW, gone).template).toContain('sidecar:2');
    expect(choose({}, OLD, gone).pods.revision).toBe(first.pods.revision);
  });

  test('that a turn had made is no turn', () => {
    const renewed = choose({}, NEW, first.after, now).after as PodsBefore;
    const changed = choose({ workersPerPod: 3 }, NEW, renewed).after as PodsBefore;
    expect(choose({}, OLD, [changed, renewed]).pods.annotations[ANNOTATION_RENEWED]).toBeUndefined();
  });

  test('of two that were made of the same the newer one stays: what a turn has made is not undone', () => {
    const renewed = choose({}, NEW, first.after, now).after as PodsBefore;
    expect(choose({}, NEW, [renewed, first.after as PodsBefore]).change).toBe('same');
    expect(choose({}, OLD, [renewed, first.after as PodsBefore]).change).toBe('kept');
  });

  test('another version that brings the former one back, by a turn, finds its pods', () => {
    const renewed = choose({}, NEW, first.after, now).after as PodsBefore;
    const back = choose({}, OLD, [renewed, first.after as PodsBefore], now);
    expect([back.change, back.pods.revision]).toEqual(['renewed', first.pods.revision]);
  });
});

test('a revision has its name from what its pods are', () => {
  const revisionOf = (spec: object, sidecar = OLD) => choose(spec, sidecar).pods.revision;
  expect(revisionOf({ replicas: 9, queue: { maxLength: 3 } })).toBe(first.pods.revision);
  const others = [revisionOf({}, NEW), revisionOf({ workersPerPod: 3 }), revisionOf({ queue: { timeout: '3s' } })];
  expect(new Set([first.pods.revision, ...others]).size).toBe(4);
});

describe('the annotation', () => {
  const made = { spec: { a: 1 }, template: { spec: { containers: [] } } };

  test('says what was put into it', () => expect(readMade(madeText(made))).toEqual(made));

  test('is left out where it would be too large, and nothing is kept', () => {
    const noise = Array.from({ length: 60_000 }, (_unused, index) => ((index * 7919) ** 2).toString(36)).join('');
    expect(madeText({ ...made, spec: { noise } })).toBeUndefined();
  });

  test.each(['', 'x', '!!!', Buffer.from('{}').toString('base64'), 'A'.repeat(200_000)])(
    'of somebody else is none: %.20s',
    (text) => expect(readMade(text)).toBeUndefined(),
  );

  test('is not read any further than pods can be large', () => {
    const bomb = madeText({ spec: { zeros: '0'.repeat(20_000_000) }, template: made.template });
    expect(bomb?.length).toBeLessThan(10_000);
    expect(readMade(bomb)).toBeUndefined();
  });

  test('is not read where a few bytes of it would take a lot of memory', () => {
    const bomb = madeText({ spec: { a: Array.from({ length: 300_000 }, () => ({})) }, template: made.template });
    expect(bomb?.length).toBeLessThan(1_000);
    expect(readMade(bomb)).toBeUndefined();
  });

  test.each(['x', '9999-01-01T00:00:00Z', '2026-01-05T12:00:01Z'])(
    'a turn at a time that has not been is one of now: %s',
    (renewed) => {
      const now = '2026-01-05T12:00:00Z';
      expect(withPastTurn({ [ANNOTATION_RENEWED]: renewed, other: 'a' }, now)).toEqual({
        [ANNOTATION_RENEWED]: now,
        other: 'a',
      });
    },
  );

  test('a turn of before stays what it is', () => {
    const annotations = { [ANNOTATION_RENEWED]: '2026-01-05T11:59:59Z' };
    expect(withPastTurn(annotations, '2026-01-05T12:00:00Z')).toBe(annotations);
    expect(withPastTurn({}, '2026-01-05T12:00:00Z')).toEqual({});
  });
});

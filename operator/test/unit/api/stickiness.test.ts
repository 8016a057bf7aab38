/** Who stays at a revision: what is refused of it, what pods are told, and what they call themselves. */
import { ANNOTATION_DEPLOYMENT, LABEL_REVISION } from '../../../src/api/names.ts';
import type { RenderServiceSpec } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { workerContainers } from '../../../src/plan/workers.ts';
import { renderConfig } from '../../../src/render/index.ts';
import { liveSerial, renderLive } from '../../../src/render/live.ts';

const containers = [{ name: 'worker', image: 'example/app:1' }];

function parsed(input: object, annotations?: Record<string, string>) {
  const template = { ...(annotations && { metadata: { annotations } }), spec: { containers } };
  return renderServiceSpec.safeParse({ template, ...input });
}
function refusal(...input: Parameters<typeof parsed>) {
  const [first] = parsed(...input).error?.issues ?? [];
  return first && `${first.path.join('.')}: ${first.message}`;
}
const specOf = (...input: Parameters<typeof parsed>) => parsed(...input).data as RenderServiceSpec;
const sticky = (cookie: string, more: object = {}) => ({ ...more, rollout: { stickiness: { cookie } } });

test.each(['Off', 'Canary', 'Always'])('a cookie %s', (cookie) => expect(refusal(sticky(cookie))).toBeUndefined());

test.each([
  [
    sticky('Always', { pooling: { enabled: false } }),
    /^rollout\.stickiness\.cookie: Always needs pooling\.enabled: .*set it to true, or take Canary$/,
  ],
  [
    sticky('Always', { cache: { enabled: true } }),
    /^rollout\.stickiness\.cookie: Always works without cache\.enabled only: /,
  ],
  [sticky('Never'), /^rollout\.stickiness\.cookie: /],
  [{ rollout: { stickiness: { cookies: 'Off' } } }, /^rollout\.stickiness: /],
])('%j is refused with the way out', (input, message) => expect(refusal(input)).toMatch(message));

test.each([
  ['Off', { pooling: { enabled: false } }],
  ['Canary', { pooling: { enabled: false }, cache: { enabled: true } }],
])('%s goes with anything', (cookie, more) => expect(refusal(sticky(cookie, more))).toBeUndefined());

test('pods are told what is not what they do anyway', () => {
  const lines = (cookie: string) => renderLive(specOf(sticky(cookie))).settings.match(/^sticky-cookie=.*$/gm);
  expect([lines('Off'), lines('Canary'), lines('Always')]).toEqual([['sticky-cookie=0'], null, ['sticky-cookie=2']]);
  const serials = ['Off', 'Canary', 'Always'].map((cookie) => liveSerial(renderLive(specOf(sticky(cookie)))));
  expect(new Set(serials).size).toBe(3);
  expect(liveSerial(renderLive(specOf({})))).toBe(serials[1]);
});

describe('the id of a deployment', () => {
  test.each(['a', '2026-11-26.7f3a9c2', 'A_b', 'x'.repeat(64)])('%s stands in the configuration', (id) => {
    const spec = specOf({}, { [ANNOTATION_DEPLOYMENT]: id });
    expect(renderConfig(spec)['haproxy.cfg']).toContain(` deployment=${id} `);
    const [worker] = workerContainers(spec, { name: 'worker' });
    expect(worker?.env).toContainEqual({ name: 'CORELANE_DEPLOYMENT_ID', value: id });
  });

  test.each(['', ' ', 'a b', 'a,b', 'ä', 'a/b', 'a"b', 'a\nb', '$HOME', 'x'.repeat(65)])('%j is refused', (id) =>
    expect(refusal({}, { [ANNOTATION_DEPLOYMENT]: id })).toMatch(
      /^template\.metadata\.annotations: corelane\.dev\/deployment-id must be 1 to 64 letters, digits and \. _ -/,
    ),
  );

  test('none: that of the revision, also without the worker runtime and whatever the user has set', () => {
    const spec = specOf({ runtime: { instrument: false } });
    expect(renderConfig(spec)['haproxy.cfg']).toMatch(/ deployment="\$\{CORELANE_REVISION\}" /);
    const env = [{ name: 'CORELANE_DEPLOYMENT_ID', value: 'mine' }];
    for (const one of [spec, specOf({})]) {
      const [worker] = workerContainers(one, { name: 'worker', env });
      expect(worker?.env?.filter(({ name }) => name === 'CORELANE_DEPLOYMENT_ID')).toEqual([
        {
          name: 'CORELANE_DEPLOYMENT_ID',
          valueFrom: { fieldRef: { fieldPath: `metadata.labels['${LABEL_REVISION}']` } },
        },
      ]);
    }
  });
});

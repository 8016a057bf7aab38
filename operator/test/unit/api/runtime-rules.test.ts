/** Rules about the worker runtime and the watchdog, as the operator checks them. */
import type { V1Container } from '@kubernetes/client-node';
import type { RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';

function problems(input: Partial<RenderServiceSpecInput>, worker: Partial<V1Container> = {}, init: V1Container[] = []) {
  const template = { spec: { containers: [{ name: 'worker', image: 'a', ...worker }], initContainers: init } };
  const result = renderServiceSpec.safeParse({ template, ...input });
  return (result.error?.issues ?? []).map(({ path }) => path.join('.'));
}

test.each<[string, Partial<RenderServiceSpecInput>]>([
  ['the default', {}],
  ['a render limit below the default of the watchdog', { timeouts: { render: '1s' } }],
  ['the shortest', { watchdog: { stallTimeout: '500ms' } }],
  ['just below timeouts.render', { watchdog: { stallTimeout: '29999ms' } }],
  ['the longest', { watchdog: { stallTimeout: '10m' }, timeouts: { render: '11m' }, drain: { timeout: '12m' } }],
])('%s is fine', (_what, input) => expect(problems(input)).toEqual([]));

test.each(['499ms', '601s', '11m', '0s', '30s', '31s'])('a stall time-out of %s is refused', (stallTimeout) => {
  expect(new Set(problems({ watchdog: { stallTimeout } }))).toEqual(new Set(['watchdog.stallTimeout']));
});

test('what Corelane mounts and adds cannot be taken', () => {
  for (const mountPath of ['/corelane', '/corelane-live', '/corelane-drain'])
    expect(problems({}, { volumeMounts: [{ name: 'a', mountPath }] })).toEqual(['template.spec.containers']);
  expect(problems({}, {}, [{ name: 'corelane-runtime', image: 'a' }])).toEqual(['template.spec.initContainers']);
});

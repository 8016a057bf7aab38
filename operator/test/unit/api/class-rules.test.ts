/** How many requests classes may have, and what nginx has memory for. */
import { classRequests, classRequestsMax } from '../../../src/api/class-rules.ts';
import { specRules } from '../../../src/api/rules.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { budget } from '../../../src/render/model/budget.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const parse = (spec: object) => renderServiceSpec.safeParse({ template, ...spec });
const api = { name: 'api', match: [{ pathPrefix: '/api/' }] };

test.each([
  {},
  { compression: { enabled: true } },
  { cache: { enabled: true } },
  { sidecar: { nginx: { memoryLimit: '1Gi' } } },
  { buffering: { request: { memory: '1Mi' }, response: { memory: '512Ki' } } },
  { buffering: { maxHeaderSize: '16Ki' } },
  { buffering: { maxHeaderSize: '128Ki' } },
])('two thirds of what the budget has: %j', (input) => {
  const { data } = parse(input);
  if (!data) throw new Error('no spec');
  expect(Math.floor((3 / 2) * classRequestsMax(data))).toBe(budget(data).requests);
});

test.each([
  [93, 20, true],
  [94, 20, false],
  [93, 21, false],
])('%d places in each of two workers and %d that wait: %s', (concurrency, maxLength, fits) => {
  const { success, error } = parse({ classes: [{ ...api, concurrency, queue: { maxLength } }] });
  expect(success).toBe(fits);
  if (!fits)
    expect(error?.issues[0]).toMatchObject({ path: ['classes'], message: expect.stringMatching(/memoryLimit/) });
});

test('all classes count', () => {
  const spec = { classes: [api, { ...api, name: 'other' }], workersPerPod: 3 };
  const { data } = parse(spec);
  expect(data && classRequests(data)).toBe(2 * (3 * 10 + 20));
});

test('without classes no rule about them says anything', () => {
  const { data } = parse({ concurrency: 1000, sidecar: { nginx: { memoryLimit: '64Mi' } } });
  expect(data && specRules.filter(({ holds }) => !holds(data))).toEqual([]);
});

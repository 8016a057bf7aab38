/** Which requests take out what somebody else has put into an object of ours. */
import { apply } from '../../../src/kube/apply.ts';
import type { Cache } from '../../../src/kube/cache.ts';
import { kinds } from '../../../src/kube/kinds.ts';
import type { Rest } from '../../../src/kube/rest.ts';
import type { FieldSet, KubeObject } from '../../../src/kube/types.ts';

const COMPLETED = 'corelane.dev/completed';
const RETIRED = 'corelane.dev/retired';

const desired: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'shop', namespace: 'web', annotations: { [COMPLETED]: 'noon' } },
};

/** What is sent where a program has written these annotations, which makes them its own. */
async function sentAfter(annotations: Record<string, string>): Promise<[method: string, annotations: unknown][]> {
  const written = Object.fromEntries(Object.keys(annotations).map((name) => [`f:${name}`, {}])) as FieldSet;
  const managedFields = [
    { manager: 'corelane', operation: 'Apply', fieldsV1: {} },
    { manager: 'kubectl-annotate', operation: 'Update', fieldsV1: { 'f:metadata': { 'f:annotations': written } } },
  ];
  const metadata = { ...desired.metadata, uid: '1', managedFields, annotations };
  const live = { ...desired, metadata } as KubeObject;
  const sent: [method: string, annotations: unknown][] = [];
  const request = async (method: string, _path: string, { body }: { body?: KubeObject } = {}) => {
    sent.push([method, body?.metadata.annotations]);
    return method === 'GET' ? live : desired;
  };
  const cache = { kind: kinds.deployment, remember: () => {} } as unknown as Cache;
  await apply({ request } as unknown as Rest, cache, desired, live);
  return sent;
}

test('an annotation of the plan is taken back at once: the object is never without', async () => {
  expect(await sentAfter({ [COMPLETED]: 'later' })).toEqual([
    ['GET', undefined],
    ['PATCH', { [COMPLETED]: 'noon' }],
  ]);
});

test('one that the plan does not have is taken out first', async () => {
  expect(await sentAfter({ [COMPLETED]: 'later', [RETIRED]: 'noon' })).toEqual([
    ['GET', undefined],
    ['PUT', { [COMPLETED]: 'later' }],
    ['PATCH', { [COMPLETED]: 'noon' }],
  ]);
});

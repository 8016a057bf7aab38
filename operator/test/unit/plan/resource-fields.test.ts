/** Which fields a LimitRange does not take, and what they have to be. */

import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { type ContainerRange, misfits, settings } from '../../../src/plan/resource-fields.ts';
import { type Sized, sizedContainers } from '../../../src/plan/resources.ts';

const WORKER = { requests: { cpu: '1', memory: '512Mi' }, limits: { memory: '512Mi' } };

function containers(resources: object = WORKER, others: object[] = [], spec: object = {}): Sized[] {
  const template = { spec: { containers: [{ name: 'worker', image: 'a', resources }, ...others] } };
  return sizedContainers(renderServiceSpec.parse({ template, ...spec }));
}

const said = (range: ContainerRange, of: Sized[] = containers()) => settings(misfits(of, range));

test.each<[what: string, range: ContainerRange, expected: string]>([
  ['minima that all have', { min: { cpu: '50m', memory: '32Mi' } }, ''],
  [
    'a minimum of CPU',
    { min: { cpu: '100m' } },
    'spec.sidecar.haproxy.cpu and spec.sidecar.nginx.cpu to at least 100m',
  ],
  [
    'a minimum that the limit of HAProxy is below, too',
    { min: { memory: '300Mi' } },
    'spec.sidecar.haproxy.memory, spec.sidecar.haproxy.memoryLimit and spec.sidecar.nginx.memory to at least 300Mi',
  ],
  [
    'a maximum of memory',
    { max: { memory: '256Mi' } },
    'resources.limits.memory of the worker, resources.requests.memory of the worker and spec.sidecar.nginx.memoryLimit to at most 256Mi',
  ],
  ['a maximum of CPU that becomes the default', { max: { cpu: '2' } }, ''],
  [
    'a default that is less than the worker asks for',
    { default: { cpu: '500m' } },
    'resources.requests.cpu of the worker to at most 500m',
  ],
  [
    'a maximum of disk',
    { max: { 'ephemeral-storage': '2Gi' } },
    'spec.sidecar.nginx.ephemeralStorageLimit to at most 2Gi',
  ],
  [
    'a ratio of memory',
    { maxLimitRequestRatio: { memory: '4' } },
    'spec.sidecar.haproxy.memory to at least 64Mi; spec.sidecar.nginx.memory to at least 128Mi',
  ],
  [
    'a ratio without limits',
    { maxLimitRequestRatio: { cpu: '4' } },
    'resources.limits.cpu of the worker, spec.sidecar.haproxy.cpuLimit and spec.sidecar.nginx.cpuLimit',
  ],
  ['a ratio with a default', { maxLimitRequestRatio: { cpu: '20' }, default: { cpu: '1' } }, ''],
  ['what is no quantity', { min: { cpu: 'much' } }, ''],
])('%s', (_what, range, expected) => expect(said(range)).toBe(expected));

test('a CPU limit that follows the worker counts in a ratio', () => {
  const limited = containers({ requests: { cpu: '1' }, limits: { cpu: '2' } });
  expect(said({ maxLimitRequestRatio: { cpu: '4' } }, limited)).toBe(
    'spec.sidecar.haproxy.cpu and spec.sidecar.nginx.cpu to at least 250m',
  );
});

test('a limit without a request is the request', () => {
  const other = { name: 'mesh', image: 'b', resources: { limits: { cpu: '20m' } } };
  const sidecar = { nginx: { cpu: '50m' } };
  expect(said({ min: { cpu: '50m' } }, containers(WORKER, [other], { sidecar }))).toBe(
    'resources.limits.cpu of container mesh to at least 50m',
  );
});

test('of many containers the first few are named', () => {
  const others = Array.from({ length: 20 }, (_unused, index) => ({
    name: `c${index}`,
    image: 'b',
    resources: { requests: { cpu: '1m' } },
  }));
  expect(said({ min: { cpu: '50m' } }, containers(WORKER, others))).toMatch(
    /^resources\.requests\.cpu of container c0, .*c7 and 12 more to at least 50m$/,
  );
});

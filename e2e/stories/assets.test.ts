/**
 * Files of an image come to nginx, by an init container and by a mounted image, in a namespace with Pod Security
 * "restricted"; a folder that is not there stops a rollout, and what runs goes on.
 */
import { apply, eventually, get, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { imageNames, installOperator } from '../harness/cluster/operator.ts';
import { type LiveRenderService, podsOf, untilReady } from '../harness/cluster/renderservice.ts';

const NAMESPACE = 'assets';
const RESTRICTED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

function renderService(name: string, fields: object): string {
  const proxy = { cpu: '5m', memory: '32Mi' };
  const worker = {
    name: 'worker',
    image: imageNames().storefront,
    resources: { requests: { cpu: '5m', memory: '32Mi' } },
    securityContext: RESTRICTED,
  };
  const spec = {
    ...{ replicas: 1, workersPerPod: 1, drain: { delay: '0s' } },
    ...fields,
    sidecar: { nginx: proxy, haproxy: proxy, ...(fields as { sidecar?: object }).sidecar },
    template: { spec: { containers: [worker] } },
  };
  return JSON.stringify({
    ...{ apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService' },
    metadata: { name, namespace: NAMESPACE },
    spec,
  });
}

beforeAll(async () => {
  await installOperator();
  const labels = '{pod-security.kubernetes.io/enforce: restricted}';
  await apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ${NAMESPACE}, labels: ${labels}}}`);
  await apply(renderService('copied', { assets: [{ path: '/static/', from: 'public', missing: 'NotFound' }] }));
  await apply(
    renderService('mounted', {
      assets: [{ path: '/static/', from: '/app/public', missing: 'NotFound' }],
      sidecar: { assets: { source: 'ImageVolume' } },
    }),
  );
});
afterAll(() => kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false']));

async function page(name: string, path: string): Promise<string> {
  const [pod] = (await podsOf(NAMESPACE, name)).filter(({ metadata }) => !metadata.deletionTimestamp);
  return kubectl(['get', '--raw', `/api/v1/namespaces/${NAMESPACE}/pods/${pod?.metadata.name}:9000/proxy${path}`]);
}

test.each(['copied', 'mounted'])('%s: nginx has the files, and says who has not', async (name) => {
  await untilReady(NAMESPACE, name);
  expect(await page(name, '/static/robots.txt')).toContain('User-agent: *');
  await expect(page(name, '/static/nothing.txt')).rejects.toThrow(/asset-not-found|could not find the requested/);
  expect(await page(name, '/')).toMatch(/<!DOCTYPE html>/i);
});

test('the init container is there where the files are copied, and the image where they are not', async () => {
  const shapes = await Promise.all(
    ['copied', 'mounted'].map(async (name) => {
      const [pod] = await podsOf(NAMESPACE, name);
      return pod?.spec.initContainers?.map((container) => container.name);
    }),
  );
  expect(shapes).toEqual([
    ['corelane-runtime', 'corelane-assets', 'haproxy', 'nginx'],
    ['corelane-runtime', 'haproxy', 'nginx'],
  ]);
});

test('a folder that is not there: the status says so, and the pod that serves goes on', async () => {
  const [before] = await podsOf(NAMESPACE, 'copied');
  await apply(renderService('copied', { assets: [{ path: '/static/', from: 'dist' }] }));
  const message = await eventually(
    'the status says why',
    120_000,
    async () => {
      const { status } = await get<LiveRenderService>('-n', NAMESPACE, 'renderservice', 'copied');
      return status?.conditions?.find((one) => /from "dist" is no folder of the image/.test(one.message))?.message;
    },
    SELDOM_MS,
  );
  expect(message).toContain('container corelane-assets of pod copied-');
  expect(message).toContain('(looked in /app)');
  const names = (await podsOf(NAMESPACE, 'copied')).map(({ metadata }) => metadata.name);
  expect(names).toContain(before?.metadata.name);
  const served = `/api/v1/namespaces/${NAMESPACE}/pods/${before?.metadata.name}:9000/proxy/static/robots.txt`;
  expect(await kubectl(['get', '--raw', served])).toContain('User-agent: *');
});

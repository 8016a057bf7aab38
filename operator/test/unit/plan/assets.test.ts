/** How files of an application's image get to nginx, and what the container that copies them has not got. */
import type { V1Container } from '@kubernetes/client-node';
import type { RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { podTemplate } from '../../../src/plan/pod-template.ts';

const IMMUTABLE = { path: '/_next/static/', from: '.next/static', immutable: true };

function podSpec(input: Partial<RenderServiceSpecInput>, worker: Partial<V1Container> = {}, pod: object = {}) {
  const template = { spec: { ...pod, containers: [{ name: 'worker', image: 'example/app:1', ...worker }] } };
  const spec = renderServiceSpec.parse({ template, ...input });
  const metadata = { name: 'shop', namespace: 'default', uid: '1', generation: 1 };
  const resource = { metadata, spec } as unknown as Parameters<typeof podTemplate>[0];
  const planned = podTemplate(resource, 'config', { image: 'example/sidecar:1' }).spec;
  if (!planned) throw new Error('no pod');
  return planned;
}

const init = (pod: ReturnType<typeof podSpec>, name: string) => pod.initContainers?.find((one) => one.name === name);
const copier = (...args: Parameters<typeof podSpec>) => init(podSpec(...args), 'corelane-assets') as V1Container;

test('nothing is there without assets, nor with an empty list', () => {
  for (const spec of [{}, { assets: [] }, { framework: 'Next' as const, assets: [] }])
    expect(JSON.stringify(podSpec(spec))).not.toContain('assets');
});

test.each([
  ['Next', ['/corelane-assets/0/_next/static', '**/.next/static']],
  ['Nuxt', ['/corelane-assets/0/_nuxt', '**/.output/public/_nuxt']],
  ['SvelteKit', ['/corelane-assets/0/_app/immutable', '**/build/client/_app/immutable']],
  ['ReactRouter', ['/corelane-assets/0/assets', '**/build/client/assets']],
  ['Astro', ['/corelane-assets/0/_astro', '**/dist/client/_astro']],
  ['Angular', ['/corelane-assets/0', '**/dist/*/browser']],
] as const)('%s: the folder with hashed names, wherever it is, and nothing else', (framework, folders) => {
  expect(copier({ framework }).command).toEqual(['/corelane/copy-assets', '536870912', ...folders]);
});

test.each([
  ['Next', ['/corelane-assets/0/a/b/_next/static', '**/.next/static']],
  ['SvelteKit', ['/corelane-assets/0/a/b/_app/immutable', '**/build/client/a/b/_app/immutable']],
  ['Angular', ['/corelane-assets/0/a/b', '**/dist/*/browser']],
] as const)('%s below a path', (framework, folders) => {
  expect(copier({ framework, basePath: '/a/b' }).command?.slice(2)).toEqual(folders);
});

test('folders of the resource are where it says', () => {
  expect(copier({ framework: 'Next', assets: [IMMUTABLE] }).command?.at(-1)).toBe('.next/static');
});

test('a mounted image has the folder of a preset below its WORKDIR', () => {
  const sidecar = { assets: { source: 'ImageVolume' as const } };
  const mounts = init(podSpec({ framework: 'Next', sidecar }, { workingDir: '/srv' }), 'nginx')?.volumeMounts;
  expect(mounts?.find(({ name }) => name === 'corelane-assets')?.subPath).toBe('srv/.next/static');
});

test('it comes after the runtime, which brings its program, and before the proxies', () => {
  for (const instrument of [true, false]) {
    const pod = podSpec({ assets: [IMMUTABLE], runtime: { instrument } });
    const names = pod.initContainers?.map(({ name }) => name);
    expect(names).toEqual(['corelane-runtime', 'corelane-assets', 'haproxy', 'nginx']);
  }
});

test('it has the image, folder, pull policy and resources of the worker, and nothing of its environment and volumes', () => {
  const container = copier(
    { assets: [IMMUTABLE] },
    {
      ...{ imagePullPolicy: 'Always', workingDir: '/srv', command: ['node', 'x.js'], args: ['--port'] },
      env: [{ name: 'NODE_OPTIONS', value: '--require=/x.cjs' }],
      envFrom: [{ secretRef: { name: 'secret' } }],
      volumeMounts: [{ name: 'secret', mountPath: '/secret' }],
      resources: { requests: { cpu: '4' }, limits: { memory: '8Gi' } },
    },
  );
  expect(container).toMatchObject({ image: 'example/app:1', imagePullPolicy: 'Always', workingDir: '/srv' });
  expect(Object.keys(container)).not.toEqual(expect.arrayContaining(['env']));
  expect([container.args, container.env, container.envFrom, container.restartPolicy]).toEqual(Array(4).fill(undefined));
  expect(container.volumeMounts?.map(({ name }) => name)).toEqual([
    ...['corelane-runtime', 'corelane-assets', 'corelane-no-token'],
  ]);
  expect(container.resources).toEqual({ requests: { cpu: '4' }, limits: { memory: '8Gi' } });
});

test.each<[string, Partial<V1Container>, object, object]>([
  ['that of the image, or of the namespace, as that of the worker', {}, {}, {}],
  ["the pod's, which counts for all containers", {}, { securityContext: { runAsUser: 7, runAsNonRoot: true } }, {}],
  [
    "the worker's",
    { securityContext: { runAsUser: 1000, runAsGroup: 0, runAsNonRoot: true, privileged: true } },
    { securityContext: { runAsUser: 7 } },
    { runAsUser: 1000, runAsGroup: 0, runAsNonRoot: true },
  ],
  [
    'root, where the worker is, but without its power',
    { securityContext: { runAsUser: 0, runAsNonRoot: false, capabilities: { add: ['SYS_ADMIN'] } } },
    { securityContext: { runAsNonRoot: true } },
    { runAsUser: 0, runAsNonRoot: false },
  ],
])('its user: %s', (_what, worker, pod, expected) => {
  const { securityContext } = copier({ assets: [IMMUTABLE] }, worker, pod);
  expect(securityContext).toEqual({
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
    seccompProfile: { type: 'RuntimeDefault' },
    ...expected,
  });
});

test('a mounted image: the folders, and nothing else of it', () => {
  const assets = [IMMUTABLE, { path: '/', from: '/app/public/' }];
  const pod = podSpec({ assets, sidecar: { assets: { source: 'ImageVolume' } } }, { workingDir: '/srv/' });
  expect(init(pod, 'corelane-assets')).toBeUndefined();
  expect(pod.volumes).toContainEqual({ name: 'corelane-assets', image: { reference: 'example/app:1' } });
  const mounts = init(pod, 'nginx')?.volumeMounts?.filter(({ name }) => name === 'corelane-assets');
  expect(mounts).toEqual([
    {
      name: 'corelane-assets',
      mountPath: '/corelane-assets/0/_next/static',
      subPath: 'srv/.next/static',
      readOnly: true,
    },
    { name: 'corelane-assets', mountPath: '/corelane-assets/1', subPath: 'app/public', readOnly: true },
  ]);
});

/** How the worker runtime gets into a pod, and how it does not when it is switched off. */
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import type { RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { stallTimeoutMs } from '../../../src/api/watchdog.ts';
import { podTemplate } from '../../../src/plan/pod-template.ts';

const ENTRY = '--require=/corelane/supervisor.cjs';

function podSpec(input: Partial<RenderServiceSpecInput> = {}, worker: Partial<V1Container> = {}) {
  const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1', ...worker }] } };
  const spec = renderServiceSpec.parse({ template, ...input });
  const metadata = { name: 'shop', namespace: 'default', uid: '1', generation: 1 };
  const resource = { metadata, spec } as unknown as Parameters<typeof podTemplate>[0];
  const { spec: pod } = podTemplate(resource, 'config', { image: 'example/sidecar:1' });
  if (!pod) throw new Error('no pod');
  return pod;
}

function env(input: Partial<RenderServiceSpecInput>, own: V1EnvVar[], worker = 0): V1EnvVar[] {
  return podSpec(input, { env: own }).containers[worker]?.env ?? [];
}

const value = (list: V1EnvVar[], name: string) =>
  list.filter((entry) => entry.name === name).map((entry) => entry.value);

test('an init container copies it, before the proxies start, and the workers mount it read-only', () => {
  const pod = podSpec({}, { volumeMounts: [{ name: 'own', mountPath: '/own' }] });
  expect(pod.initContainers?.map(({ name }) => name)).toEqual(['corelane-runtime', 'haproxy', 'nginx']);
  const [init] = pod.initContainers ?? [];
  expect(init).toMatchObject({
    image: 'example/sidecar:1',
    securityContext: { runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
    volumeMounts: [{ name: 'corelane-runtime', mountPath: '/corelane' }, { name: 'corelane-no-token' }],
  });
  expect(pod.volumes).toContainEqual({ name: 'corelane-runtime', emptyDir: {} });
  for (const worker of pod.containers) {
    expect(worker.volumeMounts).toEqual([
      { name: 'own', mountPath: '/own' },
      { name: 'corelane-live', mountPath: '/corelane-live', readOnly: true },
      { name: 'corelane-runtime', mountPath: '/corelane', readOnly: true },
      { name: 'corelane-drain', mountPath: '/corelane-drain', readOnly: true },
    ]);
  }
});

test('each worker has a runtime port of its own', () => {
  expect(value(env({}, [], 0), 'CORELANE_RUNTIME_PORT')).toEqual(['9102']);
  expect(value(env({}, [], 1), 'CORELANE_RUNTIME_PORT')).toEqual(['9103']);
});

test('an age of WebSockets is told where there are any', () => {
  const age = (webSockets: RenderServiceSpecInput['webSockets']) =>
    value(env({ webSockets }, []), 'CORELANE_WEBSOCKET_MAX_AGE_MS');
  expect(age({})).toEqual([]);
  expect(age({ enabled: true })).toEqual(['3600000']);
  expect(age({ enabled: true, maxAge: '90s' })).toEqual(['90000']);
});

test('a handler may take longer than a render, unless every request is one', () => {
  const handler = (input: Partial<RenderServiceSpecInput>) => value(env(input, []), 'CORELANE_HANDLER_TIMEOUT_MS');
  expect(handler({})).toEqual(['300000']);
  expect(handler({ timeouts: { handler: '90s' }, replay: 'Never' })).toEqual(['90000']);
  expect(handler({ replay: 'Always' })).toEqual([]);
});

test('it is told the port at which HAProxy says whose client has gone', () => {
  expect(value(env({}, [{ name: 'CORELANE_CLIENTS_PORT', value: '1' }]), 'CORELANE_CLIENTS_PORT')).toEqual(['8998']);
});

test('it is told how many requests may go on without a render slot, by the numbers that are no live settings', () => {
  const most = (input: Partial<RenderServiceSpecInput>) => value(env(input, []), 'CORELANE_WITHOUT_SLOT_MAX');
  expect([most({}), most({ concurrency: 3 }), most({ concurrency: 300 })]).toEqual([['32'], ['32'], ['0']]);
});

test('a worker knows the name of its Service, so that requests to that are known as those to its own site', () => {
  const found = env({}, []).filter(({ name }) => name === 'CORELANE_SERVICE' || name === 'CORELANE_NAMESPACE');
  expect(found.map(({ valueFrom }) => valueFrom?.fieldRef?.fieldPath)).toEqual([
    "metadata.labels['corelane.dev/renderservice']",
    'metadata.namespace',
  ]);
});

test('ETags are made unless they are not wanted', () => {
  expect(value(env({}, []), 'CORELANE_ETAG')).toEqual(['Auto']);
  expect(value(env({ cache: { etag: 'Never' } }, []), 'CORELANE_ETAG')).toEqual([]);
});

describe('NODE_OPTIONS', () => {
  test('is set where the user has none', () => expect(value(env({}, []), 'NODE_OPTIONS')).toEqual([ENTRY]));

  test("keeps the user's value behind it", () => {
    const own = [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=300' }];
    expect(value(env({}, own), 'NODE_OPTIONS')).toEqual([`${ENTRY} --max-old-space-size=300`]);
  });

  test('keeps a value that comes from a ConfigMap, which must stand before its use', () => {
    const valueFrom = { configMapKeyRef: { name: 'flags', key: 'node' } };
    const list = env({}, [{ name: 'NODE_OPTIONS', valueFrom }]);
    const at = list.findIndex(({ name }) => name === 'CORELANE_USER_NODE_OPTIONS');
    expect(list[at]).toEqual({ name: 'CORELANE_USER_NODE_OPTIONS', valueFrom });
    expect(list.findIndex(({ name }) => name === 'NODE_OPTIONS')).toBeGreaterThan(at);
    expect(value(list, 'NODE_OPTIONS')).toEqual([`${ENTRY} $(CORELANE_USER_NODE_OPTIONS)`]);
  });

  test('has no value whose key is optional: an unresolved reference would keep Node.js from starting', () => {
    const valueFrom = { secretKeyRef: { name: 'a', key: 'b', optional: true } };
    const list = env({}, [{ name: 'NODE_OPTIONS', valueFrom }]);
    expect(list).toContainEqual({ name: 'CORELANE_USER_NODE_OPTIONS', valueFrom });
    expect(value(list, 'NODE_OPTIONS')).toEqual([ENTRY]);
  });

  test('of envFrom is kept for the supervisor, unless the user has one of his own', () => {
    const envFrom = [{ configMapRef: { name: 'settings' } }];
    const kept = (own: V1EnvVar[]) => {
      const list = podSpec({}, { env: own, envFrom }).containers[0]?.env ?? [];
      const names = list.map(({ name }) => name).filter((name) => name.endsWith('NODE_OPTIONS'));
      return [names, ...value(list, 'CORELANE_USER_NODE_OPTIONS')];
    };
    // In this order: kubelet resolves it by what comes before.
    expect(kept([])).toEqual([['CORELANE_USER_NODE_OPTIONS', 'NODE_OPTIONS'], '$(NODE_OPTIONS)']);
    expect(kept([{ name: 'NODE_OPTIONS', value: '' }])).toEqual([['NODE_OPTIONS']]);
    expect(value(env({}, []), 'CORELANE_USER_NODE_OPTIONS')).toEqual([]);
  });
});

test('Node.js takes heads as the proxies do, and flags of the user come later', () => {
  const flags = (input: Partial<RenderServiceSpecInput>) => value(env(input, []), 'CORELANE_NODE_FLAGS');
  expect(flags({})).toEqual(['--max-http-header-size=69632']);
  expect(flags({ buffering: { maxHeaderSize: '16Ki' } })).toEqual(['--max-http-header-size=20480']);
  const own = '--max-http-header-size=9000';
  expect(flags({ runtime: { nodeFlags: [own] } })).toEqual([`--max-http-header-size=69632 ${own}`]);
});

test("variables named CORELANE_... are not the user's", () => {
  expect(value(env({}, [{ name: 'CORELANE_RUNTIME_PORT', value: '1' }]), 'CORELANE_RUNTIME_PORT')).toEqual(['9102']);
});

test('runtime.instrument: false leaves nothing of it but the hook', () => {
  const pod = podSpec({ runtime: { instrument: false } }, { env: [{ name: 'NODE_OPTIONS', value: '--title=a' }] });
  expect(pod.initContainers?.map(({ name }) => name)).toEqual(['corelane-runtime', 'haproxy', 'nginx']);
  expect(pod.containers[0]?.volumeMounts?.map(({ name }) => name)).toEqual(['corelane-runtime', 'corelane-drain']);
  expect(value(pod.containers[0]?.env ?? [], 'NODE_OPTIONS')).toEqual(['--title=a']);
  expect(JSON.stringify(pod.containers)).not.toMatch(/CORELANE_(?!DEPLOYMENT_ID)/);
});

test.each([
  [{}, 10_000],
  [{ watchdog: { stallTimeout: '1s' } }, 1_000],
  [{ timeouts: { render: '5s' } }, 5_000],
  [{ timeouts: { render: '100ms' } }, 500],
])('stall time-out of %j is %i ms', (input: Partial<RenderServiceSpecInput>, expected) => {
  const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
  expect(stallTimeoutMs(renderServiceSpec.parse({ template, ...input }))).toBe(expected);
  expect(value(env(input, []), 'CORELANE_STALL_TIMEOUT_MS')).toEqual([String(expected)]);
});

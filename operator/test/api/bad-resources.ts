/**
 * RenderServices that must be refused, and some that must not. docs/bad-resources.md is made from the first table
 * (UPDATE_GOLDEN=1): it shows a user, and whoever writes a message, what each mistake looks like.
 */
import type { Json } from '../support/api-client.ts';
import { podTemplate } from '../support/world.ts';

export interface BadResource {
  /** What is wrong, as the documentation's table says it. */
  what: string;
  spec?: Json;
  name?: string;
  /** The mistake is in a part of the pod template that only the API server knows. */
  apiServerOnly?: boolean;
}

const container = (fields: object) => ({ template: podTemplate(fields) });
const pod = (fields: object) => ({ template: podTemplate({}, fields) });
const podMetadata = (metadata: object) => ({ template: { ...podTemplate(), metadata } });
const worker = { name: 'worker', image: 'app:1' };
const scaling = (fields: object) => ({ scaling: { maxReplicas: 10, ...fields } });
const steps = (...pairs: [abovePercent: number, addReplicas: number][]) =>
  scaling({ cpu: { scaleUp: { steps: pairs.map(([abovePercent, addReplicas]) => ({ abovePercent, addReplicas })) } } });
const monitoring = (peer: object) => ({ networkPolicy: { monitoring: [peer] } });
const ingress = (rule: object) => ({ networkPolicy: { ingress: [rule] } });
const classes = (...fields: object[]) => ({
  priority: { classes: fields.map((one) => ({ name: 'robot', match: [{ visitor: 'Crawler' }], ...one })) },
});
/** Of requests that are no renders. */
const served = (...fields: object[]) => ({
  classes: fields.map((one) => ({ name: 'api', match: [{ pathPrefix: '/api/' }], ...one })),
});
const asset = (fields: object, spec: object = {}) => ({
  ...spec,
  assets: [{ path: '/_next/static/', from: '/app/.next/static', ...fields }],
});
const cache = (fields: object) => ({ cache: { enabled: true, ...fields } });
const ttl = (...pairs: [pathPrefix: string, value: string][]) => ({
  ttl: pairs.map(([pathPrefix, value]) => ({ pathPrefix, value })),
});
const MUCH_MEMORY = { sidecar: { nginx: { memoryLimit: '64Gi' } } };
const LATENCY = { p50: '1ms', p90: '250ms', p95: '400ms', p99: '30s' };
const imageVolume = { sidecar: { assets: { source: 'ImageVolume' } } };
const canary = (fields: object, spec: object = {}) => ({
  ...spec,
  rollout: { canary: { steps: [{ share: 5, for: '5m' }], ...fields } },
});
const sticky = (cookie: string, spec: object = {}) => ({ ...spec, rollout: { stickiness: { cookie } } });
const calling = (id: string) => ({
  template: {
    metadata: { annotations: { 'corelane.dev/deployment-id': id } },
    spec: { containers: [{ name: 'worker', image: 'example/app:1' }] },
  },
});
const canarySteps = (...steps: object[]) => canary({ steps });
const mounts = (volume: string) => ({ volumeMounts: [{ name: volume, mountPath: '/mine' }] });
const twoContainers = (one: object, other: object) => pod({ containers: [one, other] });

export const badResources: BadResource[] = [
  // The resource
  { what: 'name with a dot', name: 'shop.example' },
  { what: 'name that begins with a digit', name: '1shop' },
  { what: 'name longer than 50 characters', name: 'a'.repeat(51) },
  { what: 'no template', spec: { template: undefined } },
  { what: 'empty template', spec: { template: {} } },

  // Typing mistakes
  { what: 'misspelt field of the spec', spec: { workerPerPod: 4 } },
  { what: 'misspelt field in a section', spec: { queue: { maxLenght: 10 } } },
  { what: 'field on the wrong level', spec: { maxLength: 10 } },
  { what: 'misspelt field two levels down', spec: { buffering: { request: { maxsize: '1Mi' } } } },
  { what: 'misspelt field of a container', spec: container({ imagePullpolicy: 'Always' }), apiServerOnly: true },
  {
    what: 'misspelt field deep in the template',
    spec: container({ resources: { request: { cpu: '1' } } }),
    apiServerOnly: true,
  },
  {
    what: 'probe on the wrong level',
    spec: { template: { ...podTemplate(), livenessProbe: {} } },
    apiServerOnly: true,
  },

  // Numbers
  { what: 'no worker', spec: { workersPerPod: 0 } },
  { what: 'too many workers', spec: { workersPerPod: 65 } },
  { what: 'workers as text', spec: { workersPerPod: '4' } },
  { what: 'half a worker', spec: { workersPerPod: 1.5 } },
  { what: 'negative replicas', spec: { replicas: -1 } },
  { what: 'replicas beyond every cluster', spec: { replicas: 2_147_483_648 } },
  { what: 'replicas beyond every number', spec: { replicas: 1e30 } },
  { what: 'concurrency 0', spec: { concurrency: 0 } },
  { what: 'concurrency of another word', spec: { concurrency: 'auto' } },
  { what: 'range of a concurrency that is fixed', spec: { concurrency: 2, concurrencyRange: { max: 4 } } },
  {
    what: 'range of a framework whose WebSockets keep it from Auto',
    spec: { framework: 'Next', webSockets: { enabled: true }, concurrencyRange: { max: 4 } },
  },
  { what: 'range upside down', spec: { concurrency: 'Auto', concurrencyRange: { min: 5, max: 4 } } },
  { what: 'range beyond what is measured', spec: { concurrency: 'Auto', concurrencyRange: { max: 65 } } },
  { what: 'Auto without who measures', spec: { concurrency: 'Auto', runtime: { instrument: false } } },
  { what: 'Auto that fills the first worker', spec: { concurrency: 'Auto', balance: 'first' } },
  { what: 'Auto with WebSockets', spec: { concurrency: 'Auto', webSockets: { enabled: true } } },
  { what: 'queue too long', spec: { queue: { maxLength: 10_001 } } },
  { what: 'negative queue', spec: { queue: { maxLength: -1 } } },
  { what: 'Service port 0', spec: { service: { port: 0 } } },
  { what: 'Service port above 65535', spec: { service: { port: 70_000 } } },
  { what: 'deadline too short', spec: { rollout: { rolling: { progressDeadlineSeconds: 5 } } } },

  // Durations
  { what: 'duration without a unit', spec: { queue: { timeout: '10' } } },
  { what: 'duration as number', spec: { queue: { timeout: 10 } } },
  { what: 'duration with a unit that is none', spec: { queue: { timeout: '10d' } } },
  { what: 'duration too short', spec: { timeouts: { render: '1ms' } } },
  { what: 'duration too long', spec: { timeouts: { render: '2h' } } },
  { what: 'handler without an end', spec: { timeouts: { handler: '24h' } } },
  { what: 'duration in two parts', spec: { timeouts: { clientBody: '1m30s' } } },
  { what: 'negative duration', spec: { drain: { delay: '-1s' } } },

  // Sizes and quantities
  { what: 'size in decimal units', spec: { buffering: { request: { maxSize: '10MB' } } } },
  { what: 'size without a unit', spec: { buffering: { response: { memory: '1048576' } } } },
  { what: 'address without a mask', spec: { forwarded: { trust: ['10.0.0.1'] } } },
  { what: 'range that is none', spec: { forwarded: { trust: ['10.0.0.0/33'] } } },
  { what: 'size too small', spec: { buffering: { request: { memory: '1Ki' } } } },
  { what: 'size too large', spec: { buffering: { response: { maxFileSize: '11Gi' } } } },
  { what: 'quantity of a proxy in words', spec: { sidecar: { nginx: { cpu: 'half' } } } },
  { what: 'quantity of a proxy below nothing', spec: { sidecar: { nginx: { memory: '-1Mi' } } } },
  { what: 'quantity in a unit that is none', spec: { sidecar: { nginx: { memory: '64K' } } } },
  { what: 'memory request of HAProxy above its limit', spec: { sidecar: { haproxy: { memory: '512Mi' } } } },
  {
    what: 'memory limit of nginx below its request',
    spec: { sidecar: { nginx: { memory: '128Mi', memoryLimit: '96Mi' } } },
  },
  { what: 'CPU limit of HAProxy below its request', spec: { sidecar: { haproxy: { cpuLimit: '49m' } } } },
  { what: 'CPU limit of nginx below its request', spec: { sidecar: { nginx: { cpu: '2', cpuLimit: '1' } } } },
  { what: 'CPU limit of a proxy in words', spec: { sidecar: { nginx: { cpuLimit: 'none' } } } },
  { what: 'memory limit in which nginx cannot work', spec: { sidecar: { nginx: { memoryLimit: '63Mi' } } } },
  { what: 'memory limit in which HAProxy cannot work', spec: { sidecar: { haproxy: { memoryLimit: '79Mi' } } } },
  {
    what: 'disk that the log of nginx fills',
    spec: { buffering: { request: { maxSize: '1Mi' } }, sidecar: { nginx: { ephemeralStorageLimit: '63Mi' } } },
  },
  {
    what: 'disk on which no body fits',
    spec: { buffering: { request: { maxSize: '9Mi' } }, sidecar: { nginx: { ephemeralStorageLimit: '71Mi' } } },
  },

  // Choices
  { what: 'unknown balance', spec: { balance: 'random' } },
  { what: 'unknown replay', spec: { replay: 'safe' } },
  { what: 'exception from replay for a full URL', spec: { replayExcept: ['https://shop.example/order'] } },
  { what: 'exception from replay for a pattern', spec: { replayExcept: ['/order/*'] } },
  { what: 'streaming: Off, which YAML takes for false', spec: { streaming: false } },
  { what: 'fallback without a page', spec: { fallback: { status: 200 } } },
  { what: 'two pages', spec: { fallback: { html: '<p>', configMap: { name: 'shell' } } } },
  { what: 'page that is no text', spec: { fallback: { html: '<p>\0' } } },
  { what: 'page larger than 32 KiB', spec: { fallback: { html: 'a'.repeat(32_769) } } },
  { what: 'page as a redirect', spec: { fallback: { html: '<p>', status: 302 } } },
  { what: 'page for a full URL', spec: { fallback: { html: '<p>', paths: ['https://shop.example/'] } } },
  { what: 'page for a pattern', spec: { fallback: { html: '<p>', paths: ['/shop/*'] } } },
  { what: 'page for a path that says more', spec: { fallback: { html: '<p>', paths: ['/a" 1; } map $a $b {'] } } },
  { what: 'page for no path', spec: { fallback: { html: '<p>', paths: [] } } },
  { what: 'ConfigMap of another namespace', spec: { fallback: { configMap: { name: 'other/shell' } } } },
  { what: 'key that is a path', spec: { fallback: { configMap: { name: 'shell', key: '../index.html' } } } },
  { what: 'class without a match', spec: classes({ match: [] }) },
  { what: 'match that says nothing', spec: classes({ match: [{}] }) },
  { what: 'unknown visitor', spec: classes({ match: [{ visitor: 'Robot' }] }) },
  { what: 'class whose name is no name', spec: classes({ name: 'Crawler 1' }) },
  { what: 'two classes of one name', spec: classes({}, {}) },
  { what: 'header that is none', spec: classes({ match: [{ header: { name: 'X_Job' } }] }) },
  {
    what: 'value of a header that is a pattern',
    spec: classes({ match: [{ header: { name: 'X-Job', value: 'a.*' } }] }),
  },
  { what: 'cookie with its value', spec: classes({ match: [{ cookie: 'robot=1' }] }) },
  { what: 'two words of a User-Agent', spec: classes({ match: [{ userAgent: 'Some Robot' }] }) },
  { what: 'class of a pattern', spec: classes({ match: [{ pathPrefix: '/shop/*' }] }) },
  { what: 'class that goes before others', spec: classes({ delay: '-1s' }) },
  { what: 'share beyond the queue', spec: classes({ maxQueue: '101%' }) },
  { what: 'class of all paths', spec: served({ match: [{ pathPrefix: '/' }] }) },
  { what: 'class by a header alone', spec: served({ match: [{ header: { name: 'X-Api' } }] }) },
  { what: 'class by two paths at once', spec: served({ match: [{ pathPrefix: '/api/', path: '/x' }] }) },
  { what: 'class by a path and its end', spec: served({ match: [{ path: '/x', pathSuffix: '.data' }] }) },
  { what: 'class of all folders', spec: served({ match: [{ pathSuffix: '/' }] }) },
  { what: 'class of the end of a path with two parts', spec: served({ match: [{ pathSuffix: '/a/b' }] }) },
  { what: 'class of a pattern at the end', spec: served({ match: [{ pathSuffix: '/*.json' }] }) },
  { what: 'class of an encoded path', spec: served({ match: [{ path: '/a%20b' }] }) },
  { what: 'class of a method that is none', spec: served({ match: [{ path: '/x', method: 'get' }] }) },
  { what: 'two classes of requests of one name', spec: served({}, {}) },
  { what: 'class without a place', spec: served({ concurrency: 0 }) },
  { what: 'class that is silent for ever', spec: served({ timeouts: { idle: '2h' } }) },
  {
    what: 'more requests than a worker keeps an account of',
    spec: { ...served({ concurrency: 1000 }), ...MUCH_MEMORY },
  },
  { what: 'classes that nginx has no memory for', spec: served({ concurrency: 101 }) },
  { what: 'order that HAProxy cannot keep', spec: { queue: { timeout: '10m' }, ...classes({}) } },
  { what: 'header of a deadline that is none', spec: { deadlines: { header: 'X_Timeout' } } },
  { what: 'deadline for all', spec: { deadlines: { timeout: '1s' } } },
  { what: 'unknown type of Service', spec: { service: { type: 'Ingress' } } },
  { what: 'unknown policy of a Service', spec: { service: { type: 'NodePort', externalTrafficPolicy: 'local' } } },
  { what: 'yes instead of true', spec: { disruptionBudget: { enabled: 'yes' } } },
  { what: 'percentage above 100', spec: { rollout: { rolling: { maxSurge: '150%' } } } },
  { what: 'percentage without the sign', spec: { disruptionBudget: { maxUnavailable: '50' } } },
  { what: 'count of pods that is no count', spec: { disruptionBudget: { maxUnavailable: -1 } } },

  // Text that must not reach a proxy's configuration
  { what: 'path with a semicolon', spec: { ping: { path: '/ping;return 500' } } },
  { what: 'path with a new line', spec: { ping: { path: '/ping\nlocation / {}' } } },
  { what: 'path without a slash', spec: { ping: { path: 'ping' } } },
  { what: 'path with an empty part', spec: { ping: { path: '//ping' } } },
  { what: 'path that climbs', spec: { ping: { path: '/health/../ping' } } },
  { what: 'path that is all of the site', spec: { ping: { path: '/' } } },

  // Assets
  { what: 'framework that is none', spec: { framework: 'Rails' } },
  { what: 'base path without a framework', spec: { basePath: '/shop' } },
  { what: 'base path that ends with a slash', spec: { framework: 'Next', basePath: '/shop/' } },
  { what: 'base path that climbs', spec: { framework: 'Next', basePath: '/..' } },
  { what: 'base path with a new line', spec: { framework: 'Next', basePath: '/a\nlocation / {}' } },
  { what: 'path of assets that does not end', spec: asset({ path: '/_next/static' }) },
  { what: 'path of assets without a beginning', spec: asset({ path: '_next/static/' }) },
  { what: 'path of assets with a new line', spec: asset({ path: '/a/\nlocation / {}/' }) },
  { what: 'path of assets that climbs', spec: asset({ path: '/_next/../' }) },
  { what: 'folder of assets that climbs', spec: asset({ from: '/app/../etc' }) },
  { what: 'folder of assets that is the whole image', spec: asset({ from: '/' }) },
  { what: 'folder of assets with two parts of any name', spec: asset({ from: 'dist/*/*' }) },
  { what: 'more folders of assets than anybody has', spec: { assets: Array(17).fill({ path: '/a/', from: 'a' }) } },
  { what: 'two folders for one path', spec: { assets: Array(2).fill({ path: '/a/', from: 'a' }) } },
  { what: 'ping among the assets', spec: asset({}, { ping: { path: '/_next/static/ping' } }) },
  { what: 'assets for ever, and for an hour', spec: asset({ immutable: true, maxAge: '1h' }) },
  { what: 'exception from nothing', spec: asset({ mutable: ['/_next/static/a.json'] }) },
  { what: 'exception elsewhere', spec: asset({ immutable: true, mutable: ['/a.json'] }) },
  { what: 'header of assets with a quote', spec: asset({ headers: { 'X-A': '"; return 200' } }) },
  { what: 'header of assets that nginx makes', spec: asset({ headers: { 'content-Type': 'text/css' } }) },
  { what: 'header of assets that is none', spec: asset({ headers: { 'X A': 'b' } }) },
  { what: 'answer to missing assets that is none', spec: asset({ missing: '404' }) },
  { what: 'room for assets that is none', spec: { sidecar: { assets: { sizeLimit: '0' } } } },
  { what: 'folder in an image whose WORKDIR nobody says', spec: asset({ from: '.next/static' }, imageVolume) },
  { what: 'part of any name in a mounted image', spec: asset({ from: '/app/dist/*' }, imageVolume) },
  { what: 'framework in an image whose WORKDIR nobody says', spec: { framework: 'Next', ...imageVolume } },

  // The cache
  { what: 'page that is kept for less than a second', spec: cache(ttl(['/shop', '500ms'])) },
  { what: 'page that is kept for more than a day', spec: cache(ttl(['/shop', '25h'])) },
  { what: 'two times for one path', spec: cache(ttl(['/shop', '10s'], ['/shop/', '1m'])) },
  {
    what: 'time for a path that the cache is not for',
    spec: cache({ paths: ['/shop/'], ...ttl(['/shopping', '10s']) }),
  },
  { what: 'time for a pattern', spec: cache(ttl(['/shop/*', '10s'])) },
  { what: 'pages that are kept for no time', spec: cache({ maxTtl: '0s' }) },
  { what: 'cache of no path', spec: cache({ paths: [] }) },
  { what: 'stale page for less than a second', spec: cache({ staleWhileRevalidate: '500ms' }) },
  { what: 'stale page for less than a second where a render fails', spec: cache({ staleIfError: '999ms' }) },
  { what: 'parameters that count where all do', spec: cache({ key: { query: { names: ['utm_source'] } } }) },
  { what: 'parameter with its value', spec: cache({ key: { query: { mode: 'Except', names: ['page=1'] } } }) },
  { what: 'unknown mode of a query', spec: cache({ key: { query: { mode: 'None' } } }) },
  { what: 'cookie of a key with its value', spec: cache({ key: { cookies: ['lang=de'] } }) },
  { what: 'header of a key that is none', spec: cache({ key: { headers: ['X_Market'] } }) },
  { what: 'header of a key that does not reach a worker', spec: cache({ key: { headers: ['Cookie'] } }) },
  { what: 'cookie of a session with its value', spec: cache({ bypass: { cookies: ['session=1'] } }) },
  { what: 'header of a request for itself that is none', spec: cache({ bypass: { headers: ['X Preview'] } }) },
  { what: 'path of a request for itself that is a pattern', spec: cache({ bypass: { paths: ['/account/*'] } }) },
  { what: 'cache that holds no page', spec: cache({ maxSize: '1Mi' }) },
  { what: 'cache beyond every disk', spec: cache({ maxSize: '65Gi' }) },
  {
    what: 'cache for which nginx has no memory',
    spec: { ...cache({}), sidecar: { nginx: { memoryLimit: '128Mi' } } },
  },
  { what: 'ETags as a switch', spec: { cache: { etag: false } } },

  // Rules between fields
  { what: 'drain shorter than a render', spec: { drain: { timeout: '10s' } } },
  { what: 'drain shorter than a wait and a render', spec: { drain: { timeout: '39999ms' } } },
  {
    what: 'more of a body in memory than is accepted',
    spec: { buffering: { request: { memory: '16Mi', maxSize: '1Mi' } } },
  },
  { what: 'pages of other pods without pooling', spec: { cache: { shared: 'Peers' }, pooling: { enabled: false } } },
  { what: 'rollout that cannot begin', spec: { rollout: { rolling: { maxSurge: 0, maxUnavailable: '0%' } } } },

  // Canary
  { what: 'canary without steps', spec: canarySteps() },
  { what: 'step without a share', spec: canarySteps({ for: '5m' }) },
  { what: 'share of nothing', spec: canarySteps({ share: 0, for: '5m' }) },
  { what: 'share of everything', spec: canarySteps({ share: 100, for: '5m' }) },
  { what: 'share with three decimals', spec: canarySteps({ share: 0.125, for: '5m' }) },
  { what: 'share with a sign', spec: canarySteps({ share: '5%', for: '5m' }) },
  { what: 'shares that fall', spec: canarySteps({ share: 25, for: '5m' }, { share: 5, for: '5m' }) },
  { what: 'the same share twice', spec: canarySteps({ share: 5, for: '5m' }, { share: 5, for: '10m' }) },
  { what: 'step that neither lasts nor waits', spec: canarySteps({ share: 5, for: '5m' }, { share: 25 }) },
  { what: 'step longer than a week', spec: canarySteps({ share: 5, for: '169h' }) },
  {
    what: 'too many steps',
    spec: canarySteps(...Array.from({ length: 21 }, (_unused, index) => ({ share: index + 1, for: '1m' }))),
  },
  { what: 'canary without a pod', spec: canary({ minReplicas: 0 }) },
  { what: 'match by nothing', spec: canary({ match: [{ value: 'always' }] }) },
  { what: 'match by two things', spec: canary({ match: [{ header: 'X-Canary', cookie: 'canary', value: 'always' }] }) },
  { what: 'match without a value', spec: canary({ match: [{ header: 'X-Canary' }] }) },
  { what: 'match of a header that is none', spec: canary({ match: [{ header: 'X Canary', value: 'always' }] }) },
  { what: 'match of a cookie that is none', spec: canary({ match: [{ cookie: 'a;b', value: 'always' }] }) },
  { what: 'match of a parameter that is none', spec: canary({ match: [{ query: 'a=b', value: 'always' }] }) },
  { what: 'match of a value with a quote', spec: canary({ match: [{ query: 'canary', value: '"' }] }) },
  {
    what: 'too many matches',
    spec: canary({ match: Array.from({ length: 9 }, () => ({ query: 'canary', value: 'always' })) }),
  },
  { what: 'judgement of fewer than no requests', spec: canary({ analysis: { minRequests: -1 } }) },
  {
    what: 'judgement that tolerates fewer errors than the other side has',
    spec: canary({ analysis: { errors: { ratio: 0.5 } } }),
  },
  { what: 'judgement above all requests', spec: canary({ analysis: { errors: { floorPercent: 101 } } }) },
  { what: 'judgement with three decimals', spec: canary({ analysis: { errors: { ratio: 1.125 } } }) },
  { what: 'slow renders that are quicker than usual', spec: canary({ analysis: { latency: { slowerThan: 0.9 } } }) },
  { what: 'judgement that waits without an end', spec: canary({ analysis: { maxWait: '169h' } }) },
  { what: 'judgement that comes to something else', spec: canary({ analysis: { onFailure: 'Rollback' } }) },
  { what: 'key of nothing', spec: canary({ key: {} }) },
  { what: 'key of two things', spec: canary({ key: { header: 'X-User', cookie: 'user' } }) },
  { what: 'canary of pods that do not share their work', spec: canary({}, { pooling: { enabled: false } }) },
  { what: 'canary with the cache', spec: canary({}, { cache: { enabled: true } }) },
  { what: 'canary with WebSockets', spec: canary({}, { webSockets: { enabled: true } }) },
  { what: 'cookie that is none', spec: sticky('Sometimes') },
  {
    what: 'people who stay at a revision of pods that do not share their work',
    spec: sticky('Always', { pooling: { enabled: false } }),
  },
  { what: 'people who stay at a revision, with the cache', spec: sticky('Always', { cache: { enabled: true } }) },
  { what: 'empty id of a deployment', spec: calling('') },
  { what: 'id of a deployment with a blank', spec: calling('version 2') },
  { what: 'id of a deployment that is too long', spec: calling('x'.repeat(65)) },

  // Scaling
  { what: 'scaling without a maximum', spec: { scaling: { minReplicas: 2 } } },
  { what: 'minimum above the maximum', spec: { scaling: { minReplicas: 5, maxReplicas: 4 } } },
  { what: 'minimum 0', spec: scaling({ minReplicas: 0 }) },
  { what: 'misspelt field of scaling', spec: scaling({ cpu: { scaleUp: { above: 20 } } }) },
  { what: 'thresholds in the wrong order', spec: scaling({ cpu: { scaleDown: { belowPercent: 30 } } }) },
  { what: 'thresholds that touch', spec: scaling({ occupancy: { scaleDown: { belowPercent: 60 } } }) },
  { what: 'threshold 0', spec: scaling({ cpu: { scaleUp: { abovePercent: 0 } } }) },
  { what: 'occupancy above 100 %', spec: scaling({ occupancy: { scaleUp: { abovePercent: 101 } } }) },
  { what: 'two signals', spec: scaling({ cpu: {}, occupancy: {} }) },
  { what: 'statistic that is none', spec: scaling({ cpu: { statistic: 'p99' } }) },
  { what: 'window shorter than a reading', spec: scaling({ cpu: { scaleUp: { window: '5s' } } }) },
  { what: 'cooldown without a unit', spec: scaling({ cpu: { scaleDown: { cooldown: '60' } } }) },
  { what: 'step that adds nothing', spec: scaling({ queue: { addReplicas: 0 } }) },
  { what: 'two steps at one threshold', spec: steps([50, 10], [50, 12]) },
  { what: 'step below the first one', spec: steps([10, 10]) },
  { what: 'higher step that adds fewer pods', spec: steps([50, 10], [80, 8]) },
  { what: 'higher step that adds as many as the first', spec: steps([50, 3]) },
  {
    what: 'overlapping steps of occupancy',
    spec: scaling({ occupancy: { scaleUp: { steps: [{ abovePercent: 60, addReplicas: 10 }] } } }),
  },

  // Traces
  { what: 'a sampling beyond all', spec: { tracing: { samplingPercent: 100.5 } } },
  { what: 'a sampling below none', spec: { tracing: { samplingPercent: -1 } } },
  { what: 'a sampling with three decimals', spec: { tracing: { samplingPercent: 0.001 } } },
  { what: 'a sampling with a sign', spec: { tracing: { samplingPercent: '10%' } } },
  { what: 'spans to no URL', spec: { tracing: { endpoint: 'collector:4317' } } },
  { what: 'spans to a URL with a key in it', spec: { tracing: { endpoint: 'https://otlp.example/?key=secret' } } },
  { what: 'spans to a URL with a user', spec: { tracing: { endpoint: 'https://me:secret@otlp.example' } } },
  {
    what: 'spans without the worker runtime',
    spec: { tracing: { endpoint: 'http://collector:4318' }, runtime: { instrument: false } },
  },
  { what: 'headers for nobody', spec: { tracing: { headersFrom: { name: 'honeycomb' } } } },
  {
    what: 'a Secret of no name',
    spec: { tracing: { endpoint: 'http://collector:4318', headersFrom: { name: 'Honey Comb' } } },
  },
  {
    what: 'a header in plain text',
    spec: { tracing: { endpoint: 'http://collector:4318', headers: { 'x-honeycomb-team': 'secret' } } },
  },
  { what: 'a part of tracing that there is not', spec: { tracing: { sampler: 'always' } } },

  // Objectives
  { what: 'availability as a ratio', spec: { objectives: { availability: 0.999 } } },
  { what: 'availability that nobody can keep', spec: { objectives: { availability: 100 } } },
  { what: 'availability with five decimals', spec: { objectives: { availability: 99.99999 } } },
  { what: 'availability with a sign', spec: { objectives: { availability: '99.9%' } } },
  { what: 'a quantile that there is not', spec: { objectives: { latency: { p75: '200ms' } } } },
  { what: 'a latency without a unit', spec: { objectives: { latency: { p99: '500' } } } },
  { what: 'a latency beyond the last bucket', spec: { objectives: { latency: { p99: '31s' } } } },
  {
    what: 'a p95 that is longer than the p99',
    spec: { objectives: { latency: { p50: '100ms', p95: '1s', p99: '900ms' } } },
  },

  // Who may come in
  { what: 'peer that is nobody', spec: monitoring({}) },
  { what: 'peer with addresses and pods', spec: monitoring({ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }) },
  { what: 'misspelt selector of a peer', spec: monitoring({ namespace: 'monitoring' }) },
  { what: 'addresses without a length', spec: monitoring({ ipBlock: { cidr: '10.0.0.1' } }) },
  { what: 'label value that is none', spec: monitoring({ podSelector: { matchLabels: { app: 'a b' } } }) },
  {
    what: 'condition on a label without values',
    spec: monitoring({ podSelector: { matchExpressions: [{ key: 'app', operator: 'In' }] } }),
  },
  { what: 'port beyond every port', spec: ingress({ ports: [{ port: 70_000 }] }) },
  { what: 'range of ports that ends before it begins', spec: ingress({ ports: [{ port: 80, endPort: 79 }] }) },

  // The pod template
  { what: 'no container', spec: pod({ containers: [] }) },
  { what: 'container without an image', spec: container({ image: undefined }), apiServerOnly: true },
  { what: 'container without a name', spec: container({ name: undefined }), apiServerOnly: true },
  {
    what: 'two containers, none named worker',
    spec: twoContainers({ ...worker, name: 'app' }, { ...worker, name: 'log' }),
  },
  { what: 'two containers of one name', spec: twoContainers(worker, worker), apiServerOnly: true },
  { what: "container with a proxy's name", spec: twoContainers(worker, { ...worker, name: 'nginx' }) },
  { what: "container with a worker's name", spec: twoContainers(worker, { ...worker, name: 'worker-3' }) },
  { what: "init container with a proxy's name", spec: pod({ initContainers: [{ ...worker, name: 'haproxy' }] }) },
  { what: 'readiness probe on the worker', spec: container({ readinessProbe: { tcpSocket: { port: 1 } } }) },
  { what: 'liveness probe on the worker', spec: container({ livenessProbe: { tcpSocket: { port: 1 } } }) },
  { what: 'startup probe on the worker', spec: container({ startupProbe: { tcpSocket: { port: 1 } } }) },
  { what: 'hook on the worker', spec: container({ lifecycle: { preStop: { exec: { command: ['true'] } } } }) },
  { what: 'host port on the worker', spec: container({ ports: [{ containerPort: 3000, hostPort: 80 }] }) },
  {
    what: "second container on a proxy's port",
    spec: twoContainers(worker, { name: 'log', image: 'log:1', ports: [{ containerPort: 9000 }] }),
  },
  { what: 'host network', spec: pod({ hostNetwork: true }) },
  { what: 'pods that do not restart', spec: pod({ restartPolicy: 'Never' }) },
  { what: "volume with Corelane's prefix", spec: pod({ volumes: [{ name: 'corelane-mine', emptyDir: {} }] }) },
  { what: 'worker that mounts the key of the peers', spec: container(mounts('corelane-peers-key')) },
  {
    what: 'second container that mounts the sockets of the proxies',
    spec: twoContainers(worker, { name: 'log', image: 'log:1', ...mounts('corelane-run') }),
  },
  {
    what: 'init container that mounts the worker runtime',
    spec: pod({ initContainers: [{ name: 'init', image: 'init:1', ...mounts('corelane-runtime') }] }),
  },
  {
    what: "mount where Corelane's runtime is",
    spec: container({ volumeMounts: [{ name: 'own', mountPath: '/corelane' }] }),
  },
  {
    what: "mount where Corelane's hook is, in a second container",
    spec: twoContainers(worker, {
      name: 'log',
      image: 'log:1',
      volumeMounts: [{ name: 'own', mountPath: '/corelane-drain' }],
    }),
  },
  {
    what: "init container with the runtime's name",
    spec: pod({ initContainers: [{ name: 'corelane-runtime', image: 'a:1' }] }),
  },
  { what: 'stall time-out too short', spec: { watchdog: { stallTimeout: '499ms' } } },
  { what: 'stall time-out without a unit', spec: { watchdog: { stallTimeout: '10' } } },
  { what: 'WebSockets as a switch', spec: { webSockets: true } },
  { what: 'more WebSockets than places', spec: { webSockets: { enabled: true, maxPerWorker: 2 } } },
  {
    what: 'an age of WebSockets that nobody sees to',
    spec: { webSockets: { maxAge: '1h' }, runtime: { instrument: false } },
  },
  { what: 'a client that may have nothing', spec: { limits: { perClient: { requests: 0 } } } },
  { what: 'stall time-out of a render', spec: { watchdog: { stallTimeout: '30s' } } },
  { what: 'flag of Node.js with a blank', spec: { runtime: { nodeFlags: ['--require /tmp/x.js'] } } },
  { what: 'flag of Node.js without dashes', spec: { runtime: { nodeFlags: ['max-old-space-size=1'] } } },
  { what: 'no thread', spec: { runtime: { threadPoolSize: 0 } } },
  { what: 'recycling after no request', spec: { runtime: { recycle: { requests: 0 } } } },
  { what: 'recycling at a memory without a unit', spec: { runtime: { recycle: { memory: '400' } } } },
  { what: 'recycling too often', spec: { runtime: { recycle: { age: '10s' } } } },
  { what: 'warm-up without a path', spec: { warmup: { path: 'page', requests: 3 } } },
  { what: 'too much warm-up', spec: { warmup: { requests: 1001 } } },
  { what: 'instrument as text', spec: { runtime: { instrument: 'no' } } },
  { what: 'traffic from outside for a Service that has none', spec: { service: { externalTrafficPolicy: 'Local' } } },
  {
    what: 'class of a load balancer for a Service without one',
    spec: { service: { type: 'NodePort', loadBalancerClass: 'example.com/nlb' } },
  },
  {
    what: 'source ranges of a load balancer for a Service without one',
    spec: { service: { loadBalancerSourceRanges: ['10.0.0.0/8'] } },
  },
  {
    what: 'source range that is an address',
    spec: { service: { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.1'] } },
  },
  {
    what: 'class of a load balancer with a blank',
    spec: { service: { type: 'LoadBalancer', loadBalancerClass: 'my nlb' } },
  },
  { what: 'protocol that the pods do not speak', spec: { service: { appProtocol: 'kubernetes.io/h2c' } } },
  { what: 'protocol of Istio that the pods do not speak', spec: { service: { appProtocol: 'http2' } } },
  { what: 'protocol that is a URL', spec: { service: { appProtocol: 'http://' } } },
  { what: 'label of the Service that is none', spec: { service: { labels: { team: 'web shop' } } } },
  {
    what: 'label of the Service that Corelane sets',
    spec: { service: { labels: { 'corelane.dev/renderservice': 'b' } } },
  },
  { what: 'family of addresses that there is not', spec: { service: { ipFamilies: ['IPv5'] } } },
  { what: 'two families of addresses for a Service with one', spec: { service: { ipFamilies: ['IPv6', 'IPv4'] } } },
  {
    what: 'one family of addresses for a Service with two',
    spec: { service: { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6'] } },
  },
  {
    what: 'the same family of addresses twice',
    spec: { service: { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv6'] } },
  },
  { what: "label with Corelane's prefix", spec: podMetadata({ labels: { 'corelane.dev/renderservice': 'other' } }) },
  { what: 'label as number', spec: podMetadata({ labels: { version: 2 } }), apiServerOnly: true },
  { what: 'environment variable as number', spec: container({ env: [{ name: 'A', value: 1 }] }), apiServerOnly: true },
  {
    what: 'quantity of the worker that is none',
    spec: container({ resources: { requests: { memory: '64MB' } } }),
    apiServerOnly: true,
  },
  {
    what: 'fraction of a CPU without quotes, which a Deployment would take',
    spec: container({ resources: { requests: { cpu: 0.5 } } }),
    apiServerOnly: true,
  },
  { what: 'time in words', spec: podMetadata({ creationTimestamp: 'now' }), apiServerOnly: true },
  { what: 'container port as text', spec: container({ ports: [{ containerPort: 'http' }] }), apiServerOnly: true },
];

/** What must be accepted, by the API server and by the operator. */
export const goodResources: { what: string; spec?: Json; name?: string }[] = [
  { what: 'the smallest one' },
  { what: 'the longest name', name: 'a'.repeat(50) },
  { what: 'one container of any name', spec: container({ name: 'app' }) },
  { what: 'most workers', spec: { workersPerPod: 64 } },
  { what: 'no pods', spec: { replicas: 0 } },
  { what: 'no queue', spec: { queue: { maxLength: 0 } } },
  { what: 'exceptions from replay', spec: { replayExcept: ['/', '/order/place/'] } },
  { what: 'bounds of durations', spec: { timeouts: { render: '100ms' }, drain: { delay: '0s', timeout: '2h' } } },
  { what: 'drain as long as a wait and a render', spec: { drain: { timeout: '40s' } } },
  {
    what: 'durations in different units',
    spec: { queue: { timeout: '1m' }, timeouts: { render: '60000ms' }, drain: { timeout: '120s' } },
  },
  {
    what: 'bounds of sizes',
    spec: { buffering: { request: { memory: '8Ki', maxSize: '1Gi' }, response: { maxFileSize: '10Gi' } } },
  },
  ...['129e6', '.5Gi', '1Pi', '128974848000m', '+1Gi', '1.', '2E'].map((memory) => ({
    what: `memory of a worker: ${memory}`,
    spec: container({ resources: { limits: { memory } } }),
  })),
  {
    what: 'least memory and disk of the proxies',
    spec: {
      buffering: { request: { maxSize: '8Mi' } },
      sidecar: {
        nginx: { memoryLimit: '64Mi', ephemeralStorageLimit: '64Mi' },
        haproxy: { memoryLimit: '80Mi' },
      },
    },
  },
  { what: 'CPU limits of the proxies', spec: { sidecar: { nginx: { cpuLimit: '50m' }, haproxy: { cpuLimit: '2' } } } },
  {
    what: 'a worker with limits of everything',
    spec: container({
      resources: {
        requests: { cpu: '500m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
        limits: { cpu: 2, memory: '512Mi', 'ephemeral-storage': '1Gi' },
      },
    }),
  },
  { what: 'memory of a proxy with an exponent', spec: { sidecar: { nginx: { memory: '64e6', memoryLimit: '.5Gi' } } } },
  { what: 'nobody is trusted', spec: { forwarded: { trust: [] } } },
  { what: 'everybody is trusted', spec: { forwarded: { trust: ['0.0.0.0/0', '::/0'] } } },
  { what: 'sizes that are the same', spec: { buffering: { request: { memory: '1024Ki', maxSize: '1Mi' } } } },
  { what: 'percentages', spec: { rollout: { rolling: { maxSurge: '100%', maxUnavailable: '0%' } } } },
  { what: 'no surge', spec: { rollout: { rolling: { maxSurge: 0, maxUnavailable: 1 } } } },
  { what: 'a path in depth', spec: { ping: { path: '/health/ping_1.txt' } } },
  { what: 'a path with a dot in front', spec: { ping: { path: '/.well-known/ping/' } } },
  { what: 'no budget', spec: { disruptionBudget: { enabled: false } } },
  { what: 'no NetworkPolicy', spec: { networkPolicy: { enabled: false } } },
  {
    what: 'peers of all kinds',
    spec: {
      networkPolicy: {
        monitoring: [
          {
            namespaceSelector: {},
            podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus', empty: '' } },
          },
          { podSelector: { matchExpressions: [{ key: 'a/b', operator: 'NotIn', values: ['c'] }] } },
          { namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'Exists' }] } },
          { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } },
          { ipBlock: { cidr: '2001:db8::/32' } },
        ],
        ingress: [
          {},
          {
            from: [{ podSelector: {} }],
            ports: [
              { port: 53, protocol: 'UDP' },
              { port: 1, endPort: 1 },
            ],
          },
        ],
      },
    },
  },
  { what: 'a canary of one step', spec: canary({}) },
  { what: 'people who stay at a revision', spec: sticky('Always') },
  {
    what: 'no cookie, without pooling and with the cache',
    spec: sticky('Off', { pooling: { enabled: false }, cache: { enabled: true } }),
  },
  { what: 'the id of a deployment', spec: calling('2026-11-26.7f3a9c2_1') },
  {
    what: 'a canary with everything',
    spec: canary({
      steps: [
        { share: 0.01, for: '1s' },
        { share: 0.07, approval: true },
        { share: 0.29, for: '5m', approval: true },
        { share: 12.5, for: '168h' },
        { share: 99.99, for: '100ms' },
      ],
      minReplicas: 3,
      match: [
        { header: 'X-Canary', value: 'always' },
        { cookie: 'canary', value: 'a@b.c' },
        { query: 'canary', value: '1' },
      ],
      key: { cookie: 'user' },
      analysis: {
        ...{ enabled: true, minRequests: 0, maxWait: '168h', errors: { ratio: 1, floorPercent: 12.5 } },
        ...{ latency: { enabled: false, slowerThan: 1.05 }, onFailure: 'Pause' },
      },
    }),
  },
  { what: 'a canary that nobody judges', spec: canary({ analysis: { enabled: false } }) },
  {
    what: 'a canary beside a cache that is off, with its settings',
    spec: canary({}, { cache: { enabled: false, maxSize: '8Mi' } }),
  },
  { what: 'empty sections', spec: { queue: {}, timeouts: {}, buffering: { request: {} }, rollout: {} } },
  {
    what: 'a second container with probes, ports and hooks',
    spec: twoContainers(worker, {
      name: 'log',
      image: 'log:1',
      ports: [{ containerPort: 3100 }],
      readinessProbe: { httpGet: { path: '/', port: 3100 } },
      lifecycle: { preStop: { exec: { command: ['true'] } } },
    }),
  },
  { what: 'ports of the worker, which are ignored', spec: container({ ports: [{ containerPort: 9000 }] }) },
  { what: 'a manifest made by kubectl create --dry-run', spec: podMetadata({ creationTimestamp: null }) },
  {
    what: 'quantities in all their forms',
    spec: container({
      resources: {
        requests: { cpu: 1, memory: '1e8', 'example.com/gpu': 1 },
        limits: { cpu: '.5', memory: '+128974848' },
      },
    }),
  },
  { what: 'a wait longer than the default of the drain', spec: { queue: { timeout: '10m' } } },
  { what: 'a render limit below the default of the watchdog', spec: { timeouts: { render: '1s' } } },
  {
    what: 'as many WebSockets as places',
    spec: { concurrency: 3, webSockets: { enabled: true, maxPerWorker: 3, maxAge: '24h' } },
  },
  {
    what: 'a page of its own, for all paths',
    spec: { fallback: { html: '<!doctype html>\n\t<p>Läden €', status: 200 } },
  },
  {
    what: 'a page of a ConfigMap, for some paths',
    spec: {
      fallback: { configMap: { name: 'shop.shell', key: 'a_b.html' }, status: 529, paths: ['/', '/shop/', '/a.b/~c'] },
    },
  },
  { what: 'deadlines by a header of its own', spec: { deadlines: { header: 'Acme-Timeout-Millis' } } },
  { what: 'people before the rest', spec: { priority: {} } },
  { what: 'nobody before anybody', spec: { framework: 'Next', priority: { classes: [] } } },
  {
    what: 'a class of everything',
    spec: classes({
      match: [
        { visitor: 'Prefetch' },
        { pathPrefix: '/', header: { name: 'X-Job', value: 'a/b:c@d~1.2' }, cookie: 'a_b.c-d', userAgent: 'a/1.0' },
      ],
      delay: '5m',
      maxQueue: '0%',
    }),
  },
  {
    what: 'a class with everything',
    spec: served({
      match: [
        { pathPrefix: '/api', method: 'GET', header: { name: 'Accept', value: 'text/event-stream' } },
        { path: '/_next/image' },
        { pathSuffix: '/__data.json', method: 'GET' },
        { pathSuffix: '.data' },
      ],
      concurrency: 90,
      queue: { maxLength: 20, timeout: '10m' },
      timeouts: { idle: '1h', drain: '0s' },
    }),
  },
  { what: 'five classes', spec: served(...['a', 'b', 'c', 'd', 'e-1'].map((name) => ({ name, concurrency: 1 }))) },
  { what: 'a concurrency that finds itself', spec: { concurrency: 'Auto' } },
  { what: 'the same between bounds', spec: { concurrency: 'Auto', concurrencyRange: { min: 2, max: 64 } } },
  { what: 'the same by a framework', spec: { framework: 'Next', concurrencyRange: { max: 4 } } },
  { what: 'a framework with WebSockets', spec: { framework: 'Next', webSockets: { enabled: true, maxPerWorker: 1 } } },
  { what: 'a framework without who measures', spec: { framework: 'Next', runtime: { instrument: false } } },
  { what: 'a handler that takes an hour', spec: { timeouts: { handler: '1h' }, drain: { timeout: '60s' } } },
  {
    what: 'as many requests as a worker keeps an account of',
    spec: { ...served({ concurrency: 999 }), ...MUCH_MEMORY, workersPerPod: 1 },
  },
  { what: 'the cache', spec: { cache: { enabled: true }, sidecar: { nginx: { memoryLimit: '160Mi' } } } },
  {
    what: 'the cache with everything',
    spec: cache({
      paths: ['/shop/', '/news'],
      ...ttl(['/', '1s'], ['/shop', '1500ms'], ['/shop/cart', '0s'], ['/news/a', '24h']),
      maxTtl: '8760h',
      staleWhileRevalidate: '1s',
      staleIfError: '1h',
      key: {
        headers: ['X-Market', 'accept-language'],
        cookies: ['lang', '__Host-a_b', 'a!$%&*+-.^_`|~'],
        query: { mode: 'Only', names: ['page', 'a.b~c'] },
      },
      bypass: {
        cookies: ['connect.sid', '__Secure-next-auth.session-token'],
        headers: ['X-Preview'],
        paths: ['/shop/account'],
      },
      maxSize: '64Gi',
    }),
  },
  { what: 'the same parameters for all', spec: cache({ key: { query: { mode: 'Only' } } }) },
  { what: 'a cache that is off, with its settings', spec: cache({ enabled: false, maxSize: '8Mi' }) },
  { what: 'assets of a framework', spec: { framework: 'Angular' } },
  { what: 'a framework below a path', spec: { framework: 'Next', basePath: '/shop/~a_b.c-d' } },
  {
    what: 'a framework in a pod that has no room for its classes',
    spec: { framework: 'SvelteKit', workersPerPod: 64, sidecar: { nginx: { memoryLimit: '64Mi' } } },
  },
  { what: 'a framework with a number of requests that leaves no room', spec: { framework: 'Next', concurrency: 1000 } },
  { what: 'a framework with a long queue', spec: { framework: 'Next', queue: { timeout: '10m' } } },
  { what: 'a framework without classes', spec: { framework: 'Next', classes: [] } },
  { what: 'a framework without assets', spec: { framework: 'Next', assets: [] } },
  {
    what: 'assets with everything',
    spec: {
      assets: [
        { path: '/', from: 'public', maxAge: '8760h', headers: { 'Access-Control-Allow-Origin': '*' } },
        { path: '/.a/~b_c-d/', from: '/app/@scope/a+b/', missing: 'NotFound' },
        { path: '/_nuxt/', from: 'dist/*', immutable: true, mutable: ['/_nuxt/builds/latest.json'], hashedNames: true },
      ],
    },
  },
  { what: 'assets for an hour', spec: asset({ maxAge: '1h' }) },
  { what: 'assets of a mounted image', spec: asset({}, imageVolume) },
  {
    what: 'a framework in a mounted image whose WORKDIR is known',
    spec: { ...container({ workingDir: '/app' }), framework: 'Next', ...imageVolume },
  },
  { what: 'ping below a site of assets', spec: asset({ path: '/' }) },
  { what: 'one request of each client', spec: { limits: { perClient: { requests: 1 } } } },
  { what: 'a stall time-out just below a render', spec: { watchdog: { stallTimeout: '29999ms' } } },
  {
    what: 'warm-up and recycling',
    spec: { warmup: { path: '/p?a=1&b=2', requests: 5 }, runtime: { recycle: { memory: '400Mi', age: '24h' } } },
  },
  { what: 'no runtime', spec: { runtime: { instrument: false } } },
  { what: 'scaling with a maximum only', spec: scaling({}) },
  { what: 'scaling to one size', spec: scaling({ minReplicas: 10 }) },
  { what: 'steps in any order', spec: steps([80, 20], [50, 10]) },
  { what: 'scaling on occupancy', spec: scaling({ occupancy: {}, warmUp: '0s', queue: { enabled: false } }) },
  { what: 'traces that begin here', spec: { tracing: {} } },
  { what: 'a sampling of one in ten thousand', spec: { tracing: { samplingPercent: 0.01 } } },
  { what: 'a sampling with two decimals', spec: { tracing: { samplingPercent: 12.35 } } },
  { what: 'spans', spec: { tracing: { endpoint: 'http://otel-collector.observability:4318' } } },
  {
    what: 'spans to an address, with headers',
    spec: { tracing: { endpoint: 'https://[2001:db8::1]:443/otlp/v1', headersFrom: { name: 'grafana', key: 'otlp' } } },
  },
  { what: 'traces that nobody samples', spec: { tracing: { samplingPercent: 0 } } },
  { what: 'objectives of everything', spec: { objectives: { availability: 99.999, latency: LATENCY } } },
  { what: 'objectives that say nothing', spec: { objectives: { latency: {} } } },
  { what: 'a whole percentage', spec: { objectives: { availability: 99 } } },
  { what: 'a p50 as long as the p99', spec: { objectives: { latency: { p50: '1s', p99: '1000ms' } } } },
  { what: 'a Service of one family', spec: { service: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] } } },
  {
    what: 'a Service of both families',
    spec: { service: { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] } },
  },
  { what: 'labels and annotations', spec: podMetadata({ labels: { app: 'shop' }, annotations: { 'a/b': 'c' } }) },
];

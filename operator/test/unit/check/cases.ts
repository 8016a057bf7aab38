/** RenderServices, what stands around them, and what is found. */
import type { Surroundings } from '../../../check/workload.ts';
import { unknownSurroundings } from '../../../check/workload.ts';

export interface CheckCase {
  what: string;
  /** Beside a template with one worker. */
  spec?: Record<string, unknown>;
  /** Fields of the worker. */
  worker?: Record<string, unknown>;
  /** Fields of the pod. */
  pod?: Record<string, unknown>;
  surroundings?: Partial<Surroundings>;
  /** `CODE level path`, as far as they are not `info` of C007 (no memory limit). */
  found: string[];
}

const cpu = (requests: string | number, limits?: string) => ({
  resources: { requests: { cpu: requests }, limits: { memory: '512Mi', ...(limits && { cpu: limits }) } },
});
const node = (vcpus: number) => ({ nodes: [{ cpu: vcpus, name: `a node of ${vcpus}` }] });
const worker = 'spec.template.spec.containers[0]';
const image = (fields: object) => ({
  images: { 'app:1': { env: ['NODE_VERSION=22.1.0'], entrypoint: [], cmd: [], exposedPorts: [], ...fields } },
});
const target = (kind: string) => ({ scaleTargetRef: { kind, name: 'shop' }, maxReplicas: 5 });
const ingress = (annotations: Record<string, string>) => ({ ingresses: [{ metadata: { name: 'web', annotations } }] });

const condition = (
  type: 'WorkersHealthy' | 'Stalled' | 'Ready' | 'CapacityAvailable' | 'ConcurrencyTuned',
  status: 'True' | 'False',
  reason: string,
) => ({
  type,
  status,
  reason,
  message: `${reason} it is`,
});

export const CASES: CheckCase[] = [
  {
    what: 'a stalled one says it once',
    surroundings: { conditions: [condition('Stalled', 'True', 'NotOwned'), condition('Ready', 'False', 'NotOwned')] },
    found: ['C020 error status.conditions[Stalled]'],
  },
  {
    what: 'a full fleet',
    surroundings: {
      conditions: [condition('CapacityAvailable', 'False', 'FleetFull'), condition('Ready', 'True', 'AllPodsReady')],
    },
    found: ['C020 warning status.conditions[CapacityAvailable]'],
  },
  {
    what: 'a number of requests at a time that is too small',
    surroundings: { conditions: [condition('ConcurrencyTuned', 'False', 'RendersWait')] },
    found: ['C020 warning status.conditions[ConcurrencyTuned]'],
  },
  {
    what: 'a container without an image',
    worker: { image: null },
    found: ['C019 error spec.template.spec.containers.0.image'],
  },
  { what: 'one worker with one CPU', worker: cpu('1'), found: [] },
  { what: 'no request is one CPU', surroundings: node(2.2), spec: { workersPerPod: 2 }, found: [] },
  { what: 'a share of a CPU', worker: cpu('250m'), found: [`C002 info ${worker}.resources.requests.cpu`] },
  {
    what: 'a CPU limit below 1',
    worker: cpu('1', '500m'),
    found: [`C002 warning ${worker}.resources.limits.cpu`],
  },
  {
    what: 'four workers on a node of 3.92',
    spec: { workersPerPod: 4 },
    surroundings: node(3.92),
    found: ['C003 error spec.workersPerPod'],
  },
  { what: 'three workers on a node of 3.92', spec: { workersPerPod: 3 }, surroundings: node(3.92), found: [] },
  {
    what: 'a worker that no node has room for',
    worker: cpu('8'),
    spec: { workersPerPod: 1 },
    surroundings: node(3.92),
    found: [`C003 error ${worker}.resources.requests.cpu`, `C002 info ${worker}.resources.requests.cpu`],
  },
  {
    what: 'two workers on a node of 7.91, which has room for seven',
    spec: { workersPerPod: 2 },
    surroundings: node(7.91),
    found: ['C003 info spec.workersPerPod'],
  },
  {
    what: 'an init container larger than all else',
    pod: { initContainers: [{ name: 'build', image: 'a', resources: { requests: { cpu: '6' } } }] },
    surroundings: node(3.92),
    found: ['C003 error spec.template.spec.initContainers[0].resources.requests.cpu'],
  },
  {
    what: 'a native sidecar and an exporter count',
    spec: { workersPerPod: 3 },
    pod: {
      initContainers: [{ name: 'redis', image: 'a', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } }],
    },
    surroundings: node(3.92),
    found: ['C003 error spec.workersPerPod'],
  },
  {
    what: 'percent of 250m',
    worker: cpu('250m'),
    spec: { scaling: { maxReplicas: 5 } },
    found: ['C015 warning spec.scaling', `C002 info ${worker}.resources.requests.cpu`],
  },
  {
    what: 'percent of 250m, above 50',
    worker: cpu('250m'),
    spec: { scaling: { maxReplicas: 5, cpu: { scaleUp: { abovePercent: 50 } } } },
    found: [`C002 info ${worker}.resources.requests.cpu`],
  },
  {
    what: 'occupancy with 250m',
    worker: cpu('250m'),
    spec: { scaling: { maxReplicas: 5, occupancy: {} } },
    found: [`C002 info ${worker}.resources.requests.cpu`],
  },
  { what: 'one port', worker: { ports: [{ containerPort: 3000 }] }, found: [] },
  {
    what: 'a metrics port',
    worker: {
      ports: [
        { containerPort: 9464, name: 'metrics' },
        { containerPort: 3000, name: 'http' },
      ],
    },
    found: [`C004 decide ${worker}.ports[0]`],
  },
  {
    what: 'two ports of the image',
    surroundings: image({ exposedPorts: ['3000/tcp', '9229/tcp'] }),
    found: [`C004 decide ${worker}.ports[1]`],
  },
  {
    what: 'a port on the command line',
    worker: { command: ['next', 'start', '-p', '3000'] },
    found: [`C004 decide ${worker}.command`],
  },
  {
    what: 'a variable that Nitro reads before PORT',
    worker: { env: [{ name: 'NITRO_PORT', value: '3000' }] },
    found: [`C004 decide ${worker}.env[NITRO_PORT]`],
  },
  {
    what: 'such a variable by a ConfigMap',
    worker: { envFrom: [{ prefix: 'NITRO_', configMapRef: { name: 'shop' } }] },
    surroundings: { configMaps: [{ metadata: { name: 'shop' }, data: { PORT: '3000' } }] },
    found: [`C004 decide ${worker}.envFrom`],
  },
  { what: 'its own port on the command line', worker: { args: ['--port', '$(PORT)'] }, found: [] },
  {
    what: 'an inspector',
    worker: { env: [{ name: 'NODE_OPTIONS', value: '--inspect=0.0.0.0' }] },
    found: [`C004 decide ${worker}.env[NODE_OPTIONS]`],
  },
  {
    what: 'an inspector by a ConfigMap',
    worker: { envFrom: [{ configMapRef: { name: 'shop' } }] },
    surroundings: { configMaps: [{ metadata: { name: 'shop' }, data: { NODE_OPTIONS: '--inspect' } }] },
    found: [`C004 decide ${worker}.envFrom`],
  },
  {
    what: 'an inspector in the flags of the runtime',
    spec: { runtime: { nodeFlags: ['--inspect-brk'] } },
    found: ['C004 decide spec.runtime.nodeFlags'],
  },
  {
    what: 'an inspector that a shell sets',
    worker: { command: ['sh', '-c', 'NODE_OPTIONS="--inspect" node server.js'] },
    found: [`C004 decide ${worker}.command`, `C006 warning ${worker}.command`],
  },
  {
    what: 'PM2 by the image',
    surroundings: image({ cmd: ['pm2-runtime', 'start', 'ecosystem.config.js'] }),
    found: [`C005 error ${worker}.image`],
  },
  {
    what: 'PM2 with one process',
    worker: { command: ['pm2-runtime', 'server.js'] },
    found: [`C005 warning ${worker}.command`],
  },
  {
    what: 'a cluster of Nitro',
    worker: { env: [{ name: 'NITRO_PRESET', value: 'node-cluster' }] },
    found: [`C005 error ${worker}.env[NITRO_PRESET]`],
  },
  { what: 'one process, said so', worker: { env: [{ name: 'WEB_CONCURRENCY', value: '1' }] }, found: [] },
  {
    what: 'a program in a folder named cluster',
    worker: { command: ['node', '/srv/cluster-ui/server.js'] },
    found: [],
  },
  {
    what: 'the command leaves the arguments of the image out',
    worker: { command: ['node', 'server.js'] },
    surroundings: image({ cmd: ['-i', 'max'] }),
    found: [],
  },
  {
    what: 'envFrom, of which NODE_OPTIONS is kept',
    worker: { envFrom: [{ secretRef: { name: 'a' } }] },
    found: [],
  },
  {
    what: 'a script that replaces NODE_OPTIONS',
    worker: { command: ['sh', '-c', 'NODE_OPTIONS=--trace-gc node server.js'] },
    found: [`C006 warning ${worker}.command`],
  },
  {
    what: 'a command that takes NODE_OPTIONS away',
    worker: { args: ['env', '-u', 'NODE_OPTIONS', 'node', 'server.js'] },
    found: [`C006 warning ${worker}.args`],
  },
  {
    what: 'a script that adds to NODE_OPTIONS',
    worker: { command: ['sh', '-c', 'NODE_OPTIONS="-r ./agent.cjs $NODE_OPTIONS" node server.js'] },
    found: [],
  },
  ...(
    [
      ['20.19.0', 1],
      ['22.14.0', 1],
      ['22.15.0', 0],
      ['23.10.0', 1],
      ['23.11.0', 0],
      ['24.0.0', 0],
    ] as const
  ).map(([version, count]) => ({
    what: `a module in front of NODE_OPTIONS, Node.js ${version}`,
    worker: { command: ['sh', '-c', 'NODE_OPTIONS="-r ./agent.cjs $NODE_OPTIONS" node server.js'] },
    surroundings: image({ env: [`NODE_VERSION=${version}`] }),
    found: Array<string>(count).fill(`C006 warning ${worker}.command`),
  })),
  {
    what: 'a module behind NODE_OPTIONS, and an old Node.js',
    worker: { command: ['sh', '-c', 'NODE_OPTIONS="$NODE_OPTIONS -r ./agent.cjs" node server.js'] },
    surroundings: image({ env: ['NODE_VERSION=20.19.0'] }),
    found: [],
  },
  {
    what: 'an nginx with little memory for heads',
    spec: { sidecar: { nginx: { memory: '64Mi', memoryLimit: '128Mi' } } },
    found: ['C023 warning spec.sidecar.nginx.memoryLimit'],
  },
  {
    what: 'a HAProxy with little memory for the heads that are asked for',
    spec: { buffering: { maxHeaderSize: '128Ki' }, sidecar: { haproxy: { memoryLimit: '200Mi' } } },
    found: ['C023 warning spec.sidecar.haproxy.memoryLimit'],
  },
  {
    what: 'proxies with little memory, and a bound of heads that they have room for',
    spec: {
      buffering: { maxHeaderSize: '16Ki' },
      sidecar: { nginx: { memory: '64Mi', memoryLimit: '128Mi' }, haproxy: { memoryLimit: '128Mi' } },
    },
    found: [],
  },
  {
    what: 'NODE_OPTIONS of the image',
    surroundings: image({ env: ['NODE_OPTIONS=--trace-gc', 'NODE_VERSION=22.1.0'] }),
    found: [`C006 decide ${worker}.image`],
  },
  {
    what: 'NODE_OPTIONS of the image, repeated',
    worker: { env: [{ name: 'NODE_OPTIONS', value: '--trace-gc' }] },
    surroundings: image({ env: ['NODE_OPTIONS=--trace-gc', 'NODE_VERSION=22.1.0'] }),
    found: [],
  },
  {
    what: 'little memory',
    worker: { resources: { limits: { memory: '128Mi' } } },
    found: [`C007 error ${worker}.resources.limits.memory`],
  },
  {
    what: 'a heap as large as the limit',
    spec: { runtime: { nodeFlags: ['--max-old-space-size=500'] } },
    worker: { resources: { limits: { memory: '512Mi' } } },
    found: [`C007 error ${worker}.resources.limits.memory`],
  },
  {
    what: 'a heap of both generations as large as the limit',
    spec: { runtime: { nodeFlags: ['--max-heap-size=500'] } },
    worker: { resources: { limits: { memory: '512Mi' } } },
    found: [`C007 error ${worker}.resources.limits.memory`],
  },
  {
    what: 'a heap within the limit',
    spec: { runtime: { nodeFlags: ['--max-old-space-size=384'] } },
    worker: { resources: { limits: { memory: '512Mi' } } },
    found: [],
  },
  {
    what: 'a heap of V8 as large as the limit, in its own words and behind a smaller one',
    spec: { runtime: { nodeFlags: ['--max-old-space-size=100'] } },
    worker: { command: ['node', '--max_old_space_size=500'], resources: { limits: { memory: '512Mi' } } },
    found: [`C007 error ${worker}.resources.limits.memory`],
  },
  {
    what: 'a heap as large as the limit, by a ConfigMap',
    worker: {
      envFrom: [{ prefix: 'NODE_', configMapRef: { name: 'a' } }],
      resources: { limits: { memory: '512Mi' } },
    },
    surroundings: { configMaps: [{ metadata: { name: 'a' }, data: { OPTIONS: '--max-old-space-size=500' } }] },
    found: [`C007 error ${worker}.resources.limits.memory`],
  },
  {
    what: 'a heap snapshot that the limit has no room for',
    spec: { runtime: { nodeFlags: ['--heapsnapshot-near-heap-limit=1'] } },
    worker: { resources: { limits: { memory: '512Mi' } } },
    found: [`C007 warning ${worker}.resources.limits.memory`],
  },
  {
    what: 'a heap snapshot that the limit has room for',
    worker: {
      env: [{ name: 'NODE_OPTIONS', value: '--heapsnapshot-near-heap-limit=1 --max-old-space-size=256' }],
      resources: { limits: { memory: '4Gi' } },
    },
    found: [],
  },
  {
    what: 'a short grace period',
    pod: { terminationGracePeriodSeconds: 30 },
    found: ['C008 info spec.template.spec.terminationGracePeriodSeconds'],
  },
  {
    what: 'a balancer of Google',
    surroundings: { services: [{ metadata: { name: 'a', annotations: { 'cloud.google.com/neg': '{}' } } }] },
    found: ['C008 info metadata.annotations'],
  },
  {
    what: 'a balancer that is answered',
    spec: { keepAlive: { idleTimeout: '11m' } },
    surroundings: { services: [{ metadata: { name: 'a', annotations: { 'cloud.google.com/neg': '{}' } } }] },
    found: [],
  },
  {
    what: 'an HPA of the Deployment inside',
    surroundings: { autoscalers: [{ spec: target('Deployment') }] },
    found: ['C009 error spec.scaleTargetRef'],
  },
  {
    what: 'an HPA of the Deployment of a revision',
    surroundings: {
      autoscalers: [
        { spec: { ...target('Deployment'), scaleTargetRef: { kind: 'Deployment', name: 'shop-0123456789' } } },
      ],
    },
    found: ['C009 error spec.scaleTargetRef'],
  },
  {
    what: 'an HPA beside scaling',
    spec: { scaling: { maxReplicas: 4 } },
    surroundings: { autoscalers: [{ spec: target('RenderService') }] },
    found: ['C009 error spec.scaleTargetRef'],
  },
  {
    what: 'an HPA of whole pods',
    surroundings: {
      autoscalers: [
        {
          spec: {
            ...target('RenderService'),
            metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization' } } }],
          },
        },
      ],
    },
    found: ['C009 warning spec.metrics[0].resource'],
  },
  {
    what: 'KEDA of the RenderService',
    surroundings: { scaledObjects: [{ spec: { scaleTargetRef: { kind: 'RenderService', name: 'shop' } } }] },
    found: [],
  },
  {
    what: 'KEDA by the CPU of whole pods',
    surroundings: {
      scaledObjects: [{ spec: { ...target('RenderService'), triggers: [{ type: 'cron' }, { type: 'cpu' }] } }],
    },
    found: ['C009 warning spec.triggers[1].metadata'],
  },
  {
    what: 'KEDA by the CPU of a worker',
    surroundings: {
      scaledObjects: [
        { spec: { ...target('RenderService'), triggers: [{ type: 'cpu', metadata: { containerName: 'worker-0' } }] } },
      ],
    },
    found: [],
  },
  {
    what: 'a VPA',
    surroundings: { verticalAutoscalers: [{ spec: { targetRef: { kind: 'RenderService', name: 'shop' } } }] },
    found: ['C009 decide spec.updatePolicy.updateMode'],
  },
  {
    what: 'a VPA of somebody else',
    surroundings: { verticalAutoscalers: [{ spec: { targetRef: { kind: 'Deployment', name: 'other' } } }] },
    found: [],
  },
  {
    what: 'sticky sessions',
    surroundings: ingress({ 'nginx.ingress.kubernetes.io/affinity': 'cookie' }),
    found: ['C011 decide metadata.annotations[nginx.ingress.kubernetes.io/affinity]'],
  },
  {
    what: 'WebSockets that are switched on',
    spec: { webSockets: { enabled: true } },
    surroundings: ingress({ 'nginx.org/websocket-services': 'a' }),
    found: [],
  },
  {
    what: 'uploads within the bound',
    surroundings: ingress({ 'nginx.ingress.kubernetes.io/proxy-body-size': '8m' }),
    found: [],
  },
  {
    what: 'uploads of any size',
    surroundings: ingress({ 'nginx.ingress.kubernetes.io/proxy-body-size': '0' }),
    found: ['C011 decide metadata.annotations[nginx.ingress.kubernetes.io/proxy-body-size]'],
  },
  {
    what: 'a claim for one node',
    pod: { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a' } }] },
    surroundings: { claims: [{ metadata: { name: 'a' }, spec: { accessModes: ['ReadWriteOnce'] } }] },
    found: ['C012 error spec.template.spec.volumes[0].persistentVolumeClaim'],
  },
  {
    what: 'a claim for all',
    pod: { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a' } }] },
    surroundings: { claims: [{ metadata: { name: 'a' }, spec: { accessModes: ['ReadWriteMany'] } }] },
    found: [],
  },
  {
    what: 'containers that outlive the drain',
    pod: {
      containers: [
        { name: 'db', image: 'db:1' },
        { name: 'worker', image: 'app:1' },
        { name: 'log', image: 'a:1' },
      ],
    },
    found: ['C012 info spec.template.spec.containers[0]'],
  },
  {
    what: 'containers with hooks of their own; a native sidecar needs none',
    pod: {
      containers: [
        { name: 'worker', image: 'app:1' },
        { name: 'db', image: 'db:1', lifecycle: { preStop: { sleep: { seconds: 5 } } } },
      ],
      initContainers: [
        { name: 'log', image: 'a:1', restartPolicy: 'Always', lifecycle: { preStop: { sleep: { seconds: 5 } } } },
      ],
    },
    found: ['C012 warning spec.template.spec.containers[1].lifecycle.preStop'],
  },
  {
    what: "a mesh's proxy as a native sidecar",
    pod: { initContainers: [{ name: 'linkerd-proxy', image: 'proxy:1', restartPolicy: 'Always' }] },
    found: ['C012 warning spec.template.spec.initContainers[0]'],
  },
  { what: 'Node.js 16', worker: { image: 'node:16-alpine' }, found: [`C013 error ${worker}.image`] },
  {
    what: 'Node.js 18.18',
    worker: { image: 'registry:5000/library/node:18.18.2' },
    found: [`C013 error ${worker}.image`],
  },
  { what: 'Node.js 18 of some kind', worker: { image: 'node:18' }, found: [] },
  { what: 'nginx', worker: { image: 'nginx:1.27' }, found: [`C013 error ${worker}.image`] },
  { what: 'nodemon', worker: { command: ['nodemon', 'server.js'] }, found: [`C013 warning ${worker}.command`] },
  { what: 'Bun', worker: { command: ['bun', 'run', 'server.ts'] }, found: [`C013 info ${worker}.command`] },
  { what: 'npm', worker: { command: ['npm', 'start'] }, found: [`C013 info ${worker}.command`] },
  {
    what: "Node.js' permission model without child processes",
    worker: { command: ['node', '--permission', '--allow-fs-read=*', 'server.js'] },
    found: [`C013 warning ${worker}.command`],
  },
  {
    what: "Node.js 25's permission model without the network",
    worker: {
      image: 'node:25',
      command: ['node', '--permission', '--allow-child-process', '--allow-fs-read=*', 'a.js'],
    },
    found: [`C013 warning ${worker}.command`],
  },
  {
    what: "Node.js' permission model without the files of the runtime",
    worker: {
      command: ['node', 'server.js'],
      env: [{ name: 'NODE_OPTIONS', value: '--experimental-permission --allow-child-process --allow-fs-read=/app' }],
    },
    found: [`C013 warning ${worker}.command`],
  },
  {
    what: "Node.js' permission model that lets the supervisor in",
    worker: {
      command: ['node', '--permission', '--allow-child-process', '--allow-fs-read=/app'],
      args: ['--allow-fs-read', '/corelane', '--allow-fs-read=/corelane-live/*', '--allow-fs-read=/proc', 'server.js'],
    },
    found: [],
  },
  { what: 'an image without Node.js, maybe', surroundings: image({ env: [] }), found: [`C013 info ${worker}.image`] },
  {
    what: 'a tag that has moved',
    surroundings: { runningImages: ['sha256:a', 'sha256:b'] },
    found: [`C013 warning ${worker}.image`],
  },
  {
    what: 'no runtime, as the operator has found',
    surroundings: { conditions: [condition('WorkersHealthy', 'True', 'RuntimeAbsent')] },
    found: [`C013 info ${worker}.image`],
  },
  {
    what: 'a LimitRange with a default',
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Container', default: { cpu: '1' } } as never] } }] },
    found: ['C014 warning spec.limits[0].default.cpu'],
  },
  {
    what: 'a LimitRange with a maximum only',
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Container', max: { cpu: '4' } }] } }] },
    found: ['C014 warning spec.limits[0].max.cpu'],
  },
  {
    what: 'a LimitRange with a default, where the proxies have limits as the worker has',
    worker: cpu('1', '1'),
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Container', max: { cpu: '4' } }] } }] },
    found: [],
  },
  {
    what: 'a LimitRange with a default below the request of a worker',
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Container', default: { cpu: '500m' } } as never] } }] },
    found: ['C014 error spec.limits[0]', 'C014 warning spec.limits[0].default.cpu'],
  },
  {
    what: 'a LimitRange with a minimum above the proxies',
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Container', min: { cpu: '100m' } }] } }] },
    found: ['C014 error spec.limits[0]'],
  },
  {
    what: 'a LimitRange of pods',
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Pod', min: { cpu: '100' } }] } }] },
    found: [],
  },
  {
    what: 'a LimitRange of memory',
    surroundings: { limitRanges: [{ spec: { limits: [{ type: 'Container', max: { memory: '4Gi' } }] } }] },
    found: [],
  },
  {
    what: 'everybody is a proxy',
    spec: { forwarded: { trust: ['10.0.0.0/8', '::/0'] } },
    found: ['C021 warning spec.forwarded.trust[1]'],
  },
  {
    what: 'a CDN is trusted, and the ingress is not',
    spec: { forwarded: { trust: ['173.245.48.0/20', '2400:cb00::/32'] } },
    found: ['C021 warning spec.forwarded.trust'],
  },
  {
    what: 'a CDN and the ingress are trusted',
    spec: { forwarded: { trust: ['173.245.48.0/20', '10.0.0.0/8'] } },
    found: [],
  },
  { what: 'nobody is trusted', spec: { forwarded: { trust: [] } }, found: [] },
  {
    what: 'balancers of Google that reach the pods',
    spec: { forwarded: { trust: ['130.211.0.0/22', '35.191.0.0/16'] } },
    found: [],
  },
  {
    what: 'a load balancer that hides clients',
    spec: { service: { type: 'LoadBalancer' } },
    found: ['C021 warning spec.service.type'],
  },
  {
    what: 'a CDN before a load balancer that keeps addresses',
    spec: {
      forwarded: { trust: ['173.245.48.0/20'] },
      service: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
    },
    found: [],
  },
  {
    what: 'a load balancer that sends PROXY headers',
    spec: { forwarded: { proxyProtocol: true }, service: { type: 'LoadBalancer' } },
    found: [],
  },
  {
    what: 'a load balancer that passes requests on',
    spec: {
      service: {
        type: 'LoadBalancer',
        annotations: { 'service.beta.kubernetes.io/do-loadbalancer-protocol': 'http' },
      },
    },
    found: [],
  },
  { what: 'a framework', spec: { framework: 'Next' }, found: ['C022 info spec.framework'] },
  {
    what: 'what a cluster refuses',
    surroundings: {
      server: {
        refusals: [
          { what: 'a pod would be refused: no' },
          { what: 'Service "shop" exists', wayOut: 'choose another name' },
        ],
        notAsked: ['Deployment "shop-1"'],
      },
    },
    found: ['C024 error spec', 'C024 error spec'],
  },
  { what: 'a probe', worker: { livenessProbe: {} }, found: ['C001 error spec.template.spec.containers'] },
  { what: 'the network of the node', pod: { hostNetwork: true }, found: ['C012 error spec.template.spec.hostNetwork'] },
  { what: 'a queue of text', spec: { queue: { maxLength: 'x' } }, found: ['C019 error spec.queue.maxLength'] },
  { what: 'a field that is not there', spec: { worker: 3 }, found: ['C019 error spec'] },
  { what: 'a list that is none', worker: { env: 'A=1' }, found: ['C019 error spec.template.spec.containers.0.env'] },
  {
    what: 'null everywhere',
    worker: { env: null, ports: null, resources: { requests: null }, command: null },
    pod: { volumes: null },
    spec: { queue: null },
    found: [],
  },
];

/** The resource and the surroundings of a case. */
export function checkCase({ spec = {}, worker: fields = {}, pod = {}, surroundings = {} }: CheckCase) {
  const template = { spec: { containers: [{ name: 'app', image: 'app:1', ...fields }], ...pod } };
  const resource = {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'shop', namespace: 'shop', uid: '', generation: 1, resourceVersion: '1' },
    spec: { workersPerPod: 1, ...spec, template },
  };
  return { resource, surroundings: { ...unknownSurroundings(), ...surroundings } };
}

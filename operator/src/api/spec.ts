/**
 * The spec of a RenderService: the one definition of its fields, defaults, bounds and descriptions. Types, CRD,
 * chart copy and docs/reference.md are made from it (`make generate`).
 */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { z } from 'zod';
import { WORKERS_PER_POD_MAX } from './names.ts';
import { networkPolicy } from './network-policy.ts';
import { cidr, duration, intOrPercent, quantity, requestTarget, size, urlPath } from './scalars.ts';
import { scaling } from './scaling.ts';

/** Marks the node that the generator replaces by Kubernetes' own PodTemplateSpec schema. */
export const POD_TEMPLATE_MARK = 'x-corelane-pod-template';

const named = z.looseObject({ name: z.string() });
const container = named.extend({ ports: z.array(z.looseObject({})).nullish() });
/** What the rules read of a pod template. The API server knows all of it; a rule must not fail where it does not. */
const podTemplateParts = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()).nullish() }).nullish(),
  spec: z.looseObject({
    containers: z.array(container).min(1),
    initContainers: z.array(named).nullish(),
    volumes: z.array(named).nullish(),
  }),
});

const podTemplate = z
  .custom<V1PodTemplateSpec>(
    (value) => podTemplateParts.safeParse(value).success,
    'must be a pod template with a container in spec.containers',
  )
  .meta({
    [POD_TEMPLATE_MARK]: true,
    description:
      'Ordinary pod template. The container named "worker", or the only one, is repeated workersPerPod times as worker-0, worker-1 ...; everything else stays as written. docs/pod-template.md says who wins on each merged field.',
  });

const queue = z
  .strictObject({
    maxLength: z
      .int()
      .min(0)
      .max(10_000)
      .default(100)
      .describe(
        'Requests that may wait in one pod for a free worker. One more is answered 503 with Retry-After at once.',
      ),
    timeout: duration({ min: '100ms', max: '10m' })
      .default('10s')
      .describe(
        'Longest wait for a free worker, after which the answer is 503 with Retry-After. Does not count against timeouts.render.',
      ),
  })
  .prefault({})
  .describe('The queue in front of the workers of one pod.');

const timeouts = z
  .strictObject({
    render: duration({ min: '100ms', max: '1h' })
      .default('30s')
      .describe(
        'Longest time that a worker may take for one response, waiting in the queue excluded. The client gets 504.',
      ),
    clientHeader: duration({ min: '1s', max: '10m' })
      .default('10s')
      .describe('Longest time for a client to send the request headers (408 after it).'),
    clientBody: duration({ min: '1s', max: '10m' })
      .default('30s')
      .describe('Longest pause between two reads of the request body (408 after it). No worker is occupied meanwhile.'),
    clientSend: duration({ min: '1s', max: '10m' })
      .default('60s')
      .describe('Longest pause between two writes of the response to a slow client. No worker is occupied meanwhile.'),
  })
  .prefault({})
  .describe('Time limits of one request.');

const buffering = z
  .strictObject({
    request: z
      .strictObject({
        maxSize: size({ min: '1Ki', max: '1Gi' })
          .default('10Mi')
          .describe('Largest request body; a larger one is answered 413.'),
        memory: size({ min: '8Ki', max: '64Mi' })
          .default('64Ki')
          .describe('Part of a request body that is kept in memory; what is beyond goes to a temporary file.'),
      })
      .prefault({})
      .describe('A worker sees a request only when all of its body has arrived.'),
    response: z
      .strictObject({
        memory: size({ min: '8Ki', max: '64Mi' })
          .default('128Ki')
          .describe(
            'Part of a response that is kept in memory for a slow client; what is beyond goes to a temporary file.',
          ),
        maxFileSize: size({ min: '1Mi', max: '10Gi' })
          .default('256Mi')
          .describe(
            'Largest temporary file of one response; less where sidecar.nginx.ephemeralStorageLimit does not hold one for each request (docs/edge.md). A response beyond it is sent at the speed of its client, and cut when that holds its worker for longer than timeouts.render.',
          ),
      })
      .prefault({})
      .describe('A worker is free as soon as it has written its response, however slowly the client reads.'),
  })
  .prefault({})
  .describe('What nginx buffers so that slow clients hold no worker.');

/** Where proxies in front of a pod have their addresses: private ranges, loopback, link-local, and those of carriers, which clouds use. */
const PRIVATE_RANGES = [
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '127.0.0.0/8'],
  ...['fc00::/7', 'fe80::/10', '::1/128'],
];

const forwarded = z
  .strictObject({
    trust: z
      .array(cidr())
      .max(64)
      .default(PRIVATE_RANGES)
      .describe(
        'Address ranges of the proxies in front (ingress, load balancer, CDN) whose X-Forwarded-* and X-Real-IP are believed. What anybody else sends of these is replaced by what nginx itself knows. Private ranges unless given. docs/edge.md says which headers, and what a worker gets.',
      ),
  })
  .prefault({})
  .describe('Who the client is.');

const ping = z
  .strictObject({
    path: urlPath()
      .default('/ping')
      .describe('Answered 200 by nginx itself, without a worker: for load balancers outside the cluster.'),
  })
  .prefault({})
  .describe('Health answer that never queues.');

const keepAlive = z
  .strictObject({
    idleTimeout: duration({ min: '1s', max: '1h' })
      .default('75s')
      .describe(
        'How long an idle client connection is kept. Let it be longer than the idle time-out of the load balancer in front (60 s is common): whoever closes first must not be the side that is about to receive a request.',
      ),
  })
  .prefault({})
  .describe('Idle client connections.');

const webSockets = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether a request to become a WebSocket reaches the worker as such. A WebSocket takes a place of its worker for as long as it lasts; a silent one ends after timeouts.render.',
      ),
    maxPerWorker: z
      .int()
      .min(1)
      .max(1000)
      .optional()
      .describe(
        'WebSockets that the clients of a pod may have, for each of its workers; no more than concurrency. One more is answered 503. So many that half of the places (workersPerPod x concurrency) are left to pages unless given.',
      ),
    maxAge: duration({ min: '1s', max: '24h' })
      .optional()
      .describe(
        'A WebSocket that has lasted so long is closed, and its client connects again. 1h unless given. Works with runtime.instrument only.',
      ),
  })
  .prefault({})
  .describe('WebSockets.');

const limits = z
  .strictObject({
    perClient: z
      .strictObject({
        requests: z
          .int()
          .min(1)
          .max(10_000)
          .optional()
          .describe(
            'Requests that one client may have in a pod at a time, whether they arrive, wait, are rendered (by another pod, too) or are being sent. One more is answered 429. A client is an IPv4 address or an IPv6 /64 (see forwarded.trust). No limit unless given.',
          ),
      })
      .prefault({})
      .describe('What one client may have.'),
  })
  .prefault({})
  .describe('Limits that keep one client from taking what is there for all.');

const service = z
  .strictObject({
    type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP').describe('Type of the Service.'),
    port: z.int().min(1).max(65_535).default(80).describe('Port of the Service.'),
    annotations: z
      .record(z.string().max(317), z.string().max(4096))
      .optional()
      .describe('Annotations of the Service, for cloud load balancers for example.'),
  })
  .prefault({})
  .describe('The Service in front of all pods.');

/** Resources of a container that Corelane adds. There is no CPU limit on purpose: throttling a proxy sets p95. */
function proxyResources(cpu: string, memory: string, memoryLimit: string) {
  return {
    cpu: quantity()
      .default(cpu)
      .describe(
        'CPU request, which is also its share where all CPUs are busy (sidecar/README.md has figures). There is no CPU limit: throttling a proxy delays every request.',
      ),
    memory: quantity().default(memory).describe('Memory request.'),
    memoryLimit: quantity()
      .default(memoryLimit)
      .describe('Memory limit. How many connections and requests the proxy takes follows from it (docs/edge.md).'),
  };
}

const sidecar = z
  .strictObject({
    nginx: z
      .strictObject({
        ...proxyResources('50m', '32Mi', '512Mi'),
        ephemeralStorageLimit: quantity()
          .default('16Gi')
          .describe(
            'Most that bodies and responses may take of the disk, and the ephemeral-storage limit of the container. What could exceed it is refused before (docs/edge.md).',
          ),
      })
      .prefault({})
      .describe('Resources of the nginx container.'),
    haproxy: z
      .strictObject(proxyResources('50m', '48Mi', '256Mi'))
      .prefault({})
      .describe('Resources of the HAProxy container.'),
  })
  .prefault({})
  .describe('The two proxy containers that Corelane adds to each pod.');

const readiness = z
  .strictObject({
    shedWhenFull: z
      .boolean()
      .default(true)
      .describe(
        'Whether a pod whose queue has been full for 2 seconds leaves the Service while another pod has room. When the whole fleet is full, every pod stays.',
      ),
  })
  .prefault({})
  .describe('When a pod gets new connections: a worker is up, the pod does not drain, and the queue rule below.');

const pooling = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe('Whether a request that finds no free worker in its pod may be rendered by another pod that has one.'),
    maxAsks: z
      .int()
      .min(1)
      .max(16)
      .default(4)
      .describe('Random pods that are asked at once for a free worker. A pod asks again as long as requests wait.'),
    maxPeers: z.int().min(1).max(256).default(64).describe('Pods that a pod knows; in a larger fleet a random subset.'),
    acrossRevisions: z
      .boolean()
      .default(false)
      .describe('Whether old and new pods of a rollout share work, so that a page may come from either revision.'),
  })
  .prefault({})
  .describe('Pods share their work: ask before you queue (docs/pooling.md).');

const quarantine = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether such URLs are answered 503 (X-Corelane-Error: poison).'),
    kills: z
      .int()
      .min(1)
      .max(100)
      .default(2)
      .describe(
        'So many workers of one pod must have been killed in requests for the URL: by one client, then it is refused for this one; or one each by so many clients, then it is refused for all. Never while the URL is answered more often than that.',
      ),
    window: duration({ min: '10s', max: '1h' }).default('1m').describe('The time in which kills are counted.'),
    duration: duration({ min: '10s', max: '1h' })
      .default('5m')
      .describe('How long the URL is refused. It is counted anew after that.'),
  })
  .prefault({})
  .describe(
    'Keeps requests away from workers whose URL (Host, path and query of a GET or HEAD) has got workers stuck. Of one that has not been answered of late no more than `kills` are rendered at once while a worker stands still.',
  );

const watchdog = z
  .strictObject({
    stallTimeout: duration({ min: '500ms', max: '10m' })
      .optional()
      .describe(
        'How long the event loop of a worker may stand still before the worker is taken out, killed and started again. 10s unless given, or timeouts.render if that is shorter. It must be longer than your longest render without an await.',
      ),
    quarantine,
  })
  .prefault({})
  .describe('Finds workers that are stuck. Works with runtime.instrument only.');

/** Nothing that a shell or NODE_OPTIONS would split or quote. */
const NODE_FLAG = /^--[A-Za-z0-9][A-Za-z0-9_-]*(=[A-Za-z0-9._,:/@%+-]*)?$/;

const recycle = z
  .strictObject({
    requests: z.int().min(1).max(1_000_000_000).optional().describe('After so many requests (give or take 10 %).'),
    memory: size({ min: '32Mi', max: '1024Gi' })
      .optional()
      .describe('When the process has more resident memory than this.'),
    age: duration({ min: '1m', max: '8760h' }).optional().describe('After this time (give or take 10 %).'),
  })
  .prefault({})
  .describe(
    'When a worker process is replaced, between two requests: at whatever comes first, never unless given. Never two workers of a pod at the same time, and never so that less than half of them would be left.',
  );

const runtime = z
  .strictObject({
    instrument: z
      .boolean()
      .default(true)
      .describe(
        'Whether a supervisor enters the workers through NODE_OPTIONS (docs/runtime.md says what it does, and what is lost without it). Images that are not Node.js are not affected.',
      ),
    nodeFlags: z
      .array(z.string().max(200).regex(NODE_FLAG, 'must be one flag of Node.js or V8, --name or --name=value'))
      .max(32)
      .default([])
      .describe(
        'Flags of Node.js or V8 for the workers, after those that follow from the memory limit and before NODE_OPTIONS of the template. One that NODE_OPTIONS does not allow is left out and logged.',
      ),
    threadPoolSize: z
      .int()
      .min(1)
      .max(1024)
      .optional()
      .describe('Threads of a worker for files, DNS, zlib and crypto (UV_THREADPOOL_SIZE; 4 unless given).'),
    recycle,
  })
  .prefault({})
  .describe('The worker runtime: what Corelane adds to the Node.js processes of the workers.');

const warmup = z
  .strictObject({
    path: requestTarget().default('/').describe('What is rendered: path and query.'),
    requests: z
      .int()
      .min(0)
      .max(1000)
      .default(0)
      .describe('Renders of the path, one after the other, before a new worker process takes requests.'),
  })
  .prefault({})
  .describe('Renders that a worker does before it reports "up". Works with runtime.instrument only.');

const rollout = z
  .strictObject({
    rolling: z
      .strictObject({
        maxSurge: intOrPercent().default('25%').describe('Pods above the wanted number during a rollout.'),
        maxUnavailable: intOrPercent().default(0).describe('Pods below the wanted number during a rollout.'),
        minReadySeconds: z
          .int()
          .min(0)
          .max(3600)
          .default(0)
          .describe('Seconds that a new pod must have been ready before the rollout goes on.'),
        progressDeadlineSeconds: z
          .int()
          .min(10)
          .max(86_400)
          .default(600)
          .describe('Seconds without progress after which the rollout counts as failed (condition Stalled).'),
      })
      .prefault({})
      .describe('Rolling update, as in a Deployment.'),
  })
  .prefault({})
  .describe('How a change reaches the pods.');

const drain = z
  .strictObject({
    delay: duration({ min: '0s', max: '5m' })
      .default('4s')
      .describe(
        'A pod that is to stop goes on accepting connections until no request has come for so long, so that every endpoint list has forgotten it. Where requests do not cease it stops all the same after ten times as long again, 30 s at most.',
      ),
    timeout: duration({ min: '1s', max: '2h' })
      .optional()
      .describe(
        'Longest time after that a stopping pod may take to finish its queue and its renders. 60s unless given, or queue.timeout and timeouts.render together if that is longer.',
      ),
  })
  .prefault({})
  .describe('What happens when a pod is to stop.');

const disruptionBudget = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether a PodDisruptionBudget is made.'),
    maxUnavailable: intOrPercent()
      .default(1)
      .describe('Pods that an eviction (kubectl drain, a node upgrade) may take at once.'),
  })
  .prefault({})
  .describe('PodDisruptionBudget of the fleet.');

/** Shape of the spec without the rules between fields. The order is the order of the reference. */
export const specShape = z.strictObject({
  workersPerPod: z
    .int()
    .min(1)
    .max(WORKERS_PER_POD_MAX)
    .default(2)
    .describe('Worker containers per pod, one CPU each.'),
  concurrency: z
    .int()
    .min(1)
    .max(1000)
    .default(1)
    .describe(
      'Requests that one worker gets at a time. 1 for CPU-bound renders; more only for workers that mostly wait.',
    ),
  replicas: z
    .int()
    .min(0)
    .max(10_000)
    .default(2)
    .describe(
      'Pods. kubectl scale, an HPA or KEDA set it through the scale subresource; with scaling set, the operator does.',
    ),
  scaling,
  template: podTemplate,
  balance: z
    .enum(['first', 'roundrobin', 'leastconn'])
    .default('roundrobin')
    .describe(
      'Which free worker gets a request: roundrobin spreads evenly; first keeps a few workers warm; leastconn is for concurrency above 1.',
    ),
  queue,
  timeouts,
  replay: z
    .enum(['Safe', 'Always', 'Never'])
    .default('Safe')
    .describe(
      'Whether the request that a dying worker was rendering is given once to another one: Safe replays GET, HEAD and OPTIONS; Always replays every method, for renders without side effects; Never replays none. What is not replayed is answered 502 at once. A request that no worker has begun is never lost, whatever its method.',
    ),
  buffering,
  forwarded,
  ping,
  keepAlive,
  webSockets,
  limits,
  service,
  sidecar,
  readiness,
  pooling,
  watchdog,
  runtime,
  warmup,
  rollout,
  drain,
  disruptionBudget,
  networkPolicy,
});

/** Defaulted spec: what every later step works from. */
export type RenderServiceSpec = z.output<typeof specShape>;
/** Spec as a user may write it. */
export type RenderServiceSpecInput = z.input<typeof specShape>;

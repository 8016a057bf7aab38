/**
 * The codes of `corelane check` and `corelane convert`: the only place where they stand. docs/check.md is made from
 * this table (`make generate`). A code keeps its meaning for ever; a new one gets the next number.
 */
import type { Level } from './levels.ts';

interface CodeEntry {
  /** A line of the checklist: what is looked at. */
  title: string;
  /** Levels that its findings may have, harmless first. */
  levels: readonly Level[];
  /** What it looks at beside the file: `node size`, `cluster`. */
  needs?: string;
  /** What it finds, and why that matters. */
  meaning: string;
  wayOut: string;
}

export const CODES = {
  C001: {
    title: 'probes, lifecycle, ports of the worker',
    levels: ['info', 'decide', 'error'],
    meaning:
      'Corelane checks the workers through HAProxy, where a check never waits behind a render, and stops them when the proxies have drained. Their ports belong to the proxy of the pod, and PORT is set for each worker. `convert` removes probes, `lifecycle`, `ports`, `PORT` and `NITRO_PORT`; in a RenderService the API server refuses probes, `lifecycle` and `hostPort`. What `postStart` did, and what `preStop` did beside waiting, is no longer done.',
    wayOut:
      'Nothing to do where the level is info. Handle SIGTERM instead of `preStop`; do the work of `postStart` at the start of the program, or in an init container; let `warmup` render pages before a new worker takes requests; let load balancers outside the cluster ask `ping.path`.',
  },
  C002: {
    title: 'CPU of a worker',
    levels: ['info', 'warning', 'decide'],
    meaning:
      'A render takes one CPU for as long as it lasts, and one Node.js process renders on one CPU. A container that asks for 4 CPUs becomes 4 workers with one each; one that asks for 500m may get half a CPU where the node is busy; a CPU limit below 1 stops every render for part of each 100 ms. Without a request each worker asks for 1 CPU.',
    wayOut:
      'Give a worker `requests.cpu: "1"` and no CPU limit. Choose the number of workers with `--workers-per-pod`; `replicas` and the bounds of `scaling` are divided by it.',
  },
  C003: {
    title: 'the pod fits a node',
    levels: ['info', 'error'],
    needs: 'the size of a node: --node-cpu, or a cluster',
    meaning:
      'A pod asks for `workersPerPod` times the CPU of a worker, 100m for the proxies, and what other containers ask for. Of the CPUs of a machine the node agent and the system keep a part (a 4-vCPU node has about 3.92), and DaemonSets take some more. A pod that asks for more than any node has stays Pending. A pod that fits once where another size would let more workers fit leaves CPUs idle.',
    wayOut: 'Set the `workersPerPod` that the finding names, or use larger nodes.',
  },
  C004: {
    title: 'second listeners',
    levels: ['decide'],
    meaning:
      'All workers of a pod share one network. A second listener (metrics on 9464, an admin page, the inspector on 9229) is wanted by each of them on the same port, and only the first gets it. Corelane leads nothing to it from outside: its Service has the one port of the proxy, and its NetworkPolicy closes the others. A server that is told its port on the command line, or by a variable that it reads before PORT (NITRO_PORT), listens on the same one in every worker.',
    wayOut:
      'Let the server listen on `$PORT` only. Give a second listener a port for each worker (a base plus `WORKER_INDEX`), push metrics instead, or use those of the worker runtime (docs/metrics.md).',
  },
  C005: {
    title: 'one process for each worker',
    levels: ['warning', 'error'],
    meaning:
      '`cluster`, PM2, throng or WEB_CONCURRENCY start several processes behind one port. All of them together get the one request that their worker has at a time, so all but one idle, and take memory. `workersPerPod` replaces them.',
    wayOut: 'Start the server itself (`node server.js`), with one process: WEB_CONCURRENCY=1, PM2 without `-i`.',
  },
  C006: {
    title: 'NODE_OPTIONS that would be replaced',
    levels: ['warning', 'decide'],
    needs: 'the image on this machine, for what it sets itself',
    meaning:
      'The worker runtime enters through NODE_OPTIONS of the container. A value in `env` or `envFrom` of the template is kept. One of the image (`ENV NODE_OPTIONS`) cannot be seen and is replaced, with a heap size in it. A command that sets or unsets the variable keeps the runtime out. Before Node.js 22.15 the supervisor loads a module that a command puts in front of the variable, too: an agent that listens on a port then has it twice (EADDRINUSE).',
    wayOut:
      'Repeat the value of the image in `env` of the worker, or in `runtime.nodeFlags`. Let a script keep what it finds: `NODE_OPTIONS="$NODE_OPTIONS --flag"`.',
  },
  C007: {
    title: 'memory of a worker',
    levels: ['info', 'warning', 'error'],
    meaning:
      'V8 may fill three quarters of the memory limit with old objects; the rest is for buffers, code, threads and the worker runtime (20 MB). Below 256Mi too little is left for pages. A `--max-old-space-size` or `--max-heap-size` above three quarters of the limit ends in OOMKilled before V8 collects. A heap snapshot (`--heapsnapshot-near-heap-limit`) takes several times the heap: without room for that the kernel kills the worker, and the file has 0 bytes. Where several processes shared the limit of one container, each worker gets its part of it.',
    wayOut: 'Raise `limits.memory` of the worker, or leave `--max-old-space-size` out: Corelane sets it.',
  },
  C008: {
    title: 'time-outs in front, and grace period',
    levels: ['info'],
    meaning:
      'Whoever closes an idle connection first must not be the side that is about to receive a request, so `keepAlive.idleTimeout` is longer than the idle time-out of the load balancer in front. A stopping pod gets the longer of its own grace period and of what a drain needs.',
    wayOut: 'Set the `keepAlive.idleTimeout` that the finding names. The grace period needs nothing.',
  },
  C009: {
    title: 'one autoscaler',
    levels: ['info', 'warning', 'decide', 'error'],
    meaning:
      'Two controllers that write the number of pods fight. `convert` takes the bounds of a HorizontalPodAutoscaler or ScaledObject on CPU as `scaling`; on other metrics it leaves the number to it. Its target is not taken over: `scaling` adds pods above 20 % of per-core CPU unless told otherwise, and so keeps more of them ready. An autoscaler of the Deployment that a RenderService owns writes what the operator takes back. A VerticalPodAutoscaler changes requests that percentages are reckoned from.',
    wayOut:
      'Delete the old autoscaler when traffic has moved, or let it scale the RenderService (`scaleTargetRef: { apiVersion: corelane.dev/v1alpha1, kind: RenderService }`) and leave `scaling` out. Thresholds: docs/scaling.md.',
  },
  C010: {
    title: 'names, selectors, traffic',
    levels: ['info', 'decide', 'error'],
    meaning:
      'A RenderService makes a Service, a PodDisruptionBudget and more of its own name, and Deployments `NAME-<revision>`, and touches none that belongs to somebody else: it waits (condition Stalled). Pods with the labels of the old ones would be taken by the old Service, which sends to a port where nobody listens. `convert` therefore takes those labels out of the template, and lets affinities that meant them mean the new pods. `convert` writes nothing (error) where the move would open or delete something: a Service leads to a container in front of the application (nginx, Envoy, oauth2-proxy, an ambassador); a NetworkPolicy, or a policy of a mesh, does not select the new pods; the name belongs to a Service that has to stay.',
    wayOut:
      'Give it a name of its own (`--name`), let both run side by side and move the selector of the old Service; or delete the old objects first, which is an outage. `convert` prints the commands; docs/convert.md explains them, and what to do about each error.',
  },
  C011: {
    title: 'sticky sessions, WebSockets, streams, uploads',
    levels: ['decide'],
    meaning:
      'Any free worker of any pod renders a request, so what one worker remembers of a visitor another one does not know. WebSockets need `webSockets.enabled` and take a place of their worker for as long as they last. A stream takes no render slot, up to 32 in a worker. A long poll takes one for at most `timeouts.render`. Uploads above `buffering.request.maxSize` are refused.',
    wayOut:
      'Keep sessions outside of the workers (a cookie, Redis). Give long polls and more streams a class. Leave WebSockets in a Deployment of their own, or set the field that the finding names.',
  },
  C012: {
    title: 'volumes, other containers, host',
    levels: ['info', 'warning', 'decide', 'error'],
    meaning:
      'Ports 8998 to 9201 of a pod, the container names nginx, haproxy, corelane-runtime, corelane-assets and worker-N, and volumes named corelane-... are taken. Pods of one RenderService are on several nodes and overlap in a rollout, so a volume that one node or one pod may mount (ReadWriteOnce, ReadWriteOncePod) keeps the others Pending. Every pod uses the same ports, so `hostNetwork` is refused. Containers beside the workers get SIGTERM when the pod has drained, as the workers do, unless they have a `preStop` hook of their own; native sidecars end after the workers. In a [service mesh](meshes.md) some ports need an exception.',
    wayOut:
      'Rename what clashes, give other containers other ports, use ReadWriteMany or an emptyDir. Leave `preStop` out, or make a container that workers need to the very end a native sidecar (`initContainers`, `restartPolicy: Always`).',
  },
  C013: {
    title: 'image',
    levels: ['info', 'warning', 'error'],
    needs: 'the image on this machine, where its name does not tell',
    meaning:
      'The worker runtime works in Node.js 18.19 and newer; other images are served without it, and a stuck worker is not noticed. Alpine works. `npm start` works: the supervisor finds the server below it. Programs that watch files (nodemon, `next dev`) are for development. With `--permission` the supervisor needs `--allow-child-process` (from Node.js 25 on also `--allow-net`), and the right to read its own files, the live settings and /proc.',
    wayOut: 'Use a newer Node.js; start the built server; see docs/how-to/err-access-denied.md for `--permission`.',
  },
  C014: {
    title: 'LimitRanges take the pods and leave the proxies alone',
    levels: ['warning', 'error'],
    needs: 'a cluster, or the LimitRange as a file',
    meaning:
      'A LimitRange with a minimum, a maximum or a ratio counts for each container of the pod: for the worker, and for the proxies, whose resources are in `spec.sidecar`. The init containers that Corelane adds have the resources of the worker. A LimitRange with a default (or a maximum) of CPU gives every container without a CPU limit one. Corelane gives the proxies none unless the worker has one: a throttled proxy delays every request behind it, and a throttled worker every page.',
    wayOut:
      'Set the fields that the finding names. Against throttling take `cpu` out of `default` and `max` of the LimitRange, or set `sidecar.nginx.cpuLimit` and `sidecar.haproxy.cpuLimit` to `"1"`: a proxy has one thread, which cannot use more.',
  },
  C015: {
    title: 'percent of a small request',
    levels: ['warning'],
    meaning:
      '`scaling.cpu` compares usage with the CPU request of a worker. 20 % of 250m is 50m: what an idle worker, its garbage collector and a page now and then take. The fleet grows to `maxReplicas` and stays there.',
    wayOut: 'Give a worker `requests.cpu: "1"`, or scale by `occupancy`.',
  },
  C016: {
    title: 'fields without a place, or with another one',
    levels: ['info', 'warning', 'decide'],
    meaning:
      '`convert` tells what became of each field of its input that is not in its output. It does not mention fields that the cluster fills in by itself, and empty ones (`null`, `{}`). A field or an annotation that names a container gets its new name. One that names the worker gets the names of all workers.',
    wayOut: 'Read what the finding says; most need nothing.',
  },
  C017: {
    title: 'documents that were not used',
    levels: ['info', 'warning'],
    meaning:
      'A document that belongs to another workload, or of a kind that a RenderService has nothing to do with, is left out of the output.',
    wayOut: 'Nothing to do; keep it where it is.',
  },
  C018: {
    title: 'kinds that cannot be converted',
    levels: ['error'],
    meaning:
      'A RenderService replaces a stateless Deployment. Pods of a StatefulSet have names and volumes of their own, those of a DaemonSet a node, those of a Job an end, and a Knative Service scales to zero.',
    wayOut: 'The finding names it for each kind.',
  },
  C019: {
    title: 'what the API server refuses',
    levels: ['error'],
    meaning: 'The rules of the RenderService itself, in the words of `kubectl apply` (docs/bad-resources.md).',
    wayOut: 'The message names it.',
  },
  C020: {
    title: 'what the operator says',
    levels: ['warning', 'error'],
    needs: 'a cluster',
    meaning:
      'The conditions of a RenderService that runs: `Stalled` (an object of its name belongs to somebody else, a rollout came to nothing), `WorkersHealthy` (a worker ends again and again), `Ready`, `CapacityAvailable`, `ConcurrencyTuned` (workers are taken and idle), `ObjectsInSync`, `SchemaInStep`.',
    wayOut: 'The message has it (docs/why-no-pods.md, docs/bad-resources.md).',
  },
  C021: {
    title: 'who the client is',
    levels: ['warning'],
    meaning:
      'The address of a client counts in `limits.perClient`, in the quarantine, in the access log and in the application. Corelane takes it from `X-Forwarded-For` if the connection comes from a range in `forwarded.trust`, and from the connection otherwise. A range of all addresses lets every client choose its address. A list without the range of the ingress makes the ingress the client, and every page one of `http`: many applications then redirect without an end. A load balancer that passes connections on hides the clients, unless nodes keep their addresses or it sends PROXY headers.',
    wayOut:
      'Compare `client` and `proxy` in the access log with your own address. docs/edge.md and docs/gateways.md say what to trust.',
  },
  C022: {
    title: 'what framework stands for',
    levels: ['info'],
    meaning:
      '`framework` stands for assets, classes, concurrency, priority, headers of the cache, and variables of the workers. The finding says which, with their paths: `basePath` is a part of these.',
    wayOut: 'Nothing to do, if the application is built so. A field of yours takes the place of what the preset says.',
  },
  C023: {
    title: 'memory for heads',
    levels: ['warning'],
    meaning:
      'Both proxies keep the whole head of a request and of a response in memory. With a `memoryLimit` below 160Mi a proxy takes heads of 16Ki at most, and below 256Mi of 64Ki, whatever `buffering.maxHeaderSize` says.',
    wayOut:
      'Raise `sidecar.nginx.memoryLimit` and `sidecar.haproxy.memoryLimit`, or set the bound that holds (docs/edge.md).',
  },
  C024: {
    title: 'what the cluster refuses',
    levels: ['error'],
    needs: 'a cluster, and --server',
    meaning:
      'With `--server` the API server is asked by dry runs, which write nothing: about the RenderService, about each object that the operator makes of it, and about one of its pods. So admission policies and webhooks, Pod Security, LimitRanges and ResourceQuotas are known before the RenderService is applied, and so is an object of the same name that belongs to somebody else. It takes the rights to create and patch what is asked about; the rest is skipped.',
    wayOut: 'The message has it, or names the field.',
  },
} as const satisfies Record<string, CodeEntry>;

export type Code = keyof typeof CODES;

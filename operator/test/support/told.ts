/**
 * What the operator says where the API server has nothing to refuse, and what costs nobody anything.
 * docs/bad-resources.md is made from these tables; the test that makes such a world asks for the very text of its row
 * (admission.test.ts sees to it that there is one for each), so a message cannot change in one place only.
 */

interface Told {
  /** What is wrong. */
  what: string;
  /** Where it is said. */
  where: string;
  /** "..." is what is another one each time. */
  message: string;
}

export const TOLD = {
  templateTooLarge: {
    what: 'a template that makes a Deployment too large to be stored, with its 64 workers for example',
    where: '`Stalled` InvalidSpec',
    message:
      'spec.template: makes a Deployment of some ... kB, and the API server stores 1400 kB: each of ... workers has a copy of its container (... kB). Keep large values and long lists in a ConfigMap (envFrom, a volume), or set fewer workersPerPod',
  },
  olderSchema: {
    what: 'a spec that has slipped through an older CustomResourceDefinition',
    where: '`Stalled` InvalidSpec',
    message:
      'spec.drain.timeout: must not be shorter than queue.timeout and timeouts.render together: ... (2 pods keep serving)',
  },
  crdOutdated: {
    what: 'a CustomResourceDefinition that is older than the operator',
    where: '`SchemaInStep` CrdOutdated',
    message:
      'the CustomResourceDefinition of the cluster is older than the operator: it drops .... Upgrade it: the chart does with crds.enabled, or kubectl apply --server-side -f crds/',
  },
  unknownFields: {
    what: 'an operator that is older than the CustomResourceDefinition, beside a spec with newer fields',
    where: '`SchemaInStep` UnknownFields',
    message:
      'the operator is older than the CustomResourceDefinition and works without ..., which it does not know. Upgrade it, or take these out',
  },
  rejected: {
    what: 'what only the Deployment refuses: a mount without its volume, a request above its limit',
    where: '`Stalled` Rejected',
    message: 'the API server refuses Deployment "...": Deployment.apps "..." is invalid: ...spec.template...',
  },
  rejectedTooLarge: {
    what: 'a Deployment that is too large for an etcd that takes less than by default (--max-request-bytes)',
    where: '`Stalled` Rejected',
    message: 'the API server refuses Deployment "...": etcdserver: request is too large',
  },
  notOwned: {
    what: 'an object of somebody else that has the name of one of ours',
    where: '`Stalled` NotOwned',
    message:
      '... "..." exists and does not belong to this RenderService; it is left alone. Delete or rename it, or give the RenderService another name.',
  },
  notOwnedSibling: {
    what: 'two RenderServices named `shop` and `shop-peers`',
    where: '`Stalled` NotOwned',
    message:
      'Service "..." belongs to RenderService "..." (each has a Service of its own name, and one with "-peers" behind it); give one of the two RenderServices another name.',
  },
  deadline: {
    what: 'a rollout that comes to nothing',
    where: '`Stalled` ProgressDeadlineExceeded',
    message:
      'revision ... makes no progress; container worker-0 of pod ...: ImagePullBackOff (...): is the name right, is it there, and does the node have the right to it (imagePullSecrets)? (2 pods keep serving)',
  },
  canaryAborted: {
    what: 'a canary whose pods come to nothing',
    where: '`Stalled` RolloutAborted',
    message:
      'canary ...: its pods did not become available within rollout.rolling.progressDeadlineSeconds; stable serves with 2 of 2; change the spec, or try it again with corelane rollout retry (corelane.dev/rollout-retry: ...#2) (2 pods keep serving)',
  },
  canaryJudged: {
    what: 'a canary of which more requests fail than of the stable revision',
    where: '`Stalled` RolloutAborted',
    message:
      'canary ...: ... of ... requests failed, stable ... of ...; stable serves with 4 of 4; change the spec, or try it again with corelane rollout retry (corelane.dev/rollout-retry: ...#2) (4 pods keep serving)',
  },
  retrying: {
    what: 'a webhook of somebody else that is away, or an API server that answers 5xx',
    where: '`Reconciling` Retrying',
    message: 'the operator tries again and again: ...failed calling webhook "..."...',
  },
  takenBack: {
    what: 'a write into an object of ours: `kubectl set image`, `kubectl scale`, Reloader, kube-downscaler',
    where: '`ObjectsInSync` TakenBack, and an Event',
    message:
      'Deployment "...": "..." sets spec.template...; set spec.template of RenderService "..." instead. Corelane has restored what the RenderService asks for',
  },
  contended: {
    what: 'another program that writes an object of ours, again and again',
    where: '`ObjectsInSync` Contended',
    message:
      'Service "...": "..." sets spec.externalIPs...; set spec.service of RenderService "..." instead. This happens again and again, so Corelane repairs it at most once a minute now. Exclude the object from that program',
  },
  mutated: {
    what: 'a webhook or a policy of the cluster that changes an object of ours, and does no harm: another registry for images',
    where: '`ObjectsInSync` Mutated (True)',
    message:
      'mutating admission changes what Corelane applies: Deployment "...": spec.template....image is ... instead of .... Corelane leaves it so',
  },
  mutationHurts: {
    what: 'one that takes CPU or memory from a proxy, or time from a drain, as GKE Autopilot does',
    where: '`ObjectsInSync` MutationHurts, and an Event',
    message:
      'mutating admission changes what Corelane applies, and that hurts: Deployment "...": the ... limit of nginx is ..., .... Exempt the object from that webhook or policy. Where it makes limits equal to requests, raise sidecar.nginx.cpu and memory, and those of sidecar.haproxy...',
  },
  noPeersKey: {
    what: 'an operator that may not create Secrets',
    where: 'Event NoPeersKey',
    message: 'pods work alone, because the Secret with their key cannot be created: secrets is forbidden: ...',
  },
  unreachable: {
    what: 'pods that the operator cannot reach',
    where: '`WorkersHealthy` NotSampled',
    message: 'the operator cannot read port 8999 of pod ... (...); does a NetworkPolicy forbid it?',
  },
  runtimeAbsent: {
    what: 'an image without Node.js, or one that takes NODE_OPTIONS or child processes away',
    where: '`WorkersHealthy` RuntimeAbsent',
    message:
      'the worker runtime is absent in ... of ... workers: a stuck worker is not noticed, and one that ends restarts its container. Either the image has no Node.js (18.19 or newer), or NODE_OPTIONS does not reach its process (a compiled binary, a script that sets or unsets it), or --permission forbids child processes; let NODE_OPTIONS pass, add --allow-child-process, or say by runtime.instrument: false that it is meant',
  },
  crashLoop: {
    what: 'a worker that ends again and again',
    where: '`WorkersHealthy` CrashLoop',
    message:
      'worker-... of pod ... restarts in a loop: exit code ..., ... s between two tries (kubectl logs ... -c worker-...)',
  },
  full: {
    what: 'a fleet that is too small',
    where: '`CapacityAvailable` FleetFull',
    message:
      'every worker of every pod is busy and every queue is nearly full; when they are full requests are answered 503 queue-full. Add pods or workers, or let scaling do it',
  },
  noMetricsApi: {
    what: '`scaling` in a cluster without metrics-server',
    where: '`ScalingActive` NoMetrics',
    message: 'the cluster has no Metrics API (metrics.k8s.io); install metrics-server; the number of pods is held',
  },
  settings: {
    what: "a mistake in the operator's own environment, CORELANE_CONCURRENCY=0 for example",
    where: 'its log; it ends with 78 (EX_CONFIG)',
    message: 'the environment is not complete:... CORELANE_CONCURRENCY: Too small: expected number to be >=1. ...',
  },
  namespaces: {
    what: 'CORELANE_NAMESPACES that are no names',
    where: 'its log; it ends with 78 (EX_CONFIG)',
    message:
      'the environment is not complete:... CORELANE_NAMESPACES: is no name of a namespace. The only namespaces to work in, separated by commas; empty for all.',
  },
  portTaken: {
    what: "a port of the operator's that somebody else has",
    where: 'its log; it ends with 1, and is started again',
    message: 'corelane-operator: listen EADDRINUSE: address already in use ...',
  },
} as const satisfies Record<string, Told>;

/** The whole of a message, as the table has it. */
export function asTold({ message }: Told): RegExp {
  const parts = message.split('...').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/** Names of tests: what somebody may do, and nothing has to be said about it. */
export const HARMLESS = {
  foreignPod: 'a pod that has our label and another controller is neither counted nor asked',
  megabytes: '150 MB of somebody else with our label do not fill the memory',
  lease: 'a Lease that somebody has written for thirty years is taken over within a minute or so',
  connections: 'whoever takes all connections of the metrics takes none of the probes',
  evicted: 'pods that have ended, by an eviction or a shut-down of their node, are no pods',
  lateObject: 'an object that somebody makes in the last moment is not taken over',
} as const;

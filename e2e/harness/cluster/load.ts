/** Load from inside the cluster: the client of e2e/load in a pod, from a ConfigMap, with the storefront image. */
import { apply, eventually, get, kubectl, SELDOM_MS } from './cluster.ts';
import { imageNames } from './operator.ts';

/** What `load.mjs --json` prints (e2e/load/stats.mjs); only the fields that are used here. */
export interface LoadResult {
  requests: number;
  ok: number;
  failed: number;
  overlaps: number;
  [field: string]: unknown;
}

/** Service account that may list EndpointSlices; `allowEndpoints` makes it. */
const INGRESS_ACCOUNT = 'load-ingress';

interface Pod {
  status: { phase: string };
}

/** Creates the ConfigMap with the load client's files. */
async function deliverClient(namespace: string): Promise<void> {
  const manifest = await kubectl([
    ...[
      '-n',
      namespace,
      'create',
      'configmap',
      'load-client',
      '--from-file=e2e/load',
      '--dry-run=client',
      '-o',
      'yaml',
    ],
  ]);
  await apply(manifest, '--server-side', '--force-conflicts');
}

/** Lets the load client find pods by EndpointSlices, as an ingress controller does. */
export async function allowEndpoints(namespace: string): Promise<void> {
  const metadata = { name: INGRESS_ACCOUNT, namespace };
  const items = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: INGRESS_ACCOUNT },
      subjects: [{ kind: 'ServiceAccount', name: INGRESS_ACCOUNT, namespace }],
    },
  ];
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

export interface Load {
  /** Waits for its end. */
  result: (timeoutMs: number) => Promise<LoadResult>;
  /** Ends it; what was in flight counts as STOPPED. */
  stop: () => Promise<LoadResult>;
}

/** For the answer of a client that was told to end. */
const STOP_MS_MAX = 120_000;

/**
 * Starts a pod that runs the load client with `args`.
 * @param name name of the pod; an old one of that name is replaced
 */
export async function startLoad(namespace: string, name: string, args: string[]): Promise<Load> {
  await deliverClient(namespace);
  await kubectl(['-n', namespace, 'delete', 'pod', name, '--ignore-not-found', '--grace-period=0', '--force']);
  await apply(JSON.stringify(loadPod(namespace, name, args)));
  const result = (timeoutMs: number) => loadResult(namespace, name, timeoutMs);
  const stop = async () => {
    // At SIGTERM the client prints its result.
    await kubectl(['-n', namespace, 'exec', name, '--', 'node', '-e', 'process.kill(1, "SIGTERM")']).catch((error) => {
      // The container's end may take the sender of the signal with it.
      if (!String(error).includes('exited with 137')) throw error;
    });
    return await result(STOP_MS_MAX);
  };
  return { result, stop };
}

/** Errors of a load that was stopped: what it had in flight then is nobody's loss. */
export function lost({ errors }: LoadResult): Record<string, number> {
  const { STOPPED: _stopped, ...others } = errors as Record<string, number>;
  return others;
}

async function loadResult(namespace: string, name: string, timeoutMs: number): Promise<LoadResult> {
  const check = async () => {
    const pod = await get<Pod>('-n', namespace, 'pod', name);
    return ['Succeeded', 'Failed'].includes(pod.status.phase) ? pod.status.phase : undefined;
  };
  const phase = await eventually(`load pod ${name} to end`, timeoutMs, check, SELDOM_MS);
  const log = (await kubectl(['-n', namespace, 'logs', name])).trim();
  if (phase === 'Failed') throw new Error(`load pod ${name} failed:\n${log.slice(-2_000)}`);
  await kubectl(['-n', namespace, 'delete', 'pod', name, '--wait=false']);
  // A line of its progress, which goes another way, may come behind it.
  return JSON.parse(log.split('\n').findLast((line) => line.startsWith('{')) ?? '') as LoadResult;
}

function loadPod(namespace: string, name: string, args: string[]) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: 'load-client' } },
    spec: {
      restartPolicy: 'Never',
      // Only the client that looks for endpoints needs to ask the API server.
      serviceAccountName: args.includes('--endpoints') ? INGRESS_ACCOUNT : 'default',
      automountServiceAccountToken: args.includes('--endpoints'),
      terminationGracePeriodSeconds: 5,
      containers: [
        {
          name: 'load',
          image: imageNames().storefront,
          imagePullPolicy: 'IfNotPresent',
          command: ['node', '/load/load.mjs', '--json', ...args],
          env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' }],
          volumeMounts: [{ name: 'client', mountPath: '/load', readOnly: true }],
          resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            readOnlyRootFilesystem: true,
            runAsNonRoot: true,
            seccompProfile: { type: 'RuntimeDefault' },
          },
        },
      ],
      volumes: [{ name: 'client', configMap: { name: 'load-client' } }],
    },
  };
}

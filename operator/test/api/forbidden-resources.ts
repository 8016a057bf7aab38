/** What the chart's ValidatingAdmissionPolicy keeps from tenants, and the right by which one may have it. */
import type { PolicyRule } from '../../src/kube/rbac.ts';
import type { Json } from '../support/api-client.ts';
import { podTemplate } from '../support/world.ts';

const rule = (
  apiGroup: string,
  resource: string,
  verb: string,
  name?: string,
): PolicyRule & { resourceNames?: string[] } => ({
  apiGroups: [apiGroup],
  resources: [resource],
  verbs: [verb],
  ...(name && { resourceNames: [name] }),
});

/** The account that pods have unless their template names another one. */
const DEFAULT_ACCOUNT = rule('', 'serviceaccounts', 'impersonate', 'default');

/** Users by name, and what each may do beside all with RenderServices. */
export const RIGHTS = {
  tenant: [DEFAULT_ACCOUNT],
  'creates-pods': [rule('', 'pods', 'create')],
  'creates-services': [DEFAULT_ACCOUNT, rule('', 'services', 'create')],
  'creates-policies': [DEFAULT_ACCOUNT, rule('networking.k8s.io', 'networkpolicies', 'create')],
  impersonates: [DEFAULT_ACCOUNT, rule('', 'serviceaccounts', 'impersonate', 'batch')],
  'uses-host': [DEFAULT_ACCOUNT, rule('corelane.dev', 'renderservices/host', 'use')],
  'uses-host-elsewhere': [DEFAULT_ACCOUNT, rule('corelane.dev', 'renderservices/host', 'use', 'another')],
} as const;

export type Tenant = keyof typeof RIGHTS;

export interface Forbidden {
  what: string;
  spec: Json;
  /** Labels of the RenderService. */
  labels?: Record<string, string>;
  /** Part of the resource that the message names. */
  field: string;
  allowed: Tenant[];
}

const container = (fields: object) => ({ template: podTemplate(fields) });
const pod = (fields: object) => ({ template: podTemplate({}, fields) });
const volume = (source: object) => pod({ volumes: [{ name: 'mine', ...source }] });
const secondary = (fields: object) =>
  pod({
    containers: [
      { name: 'worker', image: 'a:1' },
      { name: 'log', image: 'log:1', ...fields },
    ],
  });
const init = (fields: object) => pod({ initContainers: [{ name: 'init', image: 'init:1', ...fields }] });

const POD = 'spec.template.spec';
const CONTAINERS = `${POD}.containers`;
const host = (what: string, spec: Json, field = POD): Forbidden => ({ what, spec, field, allowed: ['uses-host'] });
const borrowed = (what: string, spec: Json): Forbidden => ({ what, spec, field: POD, allowed: ['creates-pods'] });
const account = (what: string, spec: Json, allowed: Tenant[]): Forbidden => ({
  what,
  spec,
  field: `${POD}.serviceAccountName`,
  allowed,
});

export const FORBIDDEN: Forbidden[] = [
  // The node
  host("the node's processes", pod({ hostPID: true })),
  host("the node's memory segments", pod({ hostIPC: true })),
  host('a kernel parameter', pod({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } })),
  host('a privileged worker', container({ securityContext: { privileged: true } }), CONTAINERS),
  host('a privileged second container', secondary({ securityContext: { privileged: true } }), CONTAINERS),
  host('a privileged init container', init({ securityContext: { privileged: true } }), CONTAINERS),
  host(
    'a capability beyond the usual',
    container({ securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }),
    CONTAINERS,
  ),
  host('all capabilities', container({ securityContext: { capabilities: { add: ['ALL'] } } }), CONTAINERS),
  host('an unmasked /proc', container({ securityContext: { procMount: 'Unmasked' } }), CONTAINERS),
  host(
    'a process of a Windows node',
    container({ securityContext: { windowsOptions: { hostProcess: true } } }),
    CONTAINERS,
  ),
  host('a worker without seccomp', container({ securityContext: { seccompProfile: { type: 'Unconfined' } } })),
  host('a pod without seccomp', pod({ securityContext: { seccompProfile: { type: 'Unconfined' } } })),
  host('a worker without AppArmor', container({ securityContext: { appArmorProfile: { type: 'Unconfined' } } })),
  host('a worker without AppArmor, by the old annotation', {
    template: {
      ...podTemplate(),
      metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/worker-0': 'unconfined' } },
    },
  }),
  host('a worker that SELinux lets do anything', container({ securityContext: { seLinuxOptions: { type: 'spc_t' } } })),
  host('a pod that SELinux lets do anything', pod({ securityContext: { seLinuxOptions: { type: 'spc_t' } } })),
  host('a role of SELinux', init({ securityContext: { seLinuxOptions: { role: 'system_r' } } })),
  host('a user of SELinux', secondary({ securityContext: { seLinuxOptions: { user: 'system_u' } } })),
  host(
    "kubelet's question to a port of the node",
    secondary({ readinessProbe: { httpGet: { host: '127.0.0.1', port: 10_250 } } }),
    CONTAINERS,
  ),
  host(
    "kubelet's connection to somebody else",
    secondary({ livenessProbe: { tcpSocket: { host: '10.0.0.1', port: 80 } } }),
    CONTAINERS,
  ),
  host(
    "kubelet's request to somebody else",
    secondary({ lifecycle: { postStart: { httpGet: { host: '10.0.0.1', port: 80 } } } }),
    CONTAINERS,
  ),
  host('a port of the node', secondary({ ports: [{ containerPort: 80, hostPort: 80 }] }), CONTAINERS),
  host('a folder of the node', volume({ hostPath: { path: '/' } }), `${POD}.volumes`),
  host('a file server', volume({ nfs: { server: 'a', path: '/' } }), `${POD}.volumes`),

  // The namespace
  account("another's ServiceAccount", pod({ serviceAccountName: 'batch' }), ['creates-pods', 'impersonates']),
  account("another's ServiceAccount by the old name of the field", pod({ serviceAccount: 'batch' }), [
    'creates-pods',
    'impersonates',
  ]),
  account("another's ServiceAccount beside an empty name", pod({ serviceAccountName: '', serviceAccount: 'batch' }), [
    'creates-pods',
    'impersonates',
  ]),
  borrowed('a Secret as a volume', volume({ secret: { secretName: 'key' } })),
  borrowed('a Secret among others in a volume', volume({ projected: { sources: [{ secret: { name: 'key' } }] } })),
  borrowed(
    'a Secret as a variable',
    container({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'key', key: 'a' } } }] }),
  ),
  borrowed('a Secret as all variables', init({ envFrom: [{ secretRef: { name: 'key' } }] })),
  borrowed('a Secret for the registry', pod({ imagePullSecrets: [{ name: 'pull' }] })),
  borrowed('a ConfigMap', volume({ configMap: { name: 'settings' } })),
  {
    what: 'a ConfigMap that all the world reads',
    spec: { fallback: { configMap: { name: 'settings' } } },
    field: 'spec.fallback.configMap',
    allowed: ['creates-pods'],
  },
  {
    what: 'a Secret that is sent to an endpoint',
    spec: { tracing: { endpoint: 'http://example.com', headersFrom: { name: 'key', key: 'a' } } },
    field: 'spec.tracing.headersFrom',
    allowed: ['creates-pods'],
  },
  borrowed('a node of its choice', pod({ nodeName: 'node-1' })),
  borrowed('a node that keeps others away', pod({ tolerations: [{ operator: 'Exists' }] })),
  borrowed("a place before others' pods", pod({ priorityClassName: 'system-cluster-critical' })),
  borrowed('another scheduler', pod({ schedulerName: 'mine' })),
  borrowed('another container runtime', pod({ runtimeClassName: 'host' })),
  borrowed("another's volume", volume({ persistentVolumeClaim: { claimName: 'data' } })),
  borrowed('a device of the namespace', pod({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'mine' }] })),
  borrowed("a driver's volume", volume({ csi: { driver: 'example.com' } })),

  // The network
  {
    what: 'a port of every node',
    spec: { service: { type: 'NodePort' } },
    field: 'spec.service',
    allowed: ['creates-services'],
  },
  {
    what: 'a load balancer',
    spec: { service: { type: 'LoadBalancer' } },
    field: 'spec.service',
    allowed: ['creates-services'],
  },
  {
    what: 'an annotation of the Service',
    spec: { service: { annotations: { 'example.com/public': 'true' } } },
    field: 'spec.service',
    allowed: ['creates-services'],
  },
  {
    what: 'a label of the Service',
    spec: { service: { labels: { 'service.kubernetes.io/service-proxy-name': 'mine' } } },
    field: 'spec.service',
    allowed: ['creates-services'],
  },
  {
    what: 'a label that other controllers obey, on all objects',
    spec: {},
    labels: { team: 'web', 'multicluster.linkerd.io/exported': 'true' },
    field: 'metadata.labels',
    allowed: ['creates-services'],
  },
  {
    what: 'a rule of the NetworkPolicy',
    spec: { networkPolicy: { ingress: [{}] } },
    field: 'spec.networkPolicy',
    allowed: ['creates-policies'],
  },
  {
    what: 'somebody who monitors',
    spec: { networkPolicy: { monitoring: [{ namespaceSelector: {} }] } },
    field: 'spec.networkPolicy',
    allowed: ['creates-policies'],
  },
];

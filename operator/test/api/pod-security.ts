/**
 * Pods that Pod Security's "baseline" has an opinion on: each of its controls, in each kind of container. Made after
 * the list of controls at https://kubernetes.io/docs/concepts/security/pod-security-standards/.
 */
import type { Json } from '../support/api-client.ts';

export interface SecurityCase {
  /** Title: the control, the kind of container, and the fields. */
  what: string;
  control: string;
  template: { metadata?: Json; spec: Json };
}

const WORKER = { name: 'worker', image: 'corelane.test/app:1' };
const OTHER = { name: 'other', image: 'corelane.test/other:1' };

/** A template by what its pod has beside a worker. */
function template(pod: object, metadata?: Json): SecurityCase['template'] {
  return { ...(metadata && { metadata }), spec: { containers: [WORKER], ...pod } };
}

/** The same fields in each kind of container. */
const KINDS: Record<string, (fields: object) => object> = {
  worker: (fields) => ({ containers: [{ ...WORKER, ...fields }] }),
  container: (fields) => ({ containers: [WORKER, { ...OTHER, ...fields }] }),
  'init container': (fields) => ({ initContainers: [{ ...OTHER, ...fields }] }),
  sidecar: (fields) => ({ initContainers: [{ ...OTHER, restartPolicy: 'Always', ...fields }] }),
};

const APPARMOR = 'container.apparmor.security.beta.kubernetes.io';

/** Fields that the security context of a pod and that of a container both have. */
const CONTEXTS: [control: string, context: object][] = [
  ['AppArmor', { appArmorProfile: { type: 'Unconfined' } }],
  ['AppArmor', { appArmorProfile: { type: 'RuntimeDefault' } }],
  ['AppArmor', { appArmorProfile: { type: 'Localhost', localhostProfile: 'mine' } }],
  ['Seccomp', { seccompProfile: { type: 'Unconfined' } }],
  ['Seccomp', { seccompProfile: { type: 'RuntimeDefault' } }],
  ['Seccomp', { seccompProfile: { type: 'Localhost', localhostProfile: 'mine' } }],
  ...['container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t', 'spc_t', 'mine'].map(
    (type): [string, object] => ['SELinux', { seLinuxOptions: { type } }],
  ),
  ['SELinux', { seLinuxOptions: { user: 'system_u' } }],
  ['SELinux', { seLinuxOptions: { role: 'system_r' } }],
  ['SELinux', { seLinuxOptions: { level: 's0:c1,c2' } }],
];

const CONTAINER_CONTEXTS: [control: string, context: object][] = [
  ['Privileged Containers', { privileged: true }],
  ...['SYS_ADMIN', 'NET_RAW', 'NET_ADMIN', 'SYS_PTRACE', 'BPF', 'ALL', 'CAP_CHOWN', 'chown', 'CHOWN', 'KILL'].map(
    (name): [string, object] => ['Capabilities', { capabilities: { add: [name] } }],
  ),
  ['/proc Mount Type', { procMount: 'Unmasked' }],
];

const HOSTS = ['127.0.0.1', 'localhost', '::1', '10.0.0.1', 'example.com'];
const HANDLERS = HOSTS.flatMap((host) => [{ httpGet: { host, port: 80 } }, { tcpSocket: { host, port: 80 } }]);
/** Where kubelet connects to: not in init containers, which have no probes. */
const PROBES = HANDLERS.flatMap((handler) => [
  ...['livenessProbe', 'readinessProbe', 'startupProbe'].map((probe) => ({ [probe]: handler })),
  ...['postStart', 'preStop'].map((hook) => ({ lifecycle: { [hook]: handler } })),
]);

const POD_FIELDS: [control: string, fields: object][] = [
  // Nothing less is valid.
  ['HostProcess', { hostNetwork: true, securityContext: { windowsOptions: { hostProcess: true } } }],
  ...['hostPID', 'hostIPC', 'hostNetwork'].map((name): [string, object] => ['Host Namespaces', { [name]: true }]),
  ...['', 'Directory', 'Socket', 'CharDevice'].map((type): [string, object] => [
    'HostPath Volumes',
    { volumes: [{ name: 'mine', hostPath: { path: '/var', type } }] },
  ]),
  ...['kernel.msgmax', 'net.core.somaxconn', 'net.ipv4.ip_local_port_range', 'kernel.shm_rmid_forced'].map(
    (name): [string, object] => ['Sysctls', { securityContext: { sysctls: [{ name, value: '1' }] } }],
  ),
];

function tried(control: string, where: string, fields: object, pod: object, metadata?: Json): SecurityCase {
  return { what: `${control}: ${where} ${JSON.stringify(fields)}`, control, template: template(pod, metadata) };
}

function ofPods(): SecurityCase[] {
  return [
    ...POD_FIELDS.map(([control, fields]) => tried(control, 'pod', fields, fields)),
    ...CONTEXTS.map(([control, securityContext]) => tried(control, 'pod', securityContext, { securityContext })),
  ];
}

function ofContainers([kind, inContainer]: [string, (fields: object) => object]): SecurityCase[] {
  const contexts = [...CONTEXTS, ...CONTAINER_CONTEXTS].map(([control, securityContext]) => {
    // The API server takes another view of /proc in a user namespace only.
    const pod = control === '/proc Mount Type' ? { hostUsers: false } : {};
    return tried(control, kind, securityContext, { ...inContainer({ securityContext }), ...pod });
  });
  const ports = [80, 12_345].map((hostPort) =>
    tried('Host Ports', kind, { hostPort }, inContainer({ ports: [{ containerPort: hostPort, hostPort }] })),
  );
  const probes = kind === 'init container' ? [] : PROBES;
  return [...contexts, ...ports, ...probes.map((probe) => tried('Host Probes', kind, probe, inContainer(probe)))];
}

function ofAnnotations(): SecurityCase[] {
  return ['unconfined', 'runtime/default', 'localhost/mine'].flatMap((value) =>
    ['worker', 'other'].map((container) => {
      const annotations = { [`${APPARMOR}/${container}`]: value };
      return tried('AppArmor', 'annotation', annotations, { containers: [WORKER, OTHER] }, { annotations });
    }),
  );
}

export const SECURITY_CASES = [...ofPods(), ...Object.entries(KINDS).flatMap(ofContainers), ...ofAnnotations()];

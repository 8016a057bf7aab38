/** The nginx and HAProxy containers and their volumes. The contract with the image is in sidecar/README.md. */
import type { V1Container, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import {
  CACHE_MOUNT_PATH,
  CONFIG_MOUNT_PATH,
  DRAIN_MOUNT_PATH,
  HAPROXY_CONTAINER,
  LABEL_REVISION,
  LIVE_MOUNT_PATH,
  NGINX_CONTAINER,
  PEERS_KEY_MOUNT_PATH,
  PORTS,
  RUN_MOUNT_PATH,
  SHELL_FILE,
  SHELL_MOUNT_PATH,
  VOLUME_PREFIX,
} from '../api/names.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { hasCache } from '../render/model/cache.ts';
import { hasPeers } from '../render/model/pooling.ts';
import { DRAIN_VOLUME } from './drain-hook.ts';
import { cacheBytes, kibibytes, proxyResources } from './resources.ts';
import { sidecarSecurity } from './users.ts';

/** Image of both proxies, the same for all RenderServices of an operator. */
export interface SidecarImage {
  image: string;
  pullPolicy?: string;
}

const CONFIG_VOLUME = `${VOLUME_PREFIX}config`;
/** Of the workers, too. */
export const LIVE_VOLUME = `${VOLUME_PREFIX}live`;
const RUN_VOLUME = `${VOLUME_PREFIX}run`;
const TEMP_VOLUME = `${VOLUME_PREFIX}tmp`;
const PEERS_KEY_VOLUME = `${VOLUME_PREFIX}peers-key`;
const SHELL_VOLUME = `${VOLUME_PREFIX}shell`;
const CACHE_VOLUME = `${VOLUME_PREFIX}cache`;
const NO_TOKEN_VOLUME = `${VOLUME_PREFIX}no-token`;
/** Where the API server mounts the token of the pod's account, unless the container has a mount of its own there. */
const TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
const AT_START = { periodSeconds: 1, failureThreshold: 30 };

/**
 * Mount of every container that Corelane adds: an empty folder where the token of the pod's account would be. The
 * account is that of the namespace or the user's choice, and may do more than a proxy that strangers talk to should be
 * able to. (The pod's own field automountServiceAccountToken would take the token away from the user's containers, too,
 * and Linkerd and Vault put nothing into pods without it.)
 */
export const NO_TOKEN_MOUNT = { name: NO_TOKEN_VOLUME, mountPath: TOKEN_PATH, readOnly: true };

/**
 * For every user of the container that mounts it (root owns the files, HAProxy is not root), and for no other
 * container. Optional: a pod whose Secret was deleted starts, works alone, and gets the key when there is one again.
 */
function peersKeyVolume(secretName: string): V1Volume {
  return { name: PEERS_KEY_VOLUME, secret: { secretName, optional: true, defaultMode: 0o444 } };
}

/** The page of a ConfigMap of the user. Optional: a pod without the page serves all others. */
function shellVolumes({ fallback }: RenderServiceSpec): V1Volume[] {
  if (!fallback?.configMap) return [];
  const { name, key } = fallback.configMap;
  return [{ name: SHELL_VOLUME, configMap: { name, optional: true, items: [{ key, path: SHELL_FILE }] } }];
}

/** Beside nginx' temporary files, whose limits do not know of it. */
function cacheVolumes(spec: RenderServiceSpec): V1Volume[] {
  return hasCache(spec) ? [{ name: CACHE_VOLUME, emptyDir: { sizeLimit: kibibytes(cacheBytes(spec)) } }] : [];
}

/**
 * Volumes of the proxies: configuration, live settings, sockets, marks of a drain, nginx' temporary files and pages,
 * the key of the peers, the page of `fallback`, no token.
 * @param names of both ConfigMaps, and of the Secret, where pods ask each other anything
 */
export function proxyVolumes(
  spec: RenderServiceSpec,
  names: { config: string; live: string; peersKey: string | undefined },
): V1Volume[] {
  return [
    { name: CONFIG_VOLUME, configMap: { name: names.config } },
    { name: LIVE_VOLUME, configMap: { name: names.live } },
    { name: RUN_VOLUME, emptyDir: {} },
    { name: DRAIN_VOLUME, emptyDir: { sizeLimit: '1Mi' } },
    { name: TEMP_VOLUME, emptyDir: {} },
    ...cacheVolumes(spec),
    ...(names.peersKey === undefined ? [] : [peersKeyVolume(names.peersKey)]),
    ...shellVolumes(spec),
    // Nobody can write there.
    { name: NO_TOKEN_VOLUME, emptyDir: { sizeLimit: '1Mi' } },
  ];
}

/**
 * HAProxy first: kubelet stops native sidecars in reverse order, so nginx goes before the proxy behind it.
 * @param peersHost name of the headless Service, without the cluster's domain
 * @param assets mounts of nginx with files of the application
 */
export function proxyContainers(
  spec: RenderServiceSpec,
  peersHost: string,
  sidecar: SidecarImage,
  assets: V1VolumeMount[],
): V1Container[] {
  const shell = { name: SHELL_VOLUME, mountPath: SHELL_MOUNT_PATH, readOnly: true };
  const pages = { name: CACHE_VOLUME, mountPath: CACHE_MOUNT_PATH };
  const peersKey = { name: PEERS_KEY_VOLUME, mountPath: PEERS_KEY_MOUNT_PATH, readOnly: true };
  return [
    {
      ...common(spec, HAPROXY_CONTAINER, sidecar, hasPeers(spec) ? [peersKey] : []),
      env: [
        { name: 'CORELANE_PEERS', value: peersHost },
        {
          name: 'CORELANE_REVISION',
          valueFrom: { fieldRef: { fieldPath: `metadata.labels['${LABEL_REVISION}']` } },
        },
        // By these its peers know it, and it knows what was meant for it.
        { name: 'CORELANE_POD_IPS', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } },
        // kubelet's probes come from there.
        { name: 'CORELANE_HOST_IPS', valueFrom: { fieldRef: { fieldPath: 'status.hostIPs' } } },
      ],
      ports: [
        { name: 'health', containerPort: PORTS.health, protocol: 'TCP' },
        { name: 'stats', containerPort: PORTS.stats, protocol: 'TCP' },
        { name: 'peers', containerPort: PORTS.peers, protocol: 'TCP' },
      ],
      startupProbe: probe('/livez', AT_START),
      livenessProbe: probe('/livez', { periodSeconds: 5, failureThreshold: 6 }),
      readinessProbe: probe('/readyz', { periodSeconds: 1, failureThreshold: 2 }),
    },
    {
      ...common(spec, NGINX_CONTAINER, sidecar, [
        ...(spec.fallback?.configMap ? [shell] : []),
        ...(hasCache(spec) ? [pages] : []),
        ...assets,
      ]),
      ports: [{ name: 'http', containerPort: PORTS.http, protocol: 'TCP' }],
      // By HTTP: the port is open before nginx is there, the entry point holds it. Not by exec, which costs a process
      // of the container's engine each time, when a node that starts pods has the least to spare.
      startupProbe: spec.forwarded.proxyProtocol
        ? // kubelet does not speak the PROXY protocol.
          { exec: { command: ['test', '-e', '/tmp/nginx.pid'] }, timeoutSeconds: 2, ...AT_START }
        : probe(spec.ping.path, AT_START, PORTS.http),
      livenessProbe: { ...tcpProbe(PORTS.http), periodSeconds: 5, failureThreshold: 6 },
    },
  ];
}

/** @param mounts that one of the two has and the other has not */
function common(
  spec: RenderServiceSpec,
  name: typeof HAPROXY_CONTAINER | typeof NGINX_CONTAINER,
  { image, pullPolicy }: SidecarImage,
  mounts: V1VolumeMount[],
): V1Container {
  return {
    name,
    image,
    ...(pullPolicy && { imagePullPolicy: pullPolicy }),
    args: [name],
    restartPolicy: 'Always', // makes an init container a native sidecar
    lifecycle: { preStop: { exec: { command: ['corelane-drain'] } } },
    resources: proxyResources(spec, name),
    securityContext: sidecarSecurity(spec),
    volumeMounts: [
      { name: CONFIG_VOLUME, mountPath: CONFIG_MOUNT_PATH, readOnly: true },
      { name: LIVE_VOLUME, mountPath: LIVE_MOUNT_PATH, readOnly: true },
      { name: RUN_VOLUME, mountPath: RUN_MOUNT_PATH },
      { name: DRAIN_VOLUME, mountPath: DRAIN_MOUNT_PATH },
      ...(name === NGINX_CONTAINER ? [{ name: TEMP_VOLUME, mountPath: '/tmp' }] : []),
      ...mounts,
      NO_TOKEN_MOUNT,
    ],
  };
}

function probe(path: string, times: { periodSeconds: number; failureThreshold: number }, port: number = PORTS.health) {
  return { httpGet: { path, port }, timeoutSeconds: 2, ...times };
}

function tcpProbe(port: number) {
  return { tcpSocket: { port }, timeoutSeconds: 2 };
}

/** The pod template: the user's, with workers and proxies. docs/pod-template.md has the same rules in words. */
import type { V1Container, V1PodTemplateSpec, V1TopologySpreadConstraint, V1Volume } from '@kubernetes/client-node';
import { drainAcceptMsMax, drainTimeoutMs } from '../api/drain.ts';
import { withoutLive } from '../api/live.ts';
import {
  ANNOTATION_CONFIG,
  LABEL_INSTANCE,
  LABEL_MANAGED_BY,
  LABEL_NAME,
  LABEL_SERVING,
  MANAGER,
} from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { workerTemplate } from '../api/worker-template.ts';
import { hasPeers } from '../render/model/pooling.ts';
import { assetContainers, assetMounts, assetVolumes } from './assets.ts';
import { liveName } from './configmap.ts';
import { withDrainHook } from './drain-hook.ts';
import { peersHost, peersName, selectorLabels } from './objects.ts';
import { proxyContainers, proxyVolumes, type SidecarImage } from './proxies.ts';
import { RUNTIME_VOLUMES, runtimeContainer } from './runtime.ts';
import { workerContainers } from './workers.ts';

/** Seconds for workers and proxies to end after the pod has drained. */
const STOP_SLACK_SECONDS = 10;
/**
 * By it the cluster autoscaler knows which volumes of a pod may be lost with its node. It never removes a node with a
 * pod that has another emptyDir.
 */
const ANNOTATION_SAFE_VOLUMES = 'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes';

/**
 * Pod template of a Deployment, but for the name of its revision, which comes from it: the same whatever the live
 * settings are.
 * User wins: labels except Corelane's own, annotations, spread, service links, a longer grace period, hooks of
 * containers beside the worker.
 * Corelane wins: the selector label, its own volumes and containers.
 * @param configMapName ConfigMap that the proxies mount
 */
export function podTemplate(
  renderService: RenderService,
  configMapName: string,
  sidecar: SidecarImage,
): V1PodTemplateSpec {
  const { metadata } = renderService;
  const spec = withoutLive(renderService.spec);
  const { template } = spec;
  const { serviceAccount, serviceAccountName, ...user } = template.spec ?? { containers: [] };
  const keySecret = hasPeers(spec) ? peersName(renderService) : undefined;
  const ownVolumes = [
    ...RUNTIME_VOLUMES,
    ...assetVolumes(spec),
    ...proxyVolumes(spec, { config: configMapName, live: liveName(renderService), peersKey: keySecret }),
  ];
  return {
    metadata: {
      labels: {
        [LABEL_NAME]: metadata.name,
        [LABEL_INSTANCE]: metadata.name,
        [LABEL_MANAGED_BY]: MANAGER,
        ...template.metadata?.labels,
        ...selectorLabels(renderService),
        [LABEL_SERVING]: 'true',
      },
      annotations: {
        'kubectl.kubernetes.io/default-container': 'worker-0',
        ...template.metadata?.annotations,
        [ANNOTATION_SAFE_VOLUMES]: safeVolumes(spec, ownVolumes),
        [ANNOTATION_CONFIG]: configMapName,
      },
    },
    spec: {
      ...user,
      // Named also where it is the default: the API server stores the old name of the field, too, and goes by that one
      // where this one is missing, so an account that somebody has applied to a Deployment would stay.
      serviceAccountName: serviceAccountName || serviceAccount || 'default',
      // A Service of the namespace that is called "nitro" would set NITRO_PORT in the workers.
      enableServiceLinks: user.enableServiceLinks ?? false,
      terminationGracePeriodSeconds: gracePeriodSeconds(spec),
      topologySpreadConstraints: user.topologySpreadConstraints ?? spread(renderService),
      // After the user's init containers: they may prepare what a worker needs, and they need no proxy.
      initContainers: [
        ...(user.initContainers ?? []),
        runtimeContainer(spec, sidecar),
        ...assetContainers(spec),
        ...proxyContainers(spec, peersHost(renderService), sidecar, assetMounts(spec)),
      ],
      containers: user.containers.flatMap((container) => expand(spec, container)),
      volumes: [...(user.volumes ?? []), ...ownVolumes],
    },
  };
}

/** Nothing in our volumes is worth a node. Of the user's own ones only the user knows. */
function safeVolumes({ template }: RenderServiceSpec, ownVolumes: V1Volume[]): string {
  const given = template.metadata?.annotations?.[ANNOTATION_SAFE_VOLUMES];
  const names = ownVolumes.filter(({ emptyDir }) => emptyDir).map(({ name }) => name);
  return [...(given ? [given] : []), ...names].join(',');
}

/** Workers may need the containers beside them for their last page, so those outlive the drain as well. */
function expand(spec: RenderServiceSpec, container: V1Container): V1Container[] {
  const isWorker = container === workerTemplate(spec.template.spec?.containers ?? []);
  return isWorker ? workerContainers(spec, container) : [withDrainHook(container)];
}

/** Long enough for the whole drain; kubelet kills what is left after it. */
function gracePeriodSeconds(spec: RenderServiceSpec): number {
  const needed = Math.ceil((drainAcceptMsMax(spec.drain) + drainTimeoutMs(spec)) / 1000) + STOP_SLACK_SECONDS;
  return Math.max(needed, spec.template.spec?.terminationGracePeriodSeconds ?? 0);
}

/** Soft spread over nodes and zones: losing one should cost as little capacity as possible, but never block a pod. */
function spread(renderService: RenderService): V1TopologySpreadConstraint[] {
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: selectorLabels(renderService) },
    matchLabelKeys: ['pod-template-hash'],
  }));
}

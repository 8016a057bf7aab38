/** The pod template: the user's, with workers and proxies. docs/pod-template.md has the same rules in words. */
import type { V1Container, V1PodTemplateSpec, V1TopologySpreadConstraint } from '@kubernetes/client-node';
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
import { peersHost, peersName, selectorLabels } from './objects.ts';
import { proxyContainers, proxyVolumes, type SidecarImage } from './proxies.ts';
import { runtimeContainers, runtimeVolumes } from './runtime.ts';
import { ownAccount } from './service-account.ts';
import { workerContainers } from './workers.ts';

/** Seconds for workers and proxies to end after the pod has drained. */
const STOP_SLACK_SECONDS = 10;

/**
 * Pod template of a Deployment, but for the name of its revision, which comes from it: the same whatever the live
 * settings are.
 * User wins: labels except Corelane's own, annotations, spread, service account, a longer grace period.
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
  const { serviceAccount: _oldName, ...user } = template.spec ?? { containers: [] };
  const keySecret = hasPeers(spec) ? peersName(renderService) : undefined;
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
        [ANNOTATION_CONFIG]: configMapName,
      },
    },
    spec: {
      ...user,
      serviceAccountName: ownAccount(renderService) ?? metadata.name,
      terminationGracePeriodSeconds: gracePeriodSeconds(spec),
      topologySpreadConstraints: user.topologySpreadConstraints ?? spread(renderService),
      // After the user's init containers: they may prepare what a worker needs, and they need no proxy.
      initContainers: [
        ...(user.initContainers ?? []),
        ...runtimeContainers(spec, sidecar),
        ...assetContainers(spec),
        ...proxyContainers(spec, peersHost(renderService), sidecar, assetMounts(spec)),
      ],
      containers: user.containers.flatMap((container) => expand(spec, container)),
      volumes: [
        ...(user.volumes ?? []),
        ...runtimeVolumes(spec),
        ...assetVolumes(spec),
        ...proxyVolumes(spec, { config: configMapName, live: liveName(renderService), peersKey: keySecret }),
      ],
    },
  };
}

function expand(spec: RenderServiceSpec, container: V1Container): V1Container[] {
  const isWorker = container === workerTemplate(spec.template.spec?.containers ?? []);
  return isWorker ? workerContainers(spec, container) : [container];
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

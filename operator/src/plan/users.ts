/**
 * Which user the containers have that Corelane adds to a pod. Some namespaces assign a user to each pod (OpenShift),
 * and in others a policy accepts some users only. So these containers name no user, unless the template does: then
 * they have that of the worker. docs/adr/0065-pods-like-those-of-a-deployment.md has the reasons.
 */
import type { V1Container, V1SecurityContext } from '@kubernetes/client-node';
import type { RenderServiceSpec } from '../api/spec.ts';
import { workerTemplate } from '../api/worker-template.ts';

/** User and group of the sidecar image (Dockerfile). */
const IMAGE_USER = 10_001;

/** What Pod Security "restricted" demands, but for the user. */
const CONFINED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  seccompProfile: { type: 'RuntimeDefault' },
} satisfies V1SecurityContext;

/**
 * Of containers of the sidecar image, which works as any user. Its own user is numeric: where nobody names one,
 * kubelet can see that it is not root.
 */
export function sidecarSecurity({ template: { spec: pod } }: RenderServiceSpec): V1SecurityContext {
  const worker = workerTemplate(pod?.containers ?? [])?.securityContext;
  const user = worker?.runAsUser ?? pod?.securityContext?.runAsUser ?? undefined;
  const group = worker?.runAsGroup ?? pod?.securityContext?.runAsGroup ?? undefined;
  // Root must not run a proxy. Where containers see each other's processes, a worker of the same user could end the
  // proxies, and read their files.
  const seesProxies = pod?.shareProcessNamespace === true || pod?.hostPID === true;
  const isApart = user === 0 || (user !== undefined && seesProxies);
  if (isApart) return { ...CONFINED, runAsNonRoot: true, runAsUser: IMAGE_USER, runAsGroup: IMAGE_USER };
  return {
    ...CONFINED,
    runAsNonRoot: true,
    ...(user !== undefined && { runAsUser: user }),
    ...(group !== undefined && { runAsGroup: group }),
  };
}

/**
 * Of a container of the worker's image: it is the worker's user, whoever that is, for the files in the image may be
 * for that one only. What the pod says counts for both.
 * @param template the container that becomes the workers
 */
export function workerImageSecurity({ securityContext }: V1Container): V1SecurityContext {
  const { runAsUser, runAsGroup, runAsNonRoot } = securityContext ?? {};
  return {
    ...CONFINED,
    ...(runAsUser != null && { runAsUser }),
    ...(runAsGroup != null && { runAsGroup }),
    ...(runAsNonRoot != null && { runAsNonRoot }),
  };
}

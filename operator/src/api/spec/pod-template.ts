/** The pod template of a RenderService, as far as rules read it. */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { z } from 'zod';

/** Marks the node that the generator replaces by Kubernetes' own PodTemplateSpec schema. */
export const POD_TEMPLATE_MARK = 'x-corelane-pod-template';

const named = z.looseObject({ name: z.string() });
const container = named.extend({
  ports: z.array(z.looseObject({})).nullish(),
  volumeMounts: z.array(named).nullish(),
});
/** What the rules read of a pod template. The API server knows all of it; a rule must not fail where it does not. */
const podTemplateParts = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()).nullish() }).nullish(),
  spec: z.looseObject({
    containers: z.array(container).min(1),
    initContainers: z.array(container).nullish(),
    volumes: z.array(named).nullish(),
  }),
});

export const podTemplate = z
  .custom<V1PodTemplateSpec>(
    (value) => podTemplateParts.safeParse(value).success,
    'must be a pod template with a container in spec.containers',
  )
  .meta({
    [POD_TEMPLATE_MARK]: true,
    description:
      'Ordinary pod template. The container named "worker", or the only one, is repeated workersPerPod times as worker-0, worker-1 ...; everything else stays as written. docs/pod-template.md says who wins on each merged field.',
  });

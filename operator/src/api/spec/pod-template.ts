/** The pod template of a RenderService, as far as rules read it. */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { z } from 'zod';
import { withQuotesMissing } from '../quotes.ts';

/** Marks the node that the generator replaces by Kubernetes' own PodTemplateSpec schema. */
export const POD_TEMPLATE_MARK = 'x-corelane-pod-template';

const named = z.looseObject({ name: z.string() });
/** An API server takes out what is null. */
const texts = z.record(z.string(), z.string().nullish()).nullish();
const container = named.extend({
  env: z.array(named.extend({ value: z.string().nullish() })).nullish(),
  ports: z.array(z.looseObject({})).nullish(),
  volumeMounts: z.array(named).nullish(),
});
const NO_CONTAINER = 'must be a list with a container';
/**
 * The parts of a pod template that our rules read, and those in which people forget quotes. The API server checks the
 * whole template. These types only keep our rules from failing on a malformed one.
 */
const podTemplateParts = z.looseObject(
  {
    metadata: z.looseObject({ labels: texts, annotations: texts }).nullish(),
    spec: z.looseObject(
      {
        containers: z.array(container, NO_CONTAINER).min(1, NO_CONTAINER),
        initContainers: z.array(container).nullish(),
        volumes: z.array(named).nullish(),
      },
      'must be the spec of a pod, with a container in containers',
    ),
  },
  'must be a pod template with a container in spec.containers',
);

export const podTemplate = z
  .custom<V1PodTemplateSpec>()
  .superRefine((template, ctx) => {
    const { error } = podTemplateParts.safeParse(template, { error: withQuotesMissing });
    for (const { path, message } of error?.issues ?? []) ctx.addIssue({ code: 'custom', path, message });
  })
  .meta({
    [POD_TEMPLATE_MARK]: true,
    description:
      'Ordinary pod template. The container named "worker", or the only one, is repeated workersPerPod times as worker-0, worker-1 ...; everything else stays as written. docs/pod-template.md says who wins on each merged field.',
  });

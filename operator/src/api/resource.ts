/** The RenderService as a whole: metadata, spec, status. */
import { z } from 'zod';
import type { Condition } from './conditions.ts';
import { API_VERSION, KIND, NAME_LENGTH_MAX } from './names.ts';
import type { RenderServiceSpec } from './spec.ts';
import { templateTooLarge } from './template-size.ts';
import { renderServiceSpec } from './validated-spec.ts';

const condition = z.strictObject({
  type: z
    .string()
    .max(316)
    .describe(
      'Ready, Reconciling, Stalled, WorkersHealthy, CapacityAvailable, ConcurrencyTuned, LiveSettingsApplied, ObjectsInSync or ScalingActive.',
    ),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
  reason: z.string().max(1024).describe('Reason in one word, for programs.'),
  message: z.string().max(32_768).describe('What is the matter and what to do about it.'),
  lastTransitionTime: z.string().meta({ format: 'date-time', description: 'When the status last changed.' }),
  observedGeneration: z.int().min(0).describe('Generation of the spec that this speaks about.'),
});

const scalingDecision = z.strictObject({
  time: z.string().meta({ format: 'date-time', description: 'When the number of pods was changed.' }),
  from: z.int().min(0).describe('Pods before.'),
  to: z.int().min(0).describe('Pods after.'),
  reason: z.string().max(64).describe('AboveThreshold, BelowThreshold, QueueFull or OutsideBounds.'),
  message: z.string().max(1024).describe('The numbers that it was decided on.'),
});
export type ScalingDecision = z.output<typeof scalingDecision>;

export const renderServiceStatus = z
  .strictObject({
    observedGeneration: z.int().optional().describe('Generation of the spec that the status speaks about.'),
    replicas: z.int().optional().describe('Pods that exist.'),
    readyReplicas: z.int().optional().describe('Pods that are ready.'),
    updatedReplicas: z.int().optional().describe('Pods that run the current template.'),
    selector: z.string().optional().describe('Label selector of the pods, for the scale subresource.'),
    workers: z
      .strictObject({
        total: z.int().describe('Workers in all pods that exist.'),
        ready: z.int().describe('Workers that are up in pods that are ready.'),
        busy: z.int().optional().describe('Requests in workers, when the pods were last asked.'),
      })
      .optional()
      .describe('Workers of the fleet.'),
    queue: z
      .strictObject({ length: z.int().describe('Requests that wait for a worker, when the pods were last asked.') })
      .optional()
      .describe('Queues of all pods. Written at most twice a minute, if nothing else changes.'),
    concurrency: z
      .strictObject({
        lowest: z.int().min(0).describe('Of all workers the fewest.'),
        median: z.int().min(0).describe('Half of the workers have no more.'),
        highest: z.int().min(0).describe('Of all workers the most.'),
      })
      .optional()
      .describe(
        'With concurrency: Auto: requests that the workers get at a time, when the pods were last asked. Written at most twice a minute, if nothing else changes.',
      ),
    liveSettings: z
      .strictObject({
        observedGeneration: z
          .int()
          .describe('Generation of the spec whose live settings all pods that are ready have had.'),
        pods: z.int().min(0).describe('Pods that are ready and have the live settings of the spec.'),
      })
      .optional()
      .describe('How far the live settings have come (docs/live-settings.md).'),
    scaling: z
      .strictObject({
        utilizationPercent: z
          .int()
          .min(0)
          .optional()
          .describe('Per-core CPU (or occupancy) over the window of scaleUp; renewed when it has moved by 5 points.'),
        lastDecision: scalingDecision.optional().describe('The last change of the number of pods.'),
      })
      .optional()
      .describe('What scaling has measured and done.'),
    conditions: z
      .array(condition)
      .max(16)
      .optional()
      .meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        description:
          'Ready, Reconciling and Stalled as kstatus defines them; WorkersHealthy, CapacityAvailable, LiveSettingsApplied; ConcurrencyTuned with concurrency: Auto; ObjectsInSync once somebody else has fought for an object; ScalingActive where scaling is set.',
      }),
  })
  .describe('Observed state.');

export type RenderServiceStatus = Omit<z.output<typeof renderServiceStatus>, 'conditions'> & {
  conditions?: Condition[];
};

/** Rules on the whole resource: only here is the name in reach. */
const nameMessage = `must have at most ${NAME_LENGTH_MAX} characters, begin with a letter and have only a-z, 0-9 and "-": it becomes the name of a Service`;
const NAME_PATTERN = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
export const resourceRules = [
  {
    rule: `self.metadata.name.size() <= ${NAME_LENGTH_MAX} && self.metadata.name.matches('${NAME_PATTERN.source}')`,
    message: nameMessage,
    fieldPath: '.metadata.name',
  },
];

/** Metadata that the operator reads. */
export interface ResourceMetadata {
  name: string;
  namespace: string;
  uid: string;
  generation: number;
  resourceVersion: string;
  deletionTimestamp?: string;
  annotations?: Record<string, string>;
}

/** A RenderService as it comes from the API server: the spec is not yet checked. */
export interface RenderServiceResource {
  apiVersion: string;
  kind: string;
  metadata: ResourceMetadata;
  spec: unknown;
  status?: RenderServiceStatus;
}

/** A RenderService with a checked, defaulted spec. */
export interface RenderService {
  metadata: ResourceMetadata;
  spec: RenderServiceSpec;
}

/** A field that is wrong, with the path as kubectl would print it. */
export interface FieldError {
  path: string;
  message: string;
}

export type ParseResult = { ok: true; renderService: RenderService } | { ok: false; errors: FieldError[] };

/** Checks and defaults a resource. The API server has done the same by CRD; this is for what slips through. */
export function parseRenderService(resource: RenderServiceResource): ParseResult {
  const errors: FieldError[] = [];
  const { name } = resource.metadata;
  if (name.length > NAME_LENGTH_MAX || !NAME_PATTERN.test(name))
    errors.push({ path: 'metadata.name', message: nameMessage });
  const parsed = renderServiceSpec.safeParse(resource.spec ?? {});
  if (!parsed.success) {
    errors.push(...parsed.error.issues.map(({ path, message }) => ({ path: fieldPath(['spec', ...path]), message })));
  }
  const tooLarge = parsed.success && templateTooLarge(parsed.data);
  if (tooLarge) errors.push({ path: 'spec.template', message: tooLarge });
  if (errors.length > 0 || !parsed.success) return { ok: false, errors };
  return { ok: true, renderService: { metadata: resource.metadata, spec: parsed.data } };
}

function fieldPath(path: PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}

/** Identity of a RenderService for owner references and events. */
export function reference({ metadata }: { metadata: ResourceMetadata }) {
  return { apiVersion: API_VERSION, kind: KIND, name: metadata.name, uid: metadata.uid };
}

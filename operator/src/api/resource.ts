/** The RenderService as a whole: metadata, spec, status. */
import { z } from 'zod';
import type { Condition } from './conditions.ts';
import { USER_LABELS_MAX } from './labels.ts';
import { API_VERSION, KIND, NAME_LENGTH_MAX } from './names.ts';
import { withQuotesMissing } from './quotes.ts';
import type { RenderServiceSpec } from './spec.ts';
import { templateTooLarge } from './template-size.ts';
import { renderServiceSpec } from './validated-spec.ts';

const condition = z.strictObject({
  type: z
    .string()
    .max(316)
    .describe(
      'Ready, Reconciling, Stalled, WorkersHealthy, CapacityAvailable, ConcurrencyTuned, LiveSettingsApplied, ObjectsInSync, SchemaInStep, DataPlaneCurrent or ScalingActive.',
    ),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
  reason: z.string().max(1024).describe('Reason in one word, for programs.'),
  message: z.string().max(32_768).describe('What is the matter and what to do about it.'),
  lastTransitionTime: z.string().meta({ format: 'date-time', description: 'When the status last changed.' }),
  observedGeneration: z.int().min(0).describe('Generation of the spec that this speaks about.'),
});

const percent = () => z.number().min(0).max(100);
const bySide = () =>
  z.strictObject({
    canary: z.int().min(0).describe('Of the canary.'),
    stable: z.int().min(0).describe('Of the stable revision in the same time.'),
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
    replicas: z.int().optional().describe('Pods that exist, but for those of a revision that rests.'),
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
    rollout: z
      .strictObject({
        phase: z
          .enum(['Complete', 'Rolling', 'Paused', 'Preparing', 'Stepping', 'Promoting', 'Aborting', 'Aborted'])
          .describe(
            'Complete: the revision that the spec asks for is the only one that gets requests. Preparing, Stepping, Promoting, Aborting and Aborted are those of a canary.',
          ),
        reason: z.string().max(64).optional().describe('Of a canary: what it waits for, or why it was aborted.'),
        message: z.string().max(1024).optional().describe('Of a canary: the same in a sentence.'),
        canary: z
          .strictObject({
            revision: z.string().max(63).describe('The revision that gets a share.'),
            attempt: z.int().min(1).describe('Which try it is.'),
            step: z.int().min(0).describe('Number of the step, from 1; 0 before the first one.'),
            steps: z.int().min(0).describe('How many there are.'),
            share: percent().describe('Percentage of the requests that it is to get.'),
            appliedPods: z.int().min(0).describe('Pods that are ready and have said that they know the share.'),
            pods: z.int().min(0).describe('Pods that are ready.'),
            since: z.string().meta({ format: 'date-time', description: 'Since when it is at this step and share.' }),
            until: z
              .string()
              .optional()
              .meta({ format: 'date-time', description: 'When the time of the step is over, while it runs.' }),
            analysis: z
              .strictObject({
                requests: bySide().describe('Requests of which it is known what came of them.'),
                errors: bySide().describe('Of these, those that were answered 5xx, or whose answer was lost.'),
                renders: bySide().describe('Renders whose time was judged: not those of workers that are cold.'),
                slow: bySide().describe('Of these, the slow ones.'),
                slowMs: z
                  .number()
                  .min(0)
                  .optional()
                  .describe('What takes longer is slow, in milliseconds; as it is now.'),
                evidence: z
                  .strictObject({
                    errors: z.int().min(0).max(100).describe('That it has more errors.'),
                    slow: z.int().min(0).max(100).describe('That more of its renders are slow.'),
                  })
                  .describe('How likely it is that the canary is worse, beside that it is not: 100 times is enough.'),
              })
              .optional()
              .describe('What this try is judged by, at most 15 s old (docs/canary.md).'),
          })
          .optional()
          .describe('The revision that gets a share of the requests, or was to (docs/canary.md).'),
        stable: z
          .strictObject({
            revision: z.string().max(63).describe('The revision that gets the rest.'),
            replicas: z.int().min(0).describe('Pods that it is to have.'),
            available: z.int().min(0).describe('Of these, those that are available.'),
          })
          .optional()
          .describe('The revision beside a canary.'),
        revision: z.string().max(63).describe('The revision that the spec asks for.'),
        progressTime: z
          .string()
          .meta({ format: 'date-time', description: 'When pods last became available, or it was asked for.' }),
        revisions: z
          .array(
            z.strictObject({
              revision: z.string().max(63).describe('Name, which its pods have in the label corelane.dev/revision.'),
              number: z.int().min(0).describe('The higher, the later it was asked for.'),
              replicas: z.int().min(0).describe('Pods that it is to have.'),
              available: z.int().min(0).describe('Of these, those that are available.'),
              restsUntil: z.string().optional().meta({
                format: 'date-time',
                description: 'Its pods get no requests, and end at this time (rollout.retain).',
              }),
            }),
          )
          .max(16)
          .describe('Revisions that have pods, or are asked for; the newest first.'),
      })
      .optional()
      .describe('How far a change of pods has come (docs/rollouts.md).'),
    liveSettings: z
      .strictObject({
        observedGeneration: z
          .int()
          .describe('Generation of the spec whose live settings all pods that are ready have had.'),
        pods: z.int().min(0).describe('Pods that are ready and have the live settings of the spec.'),
      })
      .optional()
      .describe('How far the live settings have come (docs/live-settings.md).'),
    objectives: z
      .strictObject({
        seconds: z
          .int()
          .min(0)
          .optional()
          .describe('Time that this is about: the last 300, or less after another operator has taken over.'),
        requests: z.int().min(0).optional().describe('Requests that pods have answered in that time.'),
        availabilityPercent: percent().optional().describe('Of these, those that were not answered 5xx.'),
        latencyPercent: z
          .strictObject({
            p50: percent().optional().describe('Those within the time of spec.objectives.latency.p50.'),
            p90: percent().optional().describe('Those within that of p90.'),
            p95: percent().optional().describe('Those within that of p95.'),
            p99: percent().optional().describe('Those within that of p99.'),
          })
          .optional()
          .describe('Of the requests whose time was counted, those that had the head of their response in time.'),
      })
      .optional()
      .describe(
        'How the last minutes were, where spec.objectives says what counts; rounded down. Written at most twice a minute, if nothing else changes.',
      ),
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
          'Ready, Reconciling and Stalled as kstatus defines them; WorkersHealthy, CapacityAvailable, LiveSettingsApplied, DataPlaneCurrent; ConcurrencyTuned with concurrency: Auto, and with a number that is too small; ObjectsInSync once somebody else has written an object of it, or mutating admission has changed one; SchemaInStep once the CustomResourceDefinition and the operator have been of different versions; ScalingActive where scaling is set.',
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

const tooManyLabels = (count: number) =>
  `has ${count} labels; every object of the RenderService gets all of them, so ${USER_LABELS_MAX} are the most: remove some`;

/** Metadata that the operator reads. */
export interface ResourceMetadata {
  name: string;
  namespace: string;
  uid: string;
  generation: number;
  resourceVersion: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
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

export type ParseResult =
  | {
      ok: true;
      renderService: RenderService;
      /** Paths of the fields that were left out because this version does not know them. */
      unknown: string[];
    }
  | { ok: false; errors: FieldError[] };

/**
 * Checks and defaults a resource that somebody has written: a field that there is not is an error, for it is mostly a
 * misspelt one.
 */
export function parseRenderService(resource: RenderServiceResource): ParseResult {
  return parse(resource, []);
}

/**
 * The same for a resource from an API server, which has checked it by its CRD; this is for what slips through. A field
 * that this version does not know is one of a newer CRD, and is left out.
 */
export function parseStored(resource: RenderServiceResource): ParseResult {
  const parsed = renderServiceSpec.safeParse(resource.spec ?? {});
  const issues = parsed.error?.issues ?? [];
  const unknown = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [],
  );
  if (unknown.length === 0) return parse(resource, []);
  const spec = structuredClone(resource.spec);
  for (const path of unknown) removeField(spec, path);
  return parse(
    { ...resource, spec },
    unknown.map((path) => fieldPath(['spec', ...path])),
  );
}

function removeField(value: unknown, path: PropertyKey[]): void {
  const [name, ...rest] = path;
  const object = value as Record<PropertyKey, unknown>;
  if (rest.length === 0) delete object[name as PropertyKey];
  else removeField(object[name as PropertyKey], rest);
}

function parse(resource: RenderServiceResource, unknown: string[]): ParseResult {
  const errors: FieldError[] = [];
  const { name, labels } = resource.metadata;
  if (name.length > NAME_LENGTH_MAX || !NAME_PATTERN.test(name))
    errors.push({ path: 'metadata.name', message: nameMessage });
  const count = Object.keys(labels ?? {}).length;
  if (count > USER_LABELS_MAX) errors.push({ path: 'metadata.labels', message: tooManyLabels(count) });
  const parsed = renderServiceSpec.safeParse(resource.spec ?? {}, { error: withQuotesMissing });
  if (!parsed.success) {
    errors.push(...parsed.error.issues.map(({ path, message }) => ({ path: fieldPath(['spec', ...path]), message })));
  }
  const tooLarge = parsed.success && templateTooLarge(parsed.data);
  if (tooLarge) errors.push({ path: 'spec.template', message: tooLarge });
  if (errors.length > 0 || !parsed.success) return { ok: false, errors };
  return { ok: true, renderService: { metadata: resource.metadata, spec: parsed.data }, unknown };
}

/** A path as kubectl prints it: `spec.cache.ttl[0].value`. */
export function fieldPath(path: PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}

/** Identity of a RenderService for owner references and events. */
export function reference({ metadata }: { metadata: ResourceMetadata }) {
  return { apiVersion: API_VERSION, kind: KIND, name: metadata.name, uid: metadata.uid };
}

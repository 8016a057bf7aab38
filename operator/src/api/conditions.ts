/**
 * Conditions of a RenderService and their reasons: the only place where these words stand. `Ready`, `Reconciling`
 * and `Stalled` follow kstatus, so that Flux, Argo CD and `kubectl wait` understand them.
 */

export type ConditionType =
  | 'Ready'
  | 'Reconciling'
  | 'Stalled'
  | 'WorkersHealthy'
  | 'CapacityAvailable'
  | 'ConcurrencyTuned'
  | 'LiveSettingsApplied'
  | 'ObjectsInSync'
  | 'SchemaInStep'
  | 'DataPlaneCurrent'
  | 'ScalingActive';
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** A condition without its times; `mergeConditions` adds them. */
export interface ConditionDraft {
  type: ConditionType;
  status: ConditionStatus;
  reason: string;
  message: string;
  /** Generation of the spec that this is known for, where it is not the one that the status speaks about. */
  observedGeneration?: number;
}

export interface Condition extends ConditionDraft {
  /** RFC 3339 time of the last change of `status`. */
  lastTransitionTime: string;
  observedGeneration: number;
}

/** Longest message that the API accepts in a condition. */
const MESSAGE_LENGTH_MAX = 32_768;

function draft(type: ConditionType, status: ConditionStatus, reason: string, message: string): ConditionDraft {
  return { type, status, reason, message: message.slice(0, MESSAGE_LENGTH_MAX) };
}

/**
 * All pods run the current template and are available.
 * @param remark what somebody should know all the same
 */
export function ready(pods: number, remark?: string): ConditionDraft[] {
  const message = `${pods} of ${pods} pods are ready${remark ? `; ${remark}` : ''}`;
  return [
    draft('Ready', 'True', 'AllPodsReady', message),
    draft('Reconciling', 'False', 'UpToDate', 'the cluster is as the spec asks'),
    draft('Stalled', 'False', 'UpToDate', 'nothing hinders the operator'),
  ];
}

/**
 * A change is on its way to the pods. `Ready` speaks of the whole spec, as kstatus wants it: while enough pods serve it
 * is Unknown, so that an alert on False does not fire at every rollout and `kubectl wait` does not return too early.
 * @param serving whether as many pods as wanted are available, of whatever template
 * @param hindered whether something outside of the operator keeps pods from running, which the message tells
 */
export function progressing(message: string, serving: boolean, hindered = false): ConditionDraft[] {
  return [
    serving ? draft('Ready', 'Unknown', 'Progressing', message) : draft('Ready', 'False', 'PodsNotReady', message),
    draft('Reconciling', 'True', 'Progressing', message),
    draft(
      'Stalled',
      'False',
      'Progressing',
      hindered ? 'the operator has done its part; Ready tells what the pods lack' : 'nothing hinders the operator',
    ),
  ];
}

/** Writes fail again and again for a reason that may pass: the API server does not answer, or says 5xx. */
export function retrying(message: string, serving: boolean): ConditionDraft[] {
  return [
    serving ? draft('Ready', 'Unknown', 'Retrying', message) : draft('Ready', 'False', 'Retrying', message),
    draft('Reconciling', 'True', 'Retrying', message),
    draft('Stalled', 'False', 'Retrying', 'the operator goes on trying'),
  ];
}

/**
 * Whether workers live. Beside Ready, because a worker that ends again and again does not make its pod NotReady, and
 * the others serve.
 */
export const workersHealthy = {
  yes: () => draft('WorkersHealthy', 'True', 'WorkersUp', 'no worker restarts in a loop'),
  /** As `runtime.instrument: false` asks: nobody needs to be told. */
  runtimeOff: (message: string) => draft('WorkersHealthy', 'True', 'RuntimeOff', message),
  withoutRuntime: (message: string) => draft('WorkersHealthy', 'True', 'RuntimeAbsent', message),
  crashLoop: (message: string) => draft('WorkersHealthy', 'False', 'CrashLoop', message),
  unknown: (message: string) => draft('WorkersHealthy', 'Unknown', 'NotSampled', message),
};

/** Whether any pod can take another request, now or in its queue. */
export const capacityAvailable = {
  yes: () => draft('CapacityAvailable', 'True', 'RoomLeft', 'a worker or a place in a queue is free'),
  no: () =>
    draft(
      'CapacityAvailable',
      'False',
      'FleetFull',
      'every worker of every pod is busy and every queue is nearly full; when they are full requests are answered 503 queue-full. Add pods or workers, or let scaling do it',
    ),
};

/** Numbers that workers have found with `concurrency: Auto`. With a fixed number only `tooSmall` is ever drafted. */
export const concurrencyTuned = {
  single: (range: string) =>
    draft(
      'ConcurrencyTuned',
      'True',
      'SingleFlight',
      `${range}: renders keep the CPU busy one at a time, or none has come yet`,
    ),
  tuned: (range: string) =>
    draft('ConcurrencyTuned', 'True', 'Tuned', `${range}: with so many no event loop is idle while requests wait`),
  atMaximum: (range: string, count: number) =>
    draft(
      'ConcurrencyTuned',
      'True',
      'AtMaximum',
      `${range}; ${count} of them are at concurrencyRange.max: their renders wait for so long that more would do more, or something that they wait for hangs`,
    ),
  /** The same number has the same message: by the message it is known for which number it was told. */
  tooSmall: (concurrency: number) =>
    draft(
      'ConcurrencyTuned',
      'False',
      'RendersWait',
      `concurrency: ${concurrency} limits the service: for a minute all workers had a request and more requests waited, but the event loops were idle for half of the time or more. Renders wait for something else (a database, an API). Set concurrency: Auto, or a larger number, if the program can render several pages at a time (docs/concurrency.md)`,
    ),
  unknown: () => draft('ConcurrencyTuned', 'Unknown', 'NotSampled', 'no pod has told about its workers yet'),
};

/** Whether the pods that are ready have the live settings of the spec. */
export const liveSettingsApplied = {
  yes: (pods: number) =>
    draft('LiveSettingsApplied', 'True', 'AllPods', `${pods} of ${pods} pods that are ready have the live settings`),
  tooOld: (pods: number, old: number, cookie: string) =>
    draft(
      'LiveSettingsApplied',
      'True',
      'DataPlaneTooOld',
      `${pods} of ${pods} pods that are ready have the live settings; ${old} of them do not know rollout.stickiness.cookie: ${cookie}: they are of a version of Corelane before that, and do it once the data plane has had its turn`,
    ),
  waiting: (have: number, pods: number, problem: string | undefined) =>
    draft('LiveSettingsApplied', 'False', 'Waiting', `${lacking(have, pods)}${problem ? `; ${problem}` : ''}`),
  notWritten: (pods: number) =>
    draft(
      'LiveSettingsApplied',
      'False',
      'NotWritten',
      `the ConfigMap does not have the live settings of this generation of the spec, so ${pods} pods that are ready keep earlier ones or get others. Stalled, Reconciling or ObjectsInSync says why`,
    ),
  unreachable: (have: number, pods: number, problem: string | undefined) =>
    draft(
      'LiveSettingsApplied',
      'Unknown',
      'PodsUnreachable',
      `${lacking(have, pods)}; others do not tell: ${problem}; does a NetworkPolicy forbid it? They get them within two minutes all the same`,
    ),
};

function lacking(have: number, pods: number): string {
  return `${have} of ${pods} pods that are ready are known to have the live settings`;
}

/**
 * Whether the objects of a RenderService are what Corelane has applied. There only since somebody else has written
 * one, or mutating admission has changed one, as long as the status remembers it.
 */
export const objectsInSync = {
  yes: () => draft('ObjectsInSync', 'True', 'InSync', 'nobody else writes the objects of this RenderService'),
  /** By hand, mostly: `kubectl scale`, `kubectl set image`, `kubectl edit` of a Deployment. */
  takenBack: (writes: string[]) =>
    draft(
      'ObjectsInSync',
      'False',
      'TakenBack',
      `${writes.join('. ')}. Corelane has restored what the RenderService asks for`,
    ),
  contended: (writes: string[]) =>
    draft(
      'ObjectsInSync',
      'False',
      'Contended',
      `${writes.join('. ')}. This happens again and again, so Corelane repairs it at most once a minute now. Exclude the object from that program`,
    ),
  /** By webhooks and policies of the cluster. To write it again would end the same way. */
  mutated: (changes: string[]) =>
    draft(
      'ObjectsInSync',
      'True',
      'Mutated',
      `mutating admission changes what Corelane applies: ${changes.join('. ')}. Corelane leaves it so`,
    ),
  mutationHurts: (hurts: string[], changes: string[]) =>
    draft(
      'ObjectsInSync',
      'False',
      'MutationHurts',
      `mutating admission changes what Corelane applies, and that hurts: ${hurts.join('. ')}. Exempt the object from that webhook or policy. Where it makes limits equal to requests, raise sidecar.nginx.cpu and memory, and those of sidecar.haproxy${changes.length > 0 ? `. It also changes ${changes.join('. ')}` : ''}`,
    ),
};

/**
 * Whether CustomResourceDefinition and operator know the same fields. There only since they have not, as long as the
 * status remembers it.
 */
export const schemaInStep = {
  yes: () =>
    draft('SchemaInStep', 'True', 'InStep', 'the CustomResourceDefinition and the operator know the same fields'),
  /** The operator is the older one: after `helm rollback`, or while an upgrade goes on. */
  unknownFields: (unknown: string[]) =>
    draft(
      'SchemaInStep',
      'False',
      'UnknownFields',
      `the operator is older than the CustomResourceDefinition and works without ${listed(unknown)}, which it does not know. Upgrade it, or take these out`,
    ),
  crdOutdated: (missing: string[]) =>
    draft(
      'SchemaInStep',
      'False',
      'CrdOutdated',
      `the CustomResourceDefinition of the cluster is older than the operator: it drops ${listed(missing)}. Upgrade it: the chart does with crds.enabled, or kubectl apply --server-side -f crds/`,
    ),
};

const OTHER_VERSION = 'its pods are as another version of the operator has made them';

/** Whether pods are what this version of the operator makes of the spec. */
export const dataPlaneCurrent = {
  yes: () => draft('DataPlaneCurrent', 'True', 'UpToDate', 'its pods are what this operator makes'),
  waiting: ({ heldBy, obstacle, isIll }: { heldBy?: string; obstacle?: string; isIll: boolean }) => {
    if (heldBy !== undefined) {
      const message = `${OTHER_VERSION}, and stay so: ${heldBy} got those of this version and did not become healthy. Mend it, or install another version`;
      return draft('DataPlaneCurrent', 'False', 'Held', message);
    }
    const why = obstacle ?? (isIll ? 'it is not healthy' : undefined);
    return draft(
      'DataPlaneCurrent',
      'False',
      'Waiting',
      `${OTHER_VERSION}; it waits for its turn${why ? `: ${why}` : ''}`,
    );
  },
  rolling: () => draft('DataPlaneCurrent', 'False', 'Rolling', 'its pods are being replaced by those of this operator'),
  failed: () =>
    draft(
      'DataPlaneCurrent',
      'False',
      'Failed',
      'the pods of this version of the operator did not become healthy (Ready tells why); no other service gets them until these do, or another version is installed',
    ),
  paused: () =>
    draft('DataPlaneCurrent', 'False', 'Paused', `${OTHER_VERSION}, and stay so while rollout.paused is true`),
  pausedAmid: () =>
    draft(
      'DataPlaneCurrent',
      'False',
      'Paused',
      'some of its pods are what this operator makes; the others stay while rollout.paused is true, and hold nobody',
    ),
  withNextChange: () =>
    draft(
      'DataPlaneCurrent',
      'False',
      'WithNextChange',
      `${OTHER_VERSION}, and stay so until a change of yours makes others (rollout.dataPlane)`,
    ),
};

/** Fields that a message names. */
const LISTED_MAX = 5;

function listed(fields: string[]): string {
  const more = fields.length - LISTED_MAX;
  return `${fields.slice(0, LISTED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

export type StalledReason =
  | 'InvalidSpec' // the spec slipped through the API server's validation
  | 'NotOwned' // an object of that name belongs to somebody else
  | 'Rejected' // the API server refuses an object that was made from the spec
  | 'ProgressDeadlineExceeded' // the pods of a change made no progress
  | 'RolloutAborted'; // a canary came to nothing

/**
 * Nothing more happens until somebody changes something. What runs keeps running.
 * @param available pods that go on serving meanwhile
 */
export function stalled(reason: StalledReason, message: string, available: number): ConditionDraft[] {
  const meanwhile = available > 0 ? `${message} (${available} pods keep serving)` : message;
  return [
    draft('Ready', 'False', reason, meanwhile),
    draft('Reconciling', 'False', reason, meanwhile),
    draft('Stalled', 'True', reason, meanwhile),
  ];
}

/** Why the operator scales, or does not. */
export type ScalingReason =
  | 'Measuring' // it adds and removes pods as the thresholds say
  | 'AtMaximum' // more pods are wanted than are allowed
  | 'FillingWindow' // it has not measured for long enough, after a restart of the operator, say
  | 'NoMetrics'
  | 'Paused'
  | 'ScaledToZero';

/** Only on a RenderService with `scaling`. */
export function scalingActive(reason: ScalingReason, message: string): ConditionDraft {
  const status = { Measuring: 'True', AtMaximum: 'True', FillingWindow: 'Unknown' } as const;
  return draft('ScalingActive', status[reason as keyof typeof status] ?? 'False', reason, message);
}

/**
 * New conditions with times: a condition whose status is as before keeps its transition time, and one that is only
 * told on keeps the generation that it was known for.
 * @param now RFC 3339 time to give to those that changed
 */
export function mergeConditions(
  before: Condition[],
  drafts: ConditionDraft[],
  observedGeneration: number,
  now: string,
): Condition[] {
  return drafts.map((next) => {
    const old = before.find(({ type }) => type === next.type);
    const lastTransitionTime = old?.status === next.status ? old.lastTransitionTime : now;
    return { ...next, lastTransitionTime, observedGeneration: next.observedGeneration ?? observedGeneration };
  });
}

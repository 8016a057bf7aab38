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
  | 'ScalingActive';
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** A condition without its times; `mergeConditions` adds them. */
export interface ConditionDraft {
  type: ConditionType;
  status: ConditionStatus;
  reason: string;
  message: string;
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

/** What the workers have made of `concurrency: Auto`; only there with it. */
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
  unknown: () => draft('ConcurrencyTuned', 'Unknown', 'NotSampled', 'no pod has told about its workers yet'),
};

/** Whether the pods that are ready have the live settings of the spec. */
export const liveSettingsApplied = {
  yes: (pods: number) =>
    draft('LiveSettingsApplied', 'True', 'AllPods', `${pods} of ${pods} pods that are ready have the live settings`),
  waiting: (have: number, pods: number, problem: string | undefined) =>
    draft('LiveSettingsApplied', 'False', 'Waiting', `${lacking(have, pods)}${problem ? `; ${problem}` : ''}`),
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
 * Whether what was applied stays as it is. There only since somebody has fought for an object, as long as the operator
 * knows of it.
 */
export const objectsInSync = {
  yes: () => draft('ObjectsInSync', 'True', 'InSync', 'nobody else writes the objects of this RenderService'),
  contended: (what: string[]) =>
    draft(
      'ObjectsInSync',
      'False',
      'Contended',
      `${what.join('; ')}, again and again, and Corelane takes it back, by now once a minute only. Let that program leave these objects alone, or set what it wants in the RenderService`,
    ),
};

export type StalledReason =
  | 'InvalidSpec' // the spec slipped through the API server's validation
  | 'NotOwned' // an object of that name belongs to somebody else
  | 'Rejected' // the API server refuses an object that was made from the spec
  | 'ProgressDeadlineExceeded'; // the Deployment made no progress

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
 * New conditions with times: a condition whose status is as before keeps its transition time.
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
    return { ...next, lastTransitionTime, observedGeneration };
  });
}

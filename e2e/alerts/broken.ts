/** The rules broken on purpose: what is taken out of them, and the case that must notice. */

export interface Broken {
  from: RegExp;
  to: string;
  /** The name of a case. */
  noticed: string;
}

const OF_ALL = String.raw`max by \(namespace, renderservice\) `;
const UNLESS = String.raw`unless on \(namespace, renderservice\) `;
const AND = String.raw`and on \(namespace, renderservice\) `;

export const BROKEN: Record<string, Broken> = {
  'one failure burns a budget': {
    from: / \* (3600|21600|86400|259200|1800) > 10/g,
    to: ' * $1 >= 0',
    noticed: 'quiet: all of few requests fail, at night',
  },
  'a fault that is over goes on burning': {
    from: /\(renderservice:corelane_requests_failed:ratio_rate5m > on/g,
    to: '(renderservice:corelane_requests_failed:ratio_rate1h > on',
    noticed: 'quiet: a minute of failures is over',
  },
  'busy is saturated': {
    from: RegExp(`${AND}renderservice:corelane_requests_waited:ratio_rate5m > 0\\.1`, 'g'),
    to: '',
    noticed: 'quiet: busy workers, and nobody waits',
  },
  'a fleet that grows lacks pods': {
    from: RegExp(`${AND}${OF_ALL}\\(changes.*== 0`, 'g'),
    to: '',
    noticed: 'quiet: a fleet that grows',
  },
  'a service that is new is down': {
    from: RegExp(`${AND}sum by \\(namespace, renderservice\\) \\(corelane_workers\\{.*offset 15m\\) > 0`, 'g'),
    to: '',
    noticed: 'quiet: a new service whose workers are not up yet',
  },
  'restarts of long ago count': {
    from: /and on \(namespace, renderservice, pod, worker\) corelane_worker_crash_looping offset 1h/g,
    to: '',
    noticed: 'quiet: pods with a past, and a Prometheus without',
  },
  'first restarts are not seen': {
    from: /\(\n *corelane_worker_restarts_total.* unless .*\n.*crash_looping offset 1h\n *\)\n *or /g,
    to: '',
    noticed: 'CorelaneWorkersRestartOften',
  },
  'two renders are many': { from: />= 3/g, to: '>= 2', noticed: 'quiet: two renders got stuck' },
  'no leader for a moment': { from: /for: 3m/g, to: 'for: 0m', noticed: 'quiet: the lead changes' },
  'unknown is no': {
    from: /type="LiveSettingsApplied"\}\) == 0/g,
    to: 'type="LiveSettingsApplied"}) <= 0',
    noticed: 'quiet: pods that cannot be asked for their settings',
  },
  'scaling that is paused is blind': {
    from: /,reason=~"NoMetrics"/g,
    to: '',
    noticed: 'two hours in which all is well',
  },
  'a runtime that is off is absent': {
    from: /,reason=~"RuntimeAbsent"/g,
    to: ',reason=~"Runtime.*"',
    noticed: 'two hours in which all is well',
  },
  'a loop restarts often': {
    from: RegExp(
      `${UNLESS}count by \\(namespace, renderservice\\) \\(max_over_time\\(corelane_worker_crash.*== 1\\)`,
      'g',
    ),
    to: '',
    noticed: 'CorelaneWorkersCrashLoop',
  },
  'failures beside a budget': {
    from: RegExp(`${UNLESS}${OF_ALL}\\(corelane_renderservice_objective_ratio\\{objective="availability"\\}\\)`, 'g'),
    to: '',
    noticed: 'CorelaneAvailabilityBudgetBurn',
  },
  'to wait is to be held': {
    from: / and on \(namespace, job\) max by \(namespace, job\) \(corelane_data_plane_held\) == 1/g,
    to: '',
    noticed: 'quiet: services that wait for their turn',
  },
  "an upgrade of the data plane is its user's rollout": {
    from: RegExp(`${UNLESS}${OF_ALL}\\(corelane_renderservice_condition\\{type="DataPlaneCurrent".*== 0`, 'g'),
    to: '',
    noticed: 'CorelaneDataPlaneHeld',
  },
  'a rollout that has stopped lacks pods': {
    from: RegExp(`${UNLESS}${OF_ALL}\\(corelane_renderservice_condition\\{type="Stalled"\\}\\) == 1`, 'g'),
    to: '',
    noticed: 'CorelaneRolloutStopped',
  },
};

/**
 * What may limit a service, each found by itself, in the order in which one is the reason of the next: who is stuck
 * makes others wait, and not the other way round. Computes only.
 */
import type { Condition } from '../src/api/conditions.ts';
import { IDLE_SHARE_MIN } from '../src/autoscale/idle-workers.ts';
import { type PodNow, type Snapshot, workersOf } from './snapshot.ts';
import { counted, milliseconds } from './text.ts';
import type { Window } from './window.ts';
import { isSilent } from './worker-state.ts';

export interface Finding {
  code: string;
  /** What limits the service, in words. */
  what: string;
  /** What to do. */
  next?: string | undefined;
}

/** Of all workers: so many busy ones are nearly all. */
const SATURATED_SHARE = 0.85;
/** Time at the head of which a stall is still news. */
const STALL_MS = 600_000;
/** Event loops of busy workers that have work for less of the time wait for something. */
const WAITING_SHARE = 0.3;
/** Answers of 5xx that the program has made itself: fewer are a page that is broken. */
const FAILING = { share: 0.05, count: 5 };
/** Renders have most of p99, and what waits has next to nothing. */
const RENDER_SHARE = 0.6;

type Finder = (snapshot: Snapshot, window: Window) => Finding | undefined;

/** The first is what limits it now. */
export function findingsOf(snapshot: Snapshot, window: Window): Finding[] {
  const find = (finders: Finder[]) => finders.flatMap((finder) => finder(snapshot, window) ?? []);
  const roots = find([noPods, stuck, crashLoop, starved, ownSite, dependency]);
  const causes = find([unscheduled, rolloutStopped, podProblem, refused, scalingBlind, atMaximum, isolated]);
  const found = [
    ...limits(roots, causes, saturated(snapshot, window, roots.length > 0), () => find([slowRenders])),
    ...find([contended]),
  ];
  const [failure] = find([failing]);
  // What is only slow, or shares nothing, is less than pages that are none; where nothing comes through it is not.
  if (failure) found.splice(roots.length > 0 || found[0]?.code.startsWith('saturated') ? 1 : 0, 0, failure);
  return found.length > 0 ? found : find([notReady]);
}

function limits(roots: Finding[], causes: Finding[], load: Finding | undefined, slow: () => Finding[]): Finding[] {
  // Renders that hang, or workers that are away, keep the others busy: that is no second fault.
  if (roots.length > 0) return [...roots, ...(load ? [load] : []), ...causes];
  const [cause, ...others] = causes;
  if (load && cause) return [because(load, cause), ...others];
  return load ? [load] : [...slow(), ...causes];
}

/** There are too few workers, and this is why there are no more. */
function because(load: Finding, cause: Finding): Finding {
  return { code: `${load.code}, ${cause.code}`, what: `${load.what}, and ${cause.what}`, next: cause.next };
}

const noPods: Finder = ({ pods, podsNotAsked, bounds, status }) => {
  if (pods.length + podsNotAsked > 0) return undefined;
  const why = find(status.conditions, 'Ready', 'False')?.message;
  if (bounds.replicas === 0)
    return { code: 'no pods', what: 'there are no pods: spec.replicas is 0', next: 'set spec.replicas' };
  return {
    code: 'no pods',
    what: `there are no pods${why ? `: ${why}` : ''}`,
    next: 'look at kubectl describe renderservice',
  };
};

/** Event loops that stand still now, or did so in the last minutes. */
const stuck: Finder = (snapshot) => {
  const workers = workersOf(snapshot);
  const silent = workers.filter(isSilent);
  const lately = workers
    .filter(({ lastStall }) => lastStall && snapshot.atMs - lastStall.atMs < STALL_MS)
    .toSorted((one, other) => (other.lastStall?.atMs ?? 0) - (one.lastStall?.atMs ?? 0));
  const [worst] = silent.toSorted((one, other) => (other.silentS ?? 0) - (one.silentS ?? 0));
  const place = lately[0]?.lastStall?.in;
  const where = place ? `in ${place}` : '';
  if (worst) {
    const longest = `${worst.name} of ${worst.pod} for ${Math.round(worst.silentS ?? 0)} s`;
    const last = where ? `; the last one was stuck ${where}` : '';
    const who = silent.length === 1 ? 'an event loop stands still' : `${silent.length} event loops stand still`;
    return {
      code: 'stuck renders',
      what: `${who}, ${longest}${last}`,
      next: nextOfStuck(worst.pod, worst.name, place),
    };
  }
  const [last] = lately;
  if (!last?.lastStall) return undefined;
  const ago = Math.round((snapshot.atMs - last.lastStall.atMs) / 1000);
  const what = `renders get stuck: ${counted(lately.length, 'worker')} in the last 10 minutes, last ${ago} s ago ${where} (${last.name} of ${last.pod})`;
  return { code: 'stuck renders', what, next: nextOfStuck(last.pod, last.name, place) };
};

function nextOfStuck(pod: string, worker: string, place: string | undefined): string {
  const index = worker.slice(worker.lastIndexOf('-') + 1);
  if (place) return `mend ${place}; "stuckIn" in the access log has the URLs (corelane logs NAME --slow)`;
  return `after watchdog.stallTimeout its stack is known (corelane top NAME, key s); meanwhile: corelane profile NAME --pod ${pod} --worker ${index}`;
}

const crashLoop: Finder = (snapshot) => {
  const loops = workersOf(snapshot).filter(({ crashLoop }) => crashLoop);
  const [first] = loops;
  // As the operator has seen it, where the pod does not tell.
  const seen = find(snapshot.status.conditions, 'WorkersHealthy', 'False');
  if (!first?.crashLoop) return seen && { code: 'crash loop', what: seen.message };
  const { pod, name, crashLoop: loop } = first;
  const others = loops.length > 1 ? ` and ${loops.length - 1} more restart` : ' restarts';
  const what = `${name} of ${pod}${others} in a loop: exit code ${loop.exitCode}, ${Math.ceil(loop.backoffSeconds)} s between two tries`;
  return { code: 'crash loop', what, next: `read what it says at its end: kubectl logs ${pod} -c ${name}` };
};

/** Renders that wait for a request to their own site, which waits for the slots of such renders until it is refused. */
const ownSite: Finder = (_snapshot, { failures, refusedOwn, childWaits }) => {
  // Programs ask other services, too: then it is not this queue that refuses.
  const refused = ['queue-full', 'queue-timeout'].reduce((sum, one) => sum + (failures.get(one) ?? 0), 0);
  if (refused === 0 || refusedOwn + childWaits === 0) return undefined;
  if (refusedOwn === 0)
    return {
      code: 'own site',
      what: `renders may wait for each other: ${counted(childWaits, 'render')} waited beside a child process, such as a browser, while all slots of the worker were taken`,
      next: 'the log of the workers names the process ("beside the child process"); if it asks the site of this program, let it ask http://127.0.0.1:$PORT (docs/frameworks/README.md)',
    };
  return {
    code: 'own site',
    what: `renders wait for each other: ${counted(refusedOwn, 'request')} that renders sent, most likely to their own site, got no worker`,
    next: 'let the program ask the host that its client has asked for, or http://127.0.0.1:$PORT, and let gateways pass the header X-Corelane-Own-Site on; the log of the workers names the host',
  };
};

/** Renders that wait for something that does not answer: time-outs, places taken by what was given up, idle loops. */
const dependency: Finder = (snapshot, { failures, activeShare, renderP99Ms }) => {
  const workers = workersOf(snapshot).filter(({ up }) => up);
  const blocked = workers.filter(({ blocked }) => blocked).length;
  const timedOut = (failures.get('render-timeout') ?? 0) + (failures.get('class-timeout') ?? 0);
  const waits = activeShare !== undefined && activeShare < WAITING_SHARE;
  if (blocked === 0 && timedOut === 0) return undefined;
  const parts = [
    timedOut > 0
      ? `${counted(timedOut, 'render')} had no answer in time (timeouts.render, or timeouts.handler for POST and the like)`
      : '',
    blocked > 0
      ? `${blocked} of ${counted(workers.length, 'worker')} ${blocked === 1 ? 'is' : 'are'} taken by renders that were given up`
      : '',
    waits ? `busy workers compute for ${Math.round(100 * activeShare)} % of the time` : '',
  ].filter(Boolean);
  // A computation of that length has an event loop that is busy, or silent.
  const computes = activeShare !== undefined && !waits;
  return {
    code: 'time-outs',
    what: `renders end by time-out${computes ? '' : ', which wait for something that does not answer'}: ${parts.join(', ')}`,
    next: computes
      ? `corelane profile NAME shows what they compute (p99 of renders is ${milliseconds(renderP99Ms)})`
      : 'look at what they wait for (database, API), give its calls a time-out below timeouts.render, or raise the limit if they may take so long; corelane logs NAME --slow has the URLs',
  };
};

/** Event loops have work, and their processes no CPU for it: a limit, or neighbours. */
const starved: Finder = (snapshot, { starved: lacking }) => {
  const [worst] = lacking;
  if (!worst) return undefined;
  const all = workersOf(snapshot).length;
  const verb = lacking.length === 1 ? 'gets' : 'get';
  const had = `${worst.name} of ${worst.pod} had work for ${worst.activeS.toFixed(1)} s, and CPU for ${worst.cpuS.toFixed(1)} s of that`;
  const what = `${lacking.length} of ${counted(all, 'worker')} ${verb} too little CPU: ${had}`;
  // One of several is no matter of the spec, which is the same for all.
  if (2 * lacking.length < all)
    return {
      code: 'slow worker',
      what,
      next: `look at its node (kubectl get pod ${worst.pod} -o wide, kubectl top node), or delete the pod so that it comes elsewhere; else calls that block (execSync): corelane profile NAME --pod ${worst.pod}`,
    };
  return {
    code: 'throttled',
    what,
    next: 'limits.cpu below 1 throttles a worker (corelane check NAME, C002): leave it out, or ask for 1; else the nodes are too full, or it makes calls that block (execSync)',
  };
};

/** The program itself answers 5xx. */
const failing: Finder = (_snapshot, { failures, requests }) => {
  const own = failures.get('application') ?? 0;
  if (own < FAILING.count || own < FAILING.share * requests) return undefined;
  return {
    code: 'application errors',
    what: `the program answers 5xx itself: ${own} of ${counted(requests, 'request')} (${Math.round((100 * own) / Math.max(1, requests))} %)`,
    next: 'read what the workers log: kubectl logs POD -c worker-0; the access log (container nginx) has the URLs',
  };
};

/** The scheduler finds no node for pods that there should be. */
const unscheduled: Finder = ({ pods }) => {
  const lacking = pods.filter(({ state, problem }) => state === 'unscheduled' && problem !== undefined);
  const [first] = lacking;
  if (!first?.problem) return undefined;
  const { what, next } = split(first.problem);
  const words = what.replace(/^pod \S+ cannot/, 'cannot');
  return { code: 'not scheduled', what: lacking.length === 1 ? what : `${lacking.length} pods ${words}`, next };
};

/** Anything else that keeps pods from running, or from being made. */
const podProblem: Finder = ({ pods, status }) => {
  const lacking = pods.filter(({ state, problem }) => state !== 'unscheduled' && problem !== undefined);
  const [first] = lacking;
  if (first?.problem) {
    // A rollout that has stopped has told of it.
    if (find(status.conditions, 'Stalled', 'True')?.message.includes(first.problem)) return undefined;
    const { what, next = `look at kubectl describe pod ${first.name}` } = split(first.problem);
    return {
      code: 'pods do not run',
      what: lacking.length === 1 ? what : `${lacking.length} pods do not run; ${what}`,
      next,
    };
  }
  const said = (status.conditions ?? []).find(({ type }) => type === 'Ready')?.message ?? '';
  const at = said.indexOf('pods cannot be made: ');
  return at < 0 ? undefined : { code: 'pods are not made', ...split(said.slice(at)) };
};

/** problems.ts writes the way out behind the words of who refuses. */
function split(problem: string): { what: string; next?: string | undefined } {
  const [what = '', next] = problem.split('. Way out: ');
  return { what, next };
}

const rolloutStopped: Finder = ({ status }) => {
  const stalled = find(status.conditions, 'Stalled', 'True');
  if (stalled?.reason !== 'ProgressDeadlineExceeded') return undefined;
  return {
    code: 'rollout stopped',
    what: `the rollout has stopped: ${stalled.message}`,
    next: 'mend what the message names, or go back: kubectl apply the spec before; pods of the old template go on serving',
  };
};

const refused: Finder = ({ status }) => {
  const stalled = find(status.conditions, 'Stalled', 'True');
  if (!stalled || stalled.reason === 'ProgressDeadlineExceeded') return undefined;
  return {
    code: 'refused configuration',
    what: `the latest spec is not in use (${stalled.reason}): ${stalled.message}`,
    next: 'mend the fields that it names; corelane check NAME tells more',
  };
};

const scalingBlind: Finder = ({ status }) => {
  const condition = find(status.conditions, 'ScalingActive', 'False');
  if (!condition || condition.reason === 'ScaledToZero') return undefined;
  if (condition.reason === 'Paused')
    return {
      code: 'scaling paused',
      what: `scaling is paused: ${condition.message}`,
      next: 'take the annotation off when the reason for it is over',
    };
  return {
    code: 'scaling blind',
    what: `scaling sees nothing: ${condition.message}`,
    next: 'mend the Metrics API (kubectl top pods must answer), or set spec.replicas by hand meanwhile',
  };
};

const atMaximum: Finder = ({ status, bounds }) => {
  const condition = status.conditions?.find(({ type, reason }) => type === 'ScalingActive' && reason === 'AtMaximum');
  if (!condition) return undefined;
  const max = bounds.scaling?.max;
  return {
    code: 'at maximum',
    what: `scaling is at its maximum: ${condition.message}`,
    next: `raise scaling.maxReplicas${max === undefined ? '' : ` above ${max}`}, or make renders cheaper (corelane profile NAME)`,
  };
};

/** A pod that does not know the others of its revision keeps what waits to itself. */
const isolated: Finder = ({ pods, bounds: { peersMax } }) => {
  if (peersMax === undefined) return undefined;
  const asked = pods.filter(({ state, figures }) => state === 'ready' && figures?.peersKnown !== undefined);
  const others = ({ revision }: PodNow) => asked.filter((pod) => pod.revision === revision).length - 1;
  const alone = asked.filter((pod) => (pod.figures?.peersKnown ?? 0) < Math.min(peersMax, others(pod)) / 2);
  const [first] = alone;
  if (!first) return undefined;
  return {
    code: 'isolated',
    what: `${alone.length} of ${counted(asked.length, 'pod')} know less than half of the others (${first.name}: ${first.figures?.peersKnown} of ${others(first)}), and do not share their queues`,
    next: 'let its pods reach each other on TCP 9001, find their DNS name, and have the Secret with their key (NetworkPolicy, docs/pooling.md)',
  };
};

/**
 * Nearly all workers have a request, and more wait or are refused.
 * @param hasRoot whether a fault is the reason
 */
function saturated(snapshot: Snapshot, window: Window, hasRoot: boolean): Finding | undefined {
  const { failures, queueP99Ms = 0, p99Ms = 0 } = window;
  const workers = workersOf(snapshot).filter(({ up }) => up);
  const { concurrency = 1 } = snapshot.bounds;
  const busy = workers.filter(({ busy, blocked, places }) => blocked || busy >= (places ?? concurrency)).length;
  const waiting = snapshot.pods.reduce((sum, { figures }) => sum + (figures?.queue ?? 0), 0);
  const refusals = ['queue-full', 'queue-timeout', 'no-worker'].reduce((sum, one) => sum + (failures.get(one) ?? 0), 0);
  const isFull = workers.length > 0 && busy >= SATURATED_SHARE * workers.length;
  // Between two bursts nobody waits; the counters have seen it.
  const hasWaited = waiting > 0 || refusals > 0 || (queueP99Ms > 0.3 * p99Ms && queueP99Ms >= 50);
  if (!(isFull && hasWaited) && refusals === 0) return undefined;
  const busyWorkers = `${busy} of ${counted(workers.length, 'worker')} ${busy === 1 ? 'is' : 'are'} busy`;
  const parts = [
    waiting > 0 ? `${counted(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'}` : '',
    refusals > 0 ? `${refusals} were refused` : '',
  ].filter(Boolean);
  const what = [busyWorkers, ...parts].join(', ');
  const more = snapshot.bounds.scaling
    ? 'scaling adds pods as its thresholds say (kubectl describe); faster: raise scaling.minReplicas'
    : 'more pods (spec.replicas, or spec.scaling), or cheaper renders: corelane profile NAME; corelane plan says how many';
  return { code: 'saturated', what, next: hasRoot ? more : (moreAtATime(snapshot, window) ?? more) };
}

/** Workers that are taken and idle: a fixed number of renders at a time is what limits them. */
function moreAtATime({ bounds }: Snapshot, { activeShare = 1 }: Window): string | undefined {
  if (bounds.concurrency === undefined || activeShare > 1 - IDLE_SHARE_MIN) return undefined;
  const percent = Math.round(100 * activeShare);
  return `set concurrency: Auto, if the program can render several pages at a time: it is ${bounds.concurrency}, and busy workers compute for ${percent} % of the time and wait for the rest (docs/concurrency.md)`;
}

/** Nobody waits for workers, and p99 is that of the renders: beyond the objective, where there is one. */
const slowRenders: Finder = ({ bounds }, window) => {
  const { p99Ms, renderP99Ms, queueP99Ms = 0, rendered, activeShare = window.renderedShare } = window;
  if (p99Ms === undefined || renderP99Ms === undefined || rendered === 0) return undefined;
  const objective = bounds.latencyMs.p99;
  const limit = objective ?? 1_000;
  if (p99Ms <= limit || renderP99Ms < RENDER_SHARE * p99Ms || queueP99Ms > renderP99Ms) return undefined;
  const beyond = objective === undefined ? '' : `, and the objective is ${milliseconds(objective)}`;
  const waits = activeShare !== undefined && activeShare < WAITING_SHARE;
  const share = activeShare === undefined ? '' : ` (they compute for ${Math.round(100 * activeShare)} % of that)`;
  return {
    code: waits ? 'slow dependency' : 'slow renders',
    what: `renders take long: p99 ${milliseconds(renderP99Ms)}${share}${beyond}${waits ? ', so they wait for something else' : ''}; next to nothing is queue`,
    next: waits
      ? 'look at what they wait for (database, API); corelane logs NAME --slow has the URLs'
      : 'corelane profile NAME shows where the time goes; corelane logs NAME --slow has the URLs',
  };
};

const contended: Finder = ({ status }) => {
  const condition = find(status.conditions, 'ObjectsInSync', 'False');
  return condition && { code: 'contended', what: condition.message };
};

const notReady: Finder = ({ status }) => {
  const condition = find(status.conditions, 'Ready', 'False');
  return condition && { code: 'not ready', what: condition.message };
};

function find(conditions: Condition[] | undefined, type: string, status: string): Condition | undefined {
  return conditions?.find((one) => one.type === type && one.status === status);
}

/** Prometheus' text format, and the metrics of a worker in it. docs/metrics.md lists them. */
'use strict';

const { CLASSES_MAX, ownClasses } = require('./classes.cjs');
const { DURATION_BUCKETS, GC_KINDS, LAG_BUCKETS, LEVELS_MAX } = require('./shared-metrics.cjs');

const WORKER = `worker="${Number(process.env.WORKER_INDEX ?? 0)}"`;

/** Escapes what stands between the quotes of a label. */
function label(value) {
  return String(value).replace(/[\\"\n]/g, (found) => (found === '\n' ? '\\n' : `\\${found}`));
}

function sample(name, labels, value) {
  const all = [WORKER, ...Object.entries(labels).map(([key, text]) => `${key}="${label(text)}"`)];
  return `${name}{${all.join(',')}} ${value}`;
}

/** A metric with samples of `[labels, value]`. */
function metric(name, type, help, samples) {
  if (samples.length === 0) return '';
  const lines = samples.map(([labels, value]) => sample(name, labels, value));
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`;
}

/** A metric with one sample without labels of its own. */
function one(name, type, help, value) {
  return metric(name, type, help, [[{}, value]]);
}

/** Lines of one histogram, from counts of each bucket, of the last one, and the sum. */
function histogramLines(name, bounds, counts, labels) {
  let count = 0;
  const lines = [...bounds, '+Inf'].map((bound, index) => {
    count += counts[index];
    return sample(`${name}_bucket`, { ...labels, le: bound }, count);
  });
  return [...lines, sample(`${name}_sum`, labels, counts[bounds.length + 1]), sample(`${name}_count`, labels, count)];
}

function histogram(name, help, lines) {
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${lines.join('\n')}\n`;
}

function durations({ duration }) {
  const name = 'corelane_worker_render_duration_seconds';
  const length = DURATION_BUCKETS.length + 2;
  const lines = Array.from({ length: LEVELS_MAX }, (_unused, index) => {
    const counts = duration.subarray(index * length, (index + 1) * length);
    const isUsed = counts.some((count) => count > 0);
    return isUsed ? histogramLines(name, DURATION_BUCKETS, counts, { concurrency: index + 1 }) : [];
  });
  const help = 'Time from the begin of a request to the end of its response, by requests in progress at its begin.';
  return histogram(name, help, lines.flat());
}

/** Requests that are no renders, by class. */
function classes(metrics) {
  const all = ownClasses();
  const byClass = (values) => all.map(({ name }, index) => [{ class: name }, values[index]]);
  const name = 'corelane_worker_class_duration_seconds';
  const length = DURATION_BUCKETS.length + 2;
  const lines = all.map((one, index) => {
    const counts = metrics.classDuration.subarray(index * length, (index + 1) * length);
    return histogramLines(name, DURATION_BUCKETS, counts, { class: one.name });
  });
  return [
    metric(
      'corelane_worker_class_requests_total',
      'counter',
      'Requests of a class begun.',
      byClass(metrics.classRequests),
    ),
    metric(
      'corelane_worker_class_requests_in_flight',
      'gauge',
      'Of a class, in progress.',
      byClass(metrics.classInFlight),
    ),
    metric(
      'corelane_worker_class_overlap_total',
      'counter',
      'Requests of a class that had to wait in here for another one of it.',
      byClass(metrics.classWaited),
    ),
    histogram(name, 'Time from the begin of a request of a class to the end of its response.', lines.flat()),
  ];
}

/** What renders have sent to their own site. */
function ownSite({ classRequests, ownSiteSent, ownSiteRefused, childWaits }) {
  const begun = classRequests.subarray(CLASSES_MAX).reduce((sum, count) => sum + count, 0);
  const name = 'corelane_worker_own_site';
  return [
    one(`${name}_sent_total`, 'counter', 'Requests that renders sent to their own site.', ownSiteSent[0]),
    one(`${name}_requests_total`, 'counter', 'Requests of renders, begun beside the renders of this worker.', begun),
    one(`${name}_refused_total`, 'counter', 'Requests of the program that a full queue refused.', ownSiteRefused[0]),
    one(
      'corelane_worker_child_waits_total',
      'counter',
      'Renders that waited beside a child process while all slots were taken.',
      childWaits[0],
    ),
  ];
}

/** How the event loop spent its time, by renders in progress; none where nobody keeps account. */
function levels({ levelMs, levelIdleMs }) {
  const used = [...levelMs.keys()].filter((level) => level > 0 && levelMs[level] > 0);
  const byLevel = (values) => used.map((concurrency) => [{ concurrency }, values[concurrency] / 1000]);
  return [
    metric(
      'corelane_worker_level_seconds_total',
      'counter',
      'Time with so many renders in progress.',
      byLevel(levelMs),
    ),
    metric(
      'corelane_worker_level_idle_seconds_total',
      'counter',
      'Of that, time in which the event loop had nothing to do.',
      byLevel(levelIdleMs),
    ),
  ];
}

/** What the supervisor knows with `concurrency: Auto`. */
function autoMetrics({ waitRatio, heldBy, holds, changes }) {
  return [
    metric(
      'corelane_worker_wait_ratio',
      'gauge',
      'Time that renders wait, for each second of CPU.',
      waitRatio === undefined ? [] : [[{}, waitRatio]],
    ),
    metric(
      'corelane_worker_concurrency_held',
      'gauge',
      'Whether something keeps the concurrency limit from rising although it would.',
      holds.map((reason) => [{ reason }, Number(reason === heldBy)]),
    ),
    metric(
      'corelane_worker_concurrency_changes_total',
      'counter',
      'Changes of the concurrency limit.',
      Object.entries(changes).map(([direction, count]) => [{ direction }, count]),
    ),
  ];
}

function heap(metrics, spaces) {
  const kinds = ['used', 'size', 'available'];
  const help = ['Bytes in use, by heap space.', 'Bytes committed, by heap space.', 'Bytes free, by heap space.'];
  return kinds.map((kind, offset) =>
    metric(
      `corelane_worker_heap_space_${kind}_bytes`,
      'gauge',
      help[offset],
      spaces.map((space, index) => [{ space }, metrics.heap[3 * index + offset]]),
    ),
  );
}

function processMetrics() {
  const { user, system } = process.cpuUsage();
  return [
    one('corelane_worker_resident_memory_bytes', 'gauge', 'Resident memory of the process.', process.memoryUsage.rss()),
    one('corelane_worker_cpu_seconds_total', 'counter', 'CPU time of the process.', (user + system) / 1e6),
  ];
}

function eventLoop({ idleMs, activeMs, beatAtMs, lag }, nowMs) {
  // What the loop has not written down yet it has spent with the program: since its last beat it has not been idle for
  // longer than the time between two.
  const silentMs = beatAtMs[0] > 0 ? Math.max(0, nowMs - beatAtMs[0]) : 0;
  const busy = silentMs > 1_000 ? silentMs : 0;
  const lagName = 'corelane_worker_event_loop_lag_seconds';
  const seconds = (activeMs[0] + busy) / 1000;
  return [
    one('corelane_worker_event_loop_active_seconds_total', 'counter', 'Time that the event loop was busy.', seconds),
    one('corelane_worker_event_loop_idle_seconds_total', 'counter', 'Time that it waited for work.', idleMs[0] / 1000),
    one('corelane_worker_event_loop_silence_seconds', 'gauge', 'Age of the last sign of life.', silentMs / 1000),
    histogram(lagName, 'How late timers ran.', histogramLines(lagName, LAG_BUCKETS, lag, {})),
  ];
}

/** All metrics of a worker process as text. */
function renderMetrics(metrics, spaces, nowMs) {
  const { requests, inFlight, withoutSlot, abandoned, overlaps, dropped, own, gcCount, gcSeconds } = metrics;
  const byKind = (values) => GC_KINDS.map((kind, index) => [{ kind }, values[index]]);
  return [
    one('corelane_worker_requests_total', 'counter', 'Requests begun.', requests[0]),
    one('corelane_worker_requests_in_flight', 'gauge', 'Requests in progress.', inFlight[0]),
    one('corelane_worker_abandoned_renders', 'gauge', 'Of these, those that nobody waits for any more.', abandoned[0]),
    one('corelane_worker_requests_without_slot', 'gauge', 'Requests that go on without a slot.', withoutSlot[0]),
    one('corelane_worker_overlap_total', 'counter', 'Requests that had to wait for another one in here.', overlaps[0]),
    one('corelane_worker_dropped_total', 'counter', 'Of those that waited, the ones whose client left.', dropped[0]),
    one('corelane_worker_own_requests_total', 'counter', 'Requests to itself, as parts of renders.', own[0]),
    ...ownSite(metrics),
    durations(metrics),
    ...levels(metrics),
    ...classes(metrics),
    one(
      'corelane_worker_background_seconds_total',
      'counter',
      'Time that the event loop was busy while no request was in progress.',
      metrics.backgroundMs[0] / 1000,
    ),
    metric('corelane_worker_gc_total', 'counter', 'Garbage collections, by kind.', byKind(gcCount)),
    metric('corelane_worker_gc_seconds_total', 'counter', 'Time in garbage collections.', byKind(gcSeconds)),
    ...heap(metrics, spaces),
    ...eventLoop(metrics, nowMs),
    ...processMetrics(),
  ].join('');
}

/** The text with these metrics alone. */
function only(text, names) {
  const wanted = new Set(names);
  return text
    .split(/^(?=# HELP )/m)
    .filter((family) => wanted.has(family.split(' ', 3)[2]))
    .join('');
}

module.exports = { autoMetrics, metric, one, only, renderMetrics };

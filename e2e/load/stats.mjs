/**
 * What a load run adds up to. Computes only: no clock, no network.
 */

const WIDTH = 80;
const NO_WORKER = '(no X-Served-By)';

/**
 * @typedef {object} Outcome how one started request ended
 * @property {number} dueAtMs when it was due, on the wall clock
 * @property {string} [requestId] `X-Request-ID`, if the client set one
 * @property {number} latencyMs from when it was due until its last byte (or its failure)
 * @property {number} [status] HTTP status, once the head of a response has arrived
 * @property {string} [reason] `X-Corelane-Error`: who made the error, and why
 * @property {string} [errorCode] why no whole response arrived, e.g. `ECONNREFUSED`, `TIMEOUT`; a status may be there
 *   too
 * @property {boolean} [isReusedConnection] whether the request went over a connection that had served another one
 *   before
 * @property {string} [servedBy] `X-Served-By`
 * @property {number} [inProgress] `X-In-Progress`: most requests in progress in the worker during this one's life
 * @property {number} bytes received body bytes
 */

/**
 * The nearest-rank percentile: the smallest value that at least `percent` % of the values do not exceed. Exact,
 * always one of the values.
 *
 * @param {ArrayLike<number>} sorted ascending values
 * @param {number} percent above 0, up to 100
 * @returns {number | null} null without values
 */
export function percentile(sorted, percent) {
  if (sorted.length === 0) return null;
  // Multiplied first: 7 / 100 * 100 is a little more than 7, and would be the rank after the right one.
  return sorted[Math.ceil((percent * sorted.length) / 100) - 1];
}

/**
 * @param {number[]} latenciesMs in any order
 * @returns {{ count: number, mean: number | null, p50: number | null, p95: number | null, p99: number | null,
 *   max: number | null }} milliseconds, rounded to 0.1
 */
export function summarize(latenciesMs) {
  const sorted = Float64Array.from(latenciesMs).sort();
  const at = (percent) => round(percentile(sorted, percent));
  const sum = sorted.reduce((total, value) => total + value, 0);
  const mean = sorted.length === 0 ? null : round(sum / sorted.length);
  return { count: sorted.length, mean, p50: at(50), p95: at(95), p99: at(99), max: at(100) };
}

/**
 * Collects outcomes. `started` minus the number of outcomes is what is in flight; every request ends in exactly one of
 * `responses` (whole, of any status), `errors` and `notStarted`.
 *
 * @param {{ requests: number, concurrencyLimit: number, timeline?: boolean }} options how many requests are planned;
 * more
 *   requests in progress in one worker than `concurrencyLimit` are an overlap; `timeline` keeps every request
 */
export function createStats({ requests, concurrencyLimit, timeline = false }) {
  const statuses = new Map();
  const errors = new Map();
  const workers = new Map();
  const latenciesMs = [];
  const entries = [];
  const counts = { started: 0, responses: 0, ok: 0, errors: 0, errorsOnReusedConnection: 0, overlaps: 0, bytes: 0 };

  const addToWorker = ({ servedBy = NO_WORKER, inProgress = 0 }) => {
    const worker = workers.get(servedBy) ?? { requests: 0, maxInProgress: 0, overlaps: 0 };
    const isOverlap = inProgress > concurrencyLimit;
    worker.requests += 1;
    worker.maxInProgress = Math.max(worker.maxInProgress, inProgress);
    worker.overlaps += isOverlap ? 1 : 0;
    counts.overlaps += isOverlap ? 1 : 0;
    workers.set(servedBy, worker);
  };

  /** `[dueAtMs, latencyMs]` of one that succeeded, `[dueAtMs, latencyMs, how, requestId]` of one that failed. */
  const addToTimeline = ({ dueAtMs, latencyMs, status, reason, errorCode, requestId }) => {
    const isOk = errorCode === undefined && status >= 200 && status < 400;
    const how = errorCode ?? (reason ? `${status} ${reason}` : String(status));
    entries.push([Math.round(dueAtMs), round(latencyMs), ...(isOk ? [] : [how, requestId ?? ''])]);
  };

  const add = (outcome) => {
    if (timeline) addToTimeline(outcome);
    counts.bytes += outcome.bytes;
    // A response that broke off has shown its head all the same: its overlap happened.
    if (outcome.status !== undefined) addToWorker(outcome);
    if (outcome.errorCode !== undefined) {
      counts.errors += 1;
      counts.errorsOnReusedConnection += outcome.isReusedConnection ? 1 : 0;
      increment(errors, outcome.errorCode);
      return;
    }
    counts.responses += 1;
    increment(statuses, outcome.reason ? `${outcome.status} ${outcome.reason}` : outcome.status);
    if (outcome.status < 200 || outcome.status >= 400) return;
    counts.ok += 1;
    latenciesMs.push(outcome.latencyMs);
  };

  return {
    started: () => {
      counts.started += 1;
    },
    add,
    counts: () => ({ ...counts }),
    summary: () => ({
      requests,
      notStarted: requests - counts.started,
      responses: counts.responses,
      ok: counts.ok,
      failed: requests - counts.ok,
      statuses: sorted(statuses),
      errors: sorted(errors),
      errorsOnReusedConnection: counts.errorsOnReusedConnection,
      overlaps: counts.overlaps,
      workers: sorted(workers),
      latencyMs: summarize(latenciesMs),
      bytesReceived: counts.bytes,
      ...(timeline && { timeline: entries }),
    }),
  };
}

/**
 * @param {object} result what `runLoad` returns
 * @returns {string} a table for people, at most 80 columns wide
 */
export function formatTable(result) {
  const { latencyMs: ms } = result;
  const latencies = `p50 ${ms.p50}  p95 ${ms.p95}  p99 ${ms.p99}  max ${ms.max}  (of ${ms.count} ok)`;
  const pairs = (counts) => Object.entries(counts).map(([name, count]) => `${name}: ${count}`);
  const rows = [
    ['target', `${result.method} ${result.url}`],
    ['load', result.ratePerS ? `open loop, ${result.ratePerS}/s, seed ${result.seed}` : 'closed loop'],
    ['concurrency', `${result.concurrency}${result.keepAlive ? ', connections kept' : ', a connection per request'}`],
    [
      'took',
      `${result.durationS} s, ${result.okPerS} ok/s${result.stoppedBy ? `, stopped by ${result.stoppedBy}` : ''}`,
    ],
    ['requests', `${result.requests}: ${result.ok} ok, ${result.failed} failed (${result.notStarted} not started)`],
    ['statuses', pairs(result.statuses).join(', ') || 'none'],
    ['errors', pairs(result.errors).join(', ') || 'none'],
    ['latency, ms', ms.count === 0 ? 'none' : latencies],
    ['overlaps', `${result.overlaps} (more than ${result.concurrencyLimit} in progress in a worker)`],
  ].map(([name, value]) => shorten(`${name.padEnd(13)}${value}`, WIDTH));
  const workers = Object.entries(result.workers).map(([name, { requests, maxInProgress, overlaps }]) =>
    workerRow(name, requests, maxInProgress, overlaps),
  );
  return [...rows, '', workerRow('worker', 'requests', 'most at once', 'overlaps'), ...workers].join('\n');
}

function workerRow(name, requests, maxInProgress, overlaps) {
  const numbers = `${String(requests).padStart(9)}${String(maxInProgress).padStart(14)}${String(overlaps).padStart(10)}`;
  return shorten(name, WIDTH - numbers.length).padEnd(WIDTH - numbers.length) + numbers;
}

/** Cuts from the middle: pod names differ at their ends. */
function shorten(text, length) {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 3) / 2);
  return `${text.slice(0, length - 3 - tail)}...${text.slice(text.length - tail)}`;
}

const round = (value) => (value === null ? null : Math.round(value * 10) / 10);

const increment = (counts, key) => counts.set(key, (counts.get(key) ?? 0) + 1);

const sorted = (map) => Object.fromEntries([...map].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));

/**
 * What the runtime port answers to GET: metrics, stalls, profiles, and what a request died of. docs/runtime.md lists
 * the pages.
 */
'use strict';

const { wasBegun } = require('./request-journal.cjs');
const { howToAsk } = require('./head.cjs');
const { autoMetrics, metric, one, only } = require('./metrics.cjs');
const { spansMetrics } = require('./spans.cjs');
const stallLog = require('./stalls.cjs');
const { ask, tell } = require('./watchers.cjs');

const JSON_TYPE = 'application/json';
/** The thread answers at once; a process that is stopped does not. */
const METRICS_MS = 500;
const PROFILE_SECONDS_MAX = 60;
/** 1 GB takes a minute. Past that the watchdog decides: a worker out of rotation that stands still is killed. */
const HEAP_MS = 300_000;
/** A worker that is not through with what it has by then is left to it. */
const DRAIN_MS = 120_000;
const PROFILE_ANSWER_MS = 30_000;
/**
 * Pages without the header. They change nothing, and say nothing about a visitor's request but its place in the code.
 * All others cost the worker time, memory, a promise or its process, or have stacks, paths and ids of requests.
 */
const OPEN_PAGES = ['/metrics', '/healthz', '/stalls/summary'];

/** What has become of a request that never got its response: the answer that HAProxy gives to its client instead. */
function why(requestId) {
  const stall = requestId ? stallLog.stallOf(requestId) : undefined;
  if (!stall) return { status: 404, body: 'not found\n' };
  // A header is one line of visible ASCII.
  const place = stall.in.replace(/[^\x20-\x7e]/g, '?').slice(0, 512);
  const headers = {
    'X-Corelane-Stuck': place,
    'X-Corelane-Stuck-Requests': stall.requests.length,
    'X-Corelane-Stuck-At': stall.time,
  };
  return { status: 200, type: JSON_TYPE, headers, body: '{"error":"worker-stuck"}' };
}

function stalls(isWhole) {
  const body = JSON.stringify({ stalls: isWhole ? stallLog.history : stallLog.summaries() });
  return { status: 200, type: JSON_TYPE, body };
}

/**
 * @param worker what the supervisor knows of its worker, and how it takes it out of rotation
 * @returns `page(request, socket)`, which answers a request, and `isTaking()`: whether somebody takes a profile or a
 * heap snapshot
 */
function routesOf(worker) {
  /** What somebody is taking of the worker at the moment. */
  let taking;

  async function page({ target, isMeant }, socket) {
    const { pathname, searchParams } = new URL(target, 'http://worker');
    const [, name, rest = ''] = /^\/([a-z]+)(?:\/(.*))?$/.exec(pathname) ?? [];
    if (!isMeant && !OPEN_PAGES.includes(pathname))
      return { status: 403, body: howToAsk(pathname, worker.supervisor.port) };
    switch (name) {
      case 'metrics':
        return { status: 200, type: 'text/plain; version=0.0.4', body: await metrics(searchParams.get('only')) };
      case 'stalls':
        return stalls(rest !== 'summary');
      case 'why':
        return why(rest);
      case 'begun':
        return begun(rest, searchParams);
      case 'now':
        return now();
      case 'handlers':
        return { status: 200, body: worker.runsHandler() ? 'yes\n' : 'no\n' };
      case 'silence':
        return { status: 200, body: `${silence()}\n` };
      case 'profile':
        return profile(Number(searchParams.get('seconds') ?? 10), socket);
      case 'heap':
        return heapSnapshot(socket);
      case 'recycle':
        return recycle();
      case 'healthz':
        return healthz();
      default:
        return { status: 404, body: 'not found\n' };
    }
  }

  /** HAProxy asks for a request whose connection to this worker has ended without an answer. */
  async function begun(requestId, parameters) {
    const refuse = (pid) => worker.refuse(pid, parameters.get('try') ?? '');
    const answer = await wasBegun(worker.supervisor, requestId, Number(parameters.get('ms') ?? 'missing'), refuse);
    return { status: 200, body: `${answer}\n` };
  }

  /** Returns the worker's state, the seconds since its last heartbeat, and its requests, the oldest first. */
  async function now() {
    const server = worker.renderer();
    const { requests = [] } = (server && (await ask(server.pid, 'now', { limitMs: METRICS_MS }))) ?? {};
    const body = JSON.stringify({ state: worker.state(), silentSeconds: worker.status().silentSeconds, requests });
    return { status: 200, type: JSON_TYPE, body };
  }

  /** Milliseconds since the event loop's last sign of life; the state of a worker that is not up. */
  function silence() {
    return worker.state() === 'up' ? Math.round(worker.status().silentSeconds * 1000) : worker.state();
  }

  async function healthz() {
    if (await worker.isUp()) return { status: 200, body: 'up\n' };
    return { status: worker.state() === 'stopping' ? 404 : 503, body: `${worker.state()}\n` };
  }

  /**
   * One at a time: each costs the worker time and memory. The next one may come when `work` has ended, which is when
   * the worker is as it was before, whatever has become of the client.
   */
  function taken(what, work) {
    if (taking) return { status: 409, body: `there is a ${taking} being taken of this worker already\n` };
    const server = worker.renderer();
    if (!server || worker.state() !== 'up')
      return { status: 503, body: `the worker is ${worker.state()}, and nothing can be taken of it\n` };
    taking = what;
    return new Promise((resolve) => {
      const ended = work(server, (source) =>
        resolve({ status: 200, type: JSON_TYPE, source, isWhole: ended.then((answer) => answer?.isDone === true) }),
      )
        .catch((error) => ({ error: String(error) }))
        .finally(() => {
          taking = undefined;
        });
      void ended.then((answer) =>
        resolve({ status: 500, body: `${answer?.error ?? 'the worker has no watchdog thread, or has ended'}\n` }),
      );
    });
  }

  /** Answered when the worker has ended what it had and has been told to end. */
  async function recycle() {
    if (await worker.recycle()) return { status: 200, body: 'recycled\n' };
    const why = `the worker is ${worker.state()}, another one is being replaced, or too few would be left`;
    return { status: 409, body: `not now: ${why}\n` };
  }

  function profile(seconds, socket) {
    if (!(seconds > 0 && seconds <= PROFILE_SECONDS_MAX))
      return { status: 400, body: `seconds must be above 0 and at most ${PROFILE_SECONDS_MAX}\n` };
    const ms = Math.round(seconds * 1000);
    return taken('profile', async ({ pid }, onBulk) => {
      const stop = () => tell(pid, 'stop');
      socket.once('close', stop);
      const question = { argument: String(ms), limitMs: ms + PROFILE_ANSWER_MS, onBulk };
      return ask(pid, 'profile', question).finally(() => socket.off('close', stop));
    });
  }

  /**
   * The event loop stands still for it: no request is given to the worker until that is over, whether somebody still
   * waits for it or not.
   */
  function heapSnapshot(socket) {
    return taken('heap snapshot', async (server, onBulk) => {
      const limit = Date.now() + DRAIN_MS;
      try {
        if (!(await worker.drain(() => !socket.destroyed && Date.now() < limit)))
          return { error: `the worker was ${worker.state()}, and could not be taken out of rotation` };
        server.exempt = true;
        return await ask(server.pid, 'heap', { limitMs: HEAP_MS, onBulk });
      } finally {
        server.exempt = false;
        server.silentMs = 0;
        await worker.undrain(server);
      }
    });
  }

  /** @param names those that are wanted, with commas between; null: all */
  async function metrics(names) {
    const up = Number(await worker.isUp());
    const { restarts, limit, concurrency, lastExitCode, startedAtSeconds, isLooping, backoffSeconds, silentSeconds } =
      worker.status();
    const server = worker.renderer();
    const ofServer = server && (await ask(server.pid, 'metrics', { limitMs: METRICS_MS }));
    const byReason = Object.entries(restarts).map(([reason, count]) => [{ reason }, count]);
    const last = stallLog.history.at(-1);
    const text = [
      one('corelane_worker_up', 'gauge', 'Whether the worker takes requests.', up),
      metric('corelane_worker_restarts_total', 'counter', 'Restarts of the worker process.', byReason),
      one('corelane_worker_stalls_total', 'counter', 'Times that the event loop was declared stuck.', stallLog.total()),
      metric(
        'corelane_worker_last_stall_timestamp_seconds',
        'gauge',
        'When the event loop was stuck last, and where.',
        last ? [[{ in: last.in }, Date.parse(last.time) / 1000]] : [],
      ),
      one('corelane_worker_recycles_total', 'counter', 'Planned restarts between requests.', restarts.recycled),
      one(
        'corelane_worker_concurrency_limit',
        'gauge',
        'Requests that the worker may have; 0 before HAProxy says.',
        limit,
      ),
      ...(concurrency ? autoMetrics(concurrency) : []),
      one('corelane_worker_backoff_seconds', 'gauge', 'Wait before the last restart.', backoffSeconds),
      one(
        'corelane_worker_backoff_active',
        'gauge',
        'Whether a restart is waiting.',
        Number(worker.state() === 'waiting'),
      ),
      one('corelane_worker_crash_looping', 'gauge', 'Whether the worker ends again and again.', Number(isLooping)),
      one('corelane_worker_last_exit_code', 'gauge', 'Exit code of the last worker process that ended.', lastExitCode),
      one('corelane_worker_heartbeat_age_seconds', 'gauge', 'Age of the last heartbeat.', silentSeconds),
      one('corelane_worker_start_time_seconds', 'gauge', 'Start of the worker process.', startedAtSeconds),
      spansMetrics(),
      ofServer?.text ?? '',
    ].join('');
    return names === null ? text : only(text, names.split(','));
  }

  return { page, isTaking: () => taking !== undefined };
}

module.exports = { routesOf };

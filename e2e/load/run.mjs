import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { watchEndpoints } from './endpoints.mjs';
import { createStats } from './stats.mjs';

const PRODUCT = {
  id: 'sku-00000',
  name: 'Packable Ripstop Backpacks',
  brand: 'Driftline',
  category: 'Backpacks',
  priceCents: 12_900,
  listPriceCents: 15_900,
  rating: 4.2,
  reviewCount: 318,
  stock: 17,
  badges: ['Repairable'],
  hues: [25, 140],
  addedOn: '2026-01-15',
};

/**
 * An idle connection is closed after so long. Shorter than drain.delay: within that each one either is used, and told
 * to close, or gone. One that is idle for longer may be closed by nginx just as it is used: HTTP's own race (RFC 9112,
 * 9.5).
 */
const IDLE_MS_MAX = 2_000;

/**
 * When each request of an open loop is due: a Poisson process, so the gaps are exponentially distributed.
 *
 * @param {{ requests: number, ratePerS: number, seed: number }} options the same options give the same times
 * @returns {Float64Array} ascending milliseconds since the start of the run
 */
export function arrivalTimesMs({ requests, ratePerS, seed }) {
  const random = createRandom(seed);
  let timeMs = 0;
  return Float64Array.from({ length: requests }, () => {
    timeMs += (-Math.log(1 - random()) * 1_000) / ratePerS;
    return timeMs;
  });
}

/**
 * A body for the storefront's `POST /render`: props with as many products as fit.
 *
 * @param {number} bytes exact length, at least that of `{"products":[]}`
 * @returns {string} JSON, filled up with trailing spaces
 */
export function createBody(bytes) {
  const head = '{"products":[';
  const tail = ']}';
  const product = JSON.stringify(PRODUCT);
  const count = Math.max(0, Math.floor((bytes - head.length - tail.length + 1) / (product.length + 1)));
  return (head + Array(count).fill(product).join(',') + tail).padEnd(bytes, ' ');
}

/**
 * Runs the load and waits for its end: the last answer, `maxSeconds`, or `signal`. For this project's own services
 * only.
 *
 * @param {import('./options.mjs').LoadOptions} options checked options
 * @param {{ signal?: AbortSignal, onProgress?: (text: string) => void }} [hooks] `signal` ends the run early, its
 *   reason (a string) says why; `onProgress` gets a line every 2 s
 * @returns {Promise<object>} the result; failures of requests are numbers in it, never an exception
 */
export async function runLoad(options, { signal, onProgress = () => {} } = {}) {
  const stats = createStats(options);
  const endpoints = options.endpoints && (await watchEndpoints(options.endpoints));
  const run = createRun({ ...options, target: () => endpoints?.pick() ?? options.url }, stats);
  const stopEarly = () => run.stop(String(signal.reason));
  if (signal?.aborted) stopEarly();
  signal?.addEventListener('abort', stopEarly, { once: true });
  const limit = setTimeout(() => run.stop('max-seconds'), options.maxSeconds * 1_000);
  const progress = setInterval(() => onProgress(progressLine(options, stats, run.elapsedMs())), 2_000);
  try {
    await (options.ratePerS === undefined ? closedLoop(run, options) : openLoop(run, options));
  } finally {
    clearTimeout(limit);
    clearInterval(progress);
    signal?.removeEventListener('abort', stopEarly);
    run.agent.destroy();
    endpoints?.stop();
  }
  return createResult(options, stats, { durationMs: run.elapsedMs(), stoppedBy: run.stoppedBy() });
}

/** The state that the requests of one run share. */
function createRun(options, stats) {
  const startedMs = performance.now();
  const startedAtMs = Date.now();
  let sentCount = 0;
  const elapsedMs = () => performance.now() - startedMs;
  const stopping = new AbortController();
  const agent = new Agent({ keepAlive: options.keepAlive, maxFreeSockets: options.concurrency, timeout: IDLE_MS_MAX });
  const body = options.bodyBytes === undefined ? undefined : createBody(options.bodyBytes);
  const inFlight = new Set();
  return {
    agent,
    elapsedMs,
    signal: stopping.signal,
    stoppedBy: () => (stopping.signal.aborted ? stopping.signal.reason : null),
    stop: (reason) => {
      if (stopping.signal.aborted) return;
      stopping.abort(reason);
      for (const { cancel } of inFlight) cancel('STOPPED');
    },
    /** Sends one request that is due at `dueMs` of the run and waits for its end. */
    send: async (dueMs) => {
      stats.started();
      const requestId = options.requestIds && `${options.requestIds}-${sentCount}`;
      sentCount += 1;
      const sent = sendRequest(options, { agent, body, requestId });
      inFlight.add(sent);
      const outcome = await sent.outcome;
      inFlight.delete(sent);
      stats.add({ ...outcome, requestId, dueAtMs: startedAtMs + dueMs, latencyMs: elapsedMs() - dueMs });
    },
  };
}

/** Each of `concurrency` clients sends its next request when its last one has ended. */
async function closedLoop(run, { requests, concurrency }) {
  let next = 0;
  const client = async () => {
    while (next < requests && !run.signal.aborted) {
      next += 1;
      await run.send(run.elapsedMs());
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, requests) }, client));
}

/** Requests start at their times; those beyond `concurrency` wait, and their latency counts from when they were due. */
async function openLoop(run, options) {
  let running = 0;
  let wake = () => {};
  const waitForAnEnd = () =>
    new Promise((resolve) => {
      wake = resolve;
    });
  for (const dueMs of arrivalTimesMs(options)) {
    const waitMs = dueMs - run.elapsedMs();
    if (waitMs > 0) await delay(waitMs, undefined, { signal: run.signal }).catch(() => {});
    while (running >= options.concurrency) await waitForAnEnd();
    if (run.signal.aborted) break;
    running += 1;
    run.send(dueMs).then(() => {
      running -= 1;
      wake();
    });
  }
  while (running > 0) await waitForAnEnd();
}

/**
 * Sends one request.
 *
 * @returns {{ outcome: Promise<object>, cancel: (errorCode: string) => void }} `outcome` never rejects; it is an
 *   Outcome (see stats.mjs) without its latency
 */
function sendRequest({ target, method, headers, timeoutMs }, { agent, body, requestId }) {
  const idHeader = requestId && { 'x-request-id': requestId };
  const contentHeaders =
    body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const request = httpRequest(target(), { method, agent, headers: { ...contentHeaders, ...idHeader, ...headers } });
  const outcome = { bytes: 0 };
  // The first reason wins: what follows a time-out (a reset, an incomplete response) is only its consequence.
  const fail = (errorCode) => {
    outcome.errorCode ??= errorCode;
    outcome.isReusedConnection = request.reusedSocket;
  };
  const cancel = (errorCode) => {
    fail(errorCode);
    request.destroy();
  };
  const timer = setTimeout(cancel, timeoutMs, 'TIMEOUT');
  const ended = readResponse(request, { outcome, fail }).finally(() => clearTimeout(timer));
  request.end(body);
  return { outcome: ended, cancel };
}

/** Fills the outcome; resolves with it when the response is over, or the request when none came. */
function readResponse(request, { outcome, fail }) {
  return new Promise((resolve) => {
    const failWith = (error) => fail(error.code ?? error.name);
    request.on('error', failWith);
    request.once('close', () => {
      if (outcome.status !== undefined) return;
      fail('NO_RESPONSE');
      resolve(outcome);
    });
    request.once('response', (response) => {
      outcome.status = response.statusCode;
      outcome.reason = response.headers['x-corelane-error'];
      outcome.servedBy = response.headers['x-served-by'];
      outcome.inProgress = Number.parseInt(response.headers['x-in-progress'], 10) || 0;
      response.on('error', failWith);
      response.on('data', (chunk) => {
        outcome.bytes += chunk.length;
      });
      response.once('close', () => {
        if (!response.complete) fail('INCOMPLETE');
        resolve(outcome);
      });
    });
  });
}

function createResult(options, stats, { durationMs, stoppedBy }) {
  const { url, method, concurrency, ratePerS, seed, keepAlive, bodyBytes, concurrencyLimit } = options;
  const summary = stats.summary();
  return {
    url: url.href,
    method,
    mode: ratePerS === undefined ? 'closed' : 'open',
    concurrency,
    ratePerS: ratePerS ?? null,
    seed,
    keepAlive,
    bodyBytes: bodyBytes ?? 0,
    concurrencyLimit,
    durationS: Math.round(durationMs / 100) / 10,
    okPerS: Math.round((summary.ok / durationMs) * 10_000) / 10,
    stoppedBy,
    ...summary,
  };
}

function progressLine({ requests }, stats, elapsedMs) {
  const { started, responses, ok, errors, overlaps } = stats.counts();
  const inFlight = started - responses - errors;
  const failed = responses - ok + errors;
  const sent = `${started}/${requests} started, ${inFlight} in flight`;
  return `${Math.round(elapsedMs / 1_000)} s: ${sent}, ${ok} ok, ${failed} failed, ${overlaps} overlaps`;
}

/** mulberry32: small, seeded, good enough for arrival times. */
function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

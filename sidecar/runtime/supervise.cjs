/**
 * The supervisor: runs the user's program as its child, answers for it on the runtime port, starts it again when it has
 * ended, kills it when its event loop is stuck, warms it up and replaces it between requests. docs/runtime.md has the
 * rules in words. What may happen when is in lifecycle.cjs; here is how the parts are put together.
 */
'use strict';

const { replace } = require('./abandoned.cjs');
const auto = require('./auto-concurrency.cjs');
const begun = require('./request-journal.cjs');
const child = require('./child.cjs');
const { watchClients } = require('./clients-gone.cjs');
const { nowMs } = require('./clock.cjs');
const { compactRegularly } = require('./compact.cjs');
const { drain, undrain } = require('./draining.cjs');
const { healthServer } = require('./health.cjs');
const { isLooping } = require('./lifecycle.cjs');
const { log } = require('./log.cjs');
const { routesOf } = require('./routes.cjs');
const questions = require('./questions.cjs');
const { isUp, lookWhetherReady, warmUp } = require('./readiness.cjs');
const { recycleAsked, watchRecycling } = require('./recycler.cjs');
const recycling = require('./recycling.cjs');
const servers = require('./servers.cjs');
const { supervisor } = require('./settings.cjs');
const spans = require('./spans.cjs');
const { handleSignals } = require('./signals.cjs');
const { dispatch, effects, phase, state } = require('./state.cjs');
const { downAcknowledgedWithin } = require('./down-acknowledged.cjs');
const { endTurn } = require('./turn.cjs');
const { tell } = require('./watchers.cjs');
const { capture, watch } = require('./watchdog.cjs');

/** Before the first start: HAProxy asks every 0.1 s, if it is there already. */
const UNACKNOWLEDGED_START_MS = 300;
/** A launcher (npm, nodemon ...) whose server has ended gets this long to end as well, or to bring up another one. */
const LAUNCHER_MS = 10_000;

Object.assign(effects, {
  log,
  start() {
    state.acceptsSinceMs = undefined;
    state.recycleLimits = recycling.drawLimits();
    begun.sweep(supervisor);
    child.start();
  },
  startIn: (ms) => setTimeout(dispatch, ms, 'due'),
  kill: child.killTree,
  forward: child.forward,
  signalChild: child.signalChild,
  exit: (code) => spans.flush(() => process.exit(code)),
  lookWhetherReady,
  warmUp,
  capture,
  resume: ({ pid }) => tell(pid, 'resume'),
  replace,
  endTurn,
  awaitLauncher(below) {
    clearTimeout(state.launcherTimer);
    const isLate = () => state.servers.size === 0 && dispatch('launcher-late', { below });
    state.launcherTimer = setTimeout(isLate, LAUNCHER_MS);
  },
  forgetLauncher: () => clearTimeout(state.launcherTimer),
});

const pages = routesOf({
  supervisor,
  state: phase,
  isUp,
  renderer: servers.renderer,
  refuse: servers.refuse,
  runsHandler: servers.runsHandler,
  drain,
  undrain,
  recycle: recycleAsked,
  status: () => ({
    restarts: state.life.restarts,
    limit: auto.concurrency()?.limit ?? state.limit,
    concurrency: auto.concurrency(),
    lastExitCode: state.life.lastExitCode,
    startedAtSeconds: state.startedAtSeconds,
    isLooping: isLooping(state.life, nowMs()),
    backoffSeconds: state.life.backoffMs / 1000,
    silentSeconds: servers.silentMs() / 1000,
  }),
});
state.isTaking = pages.isTaking;

/**
 * As long as HAProxy has not been told "down" in so many words, a port that is open counts as up: the worker would get
 * requests before it is warm.
 */
async function startFirst() {
  await downAcknowledgedWithin(UNACKNOWLEDGED_START_MS);
  dispatch('due');
}

/**
 * The supervisor allocates little and has time: without these flags its heap grows to 15 MB more within minutes, and
 * without collections by 2 MB in a minute [measured]; one takes some milliseconds.
 */
function saveMemory() {
  const { setFlagsFromString } = require('node:v8');
  for (const flag of ['--gc-global', '--no-opt', '--no-sparkplug']) setFlagsFromString(flag);
  compactRegularly();
}

/**
 * Becomes the supervisor, for as long as this process lives.
 * @param runtimePort where the supervisor answers; who holds it is the only supervisor of the container
 * @param stepAside called instead when another process holds the port
 */
function supervise(runtimePort, stepAside) {
  const { take } = servers;
  // What HAProxy says is only where it begins.
  const setLimit = auto.isOn ? () => {} : servers.setLimit;
  const server = healthServer({ ...questions, setLimit, take, page: pages.page });
  server.once('error', stepAside);
  server.listen({ port: runtimePort, host: '127.0.0.1', backlog: 64 }, () => {
    server.off('error', stepAside);
    // --inspect is meant for the program, which could not open the same port.
    if ([...process.execArgv, process.env.NODE_OPTIONS].some((option) => option?.includes('--inspect'))) {
      require('node:inspector').close();
    }
    child.findReaper();
    handleSignals();
    saveMemory();
    spans.start();
    void startFirst();
    watch();
    auto.watchConcurrency();
    watchClients();
    if (recycling.isConfigured) void watchRecycling();
  });
}

module.exports = { supervise };

/**
 * HAProxy's questions, and what the supervisor answers: is the worker up, for renders and for each class of other
 * requests, is it there, may its connections be kept.
 */
'use strict';

const { agentOf, saysUp } = require('./agent.cjs');
const { withLimit } = require('./auto-concurrency.cjs');
const { ownClasses } = require('./classes.cjs');
const { nowMs } = require('./clock.cjs');
const { isReplacing } = require('./lifecycle.cjs');
const { isUp } = require('./readiness.cjs');
const { isBlocked, isGuarded, withoutSlot } = require('./servers.cjs');
const { news, phase, state } = require('./state.cjs');
const { BUSY, UNGUARDED } = require('./down-acknowledged.cjs');

/** How long the questions wait for news: below HAProxy's `timeout check`. */
const HOLD_MS = 900;
const HOLD_ALIVE_MS = 9_000;
const HOLD_GUARD_MS = 9_000;

const agent = agentOf(
  {
    async answer() {
      if (await isUp()) return withLimit(isBlocked() ? BUSY : 'up');
      return withLimit(`down #${phase()}`);
    },
    onAnswer(answer) {
      state.busyAcknowledgedSinceMs = answer.endsWith(BUSY) ? (state.busyAcknowledgedSinceMs ?? nowMs()) : undefined;
      if (!saysUp(answer)) state.onDownAcknowledged?.();
    },
  },
  HOLD_MS,
);

/** Busy is not down, nor is a worker that is replaced because nobody waits for what it renders. */
const alive = agentOf(
  {
    async answer() {
      return withSlotless((await isUp()) || isReplacing(state.life, nowMs()) ? 'up' : `down #${phase()}`);
    },
  },
  HOLD_ALIVE_MS,
);

/** How many requests go on without a slot, as a limit that means nothing else: one more, because 0 is no limit. */
function withSlotless(answer) {
  const number = `maxconn:${1 + withoutSlot()}`;
  return answer === 'up' ? `up ${number}` : `${number} ${answer}`;
}

/** Requests that are no renders do not wait for renders that were given up. Each class is asked about for itself. */
const classes = new Map(
  ownClasses().map(({ name }) => [
    name,
    agentOf({ answer: async () => ((await isUp()) ? 'up' : `down #${phase()}`) }, HOLD_MS),
  ]),
);

const guard = agentOf(
  {
    answer: async () => (isGuarded() ? 'up' : UNGUARDED),
    onAnswer(answer) {
      state.guardSaid = answer;
    },
    holdDownMs: HOLD_GUARD_MS,
  },
  HOLD_GUARD_MS,
);

news.on('phase', () => {
  agent.news();
  alive.news();
  for (const one of classes.values()) one.news();
});
news.on('blocked', agent.news);
news.on('limit', agent.news);
news.on('without-slot', () => {
  agent.news();
  alive.news();
});
news.on('guard', guard.news);

module.exports = {
  agent: agent.ask,
  alive: alive.ask,
  classAgent: (name) => classes.get(name)?.ask,
  guard: guard.ask,
};

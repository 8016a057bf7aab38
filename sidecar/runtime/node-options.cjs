/**
 * NODE_OPTIONS: how Node.js reads the variable, and what of it is whose. Start scripts put options of their own on
 * either side of what they find there: NODE_OPTIONS="-r ./agent.cjs $NODE_OPTIONS".
 */
'use strict';

const { join } = require('node:path');

/** Loads the runtime into a process; operator/src/plan/runtime.ts writes it. */
const ENTRY = `--require=${join(__dirname, 'supervisor.cjs')}`;
/** What kubelet leaves of CORELANE_USER_NODE_OPTIONS where `envFrom` has no NODE_OPTIONS. */
const UNRESOLVED = '$(NODE_OPTIONS)';
const PRELOAD = /^(-r|--require)(=|$)/;
/** Sizes that Corelane sets, and the options by which a user sets the same. */
const SIZES = {
  '--max-http-header-size': /^--max-http-header-size(=|$)/,
  '--max-old-space-size': /^--max-(old-space-size(-percentage)?|heap-size)(=|$)/,
  '--max-semi-space-size': /^--max-(semi-space-size|heap-size)(=|$)/,
};

/**
 * The options as they are written. Blanks separate them, but not between double quotes, where a backslash escapes the
 * next character.
 */
function split(text = '') {
  return text.match(/(?:[^ "]|"(?:[^"\\]|\\.)*"?)+/gs) ?? [];
}

/** Without quotes; Node.js and V8 take `_` for `-`. */
function plain(option) {
  return option.replaceAll('"', '').replaceAll('_', '-');
}

function nameOf(option) {
  return plain(option).split('=')[0];
}

/** Options that a script has put before Corelane's. */
function inFront(text) {
  const options = split(text);
  return options.slice(0, Math.max(0, options.indexOf(ENTRY)));
}

/** Whether modules are preloaded before the runtime. */
function hasPreloadInFront(text) {
  return inFront(text).some((option) => PRELOAD.test(plain(option)));
}

/**
 * The user's own options, in the order that they would have without Corelane.
 * @param env CORELANE_USER_NODE_OPTIONS has those of a variable that the operator cannot read, and that may be missing
 */
function usersOptions({ NODE_OPTIONS = '', CORELANE_USER_NODE_OPTIONS: hidden = '' }) {
  const options = split(NODE_OPTIONS);
  const own = hidden === UNRESOLVED ? [] : split(hidden);
  const isThere = ` ${options.join(' ')} `.includes(` ${own.join(' ')} `);
  return options.flatMap((option) => (option !== ENTRY ? [option] : isThere ? [] : own));
}

/** NODE_OPTIONS with Corelane's option first, then the user's. */
function entryFirst(env) {
  return [ENTRY, ...usersOptions(env)].join(' ');
}

/** Whether one of these options says the same as the flag of this name. */
function isSaidBy(options, name) {
  const same = Object.hasOwn(SIZES, name) ? SIZES[name] : undefined;
  return same !== undefined && options.some((option) => same.test(plain(option)));
}

/**
 * The flags without sizes that one of these options, or a later flag, says in another way. For V8 --max-old-space-size
 * and --max-semi-space-size go before --max-heap-size, wherever that stands, and it aborts if it gets all three.
 */
function withoutOverruled(flags, options) {
  return flags.filter((flag, index) => !isSaidBy([...flags.slice(index + 1), ...options], nameOf(flag)));
}

/**
 * Names of Corelane's own flags that do not count with this process as they should: a script has put the user's flag in
 * front, and Node.js takes the last.
 */
function overriding({ NODE_OPTIONS, CORELANE_NODE_FLAGS = '' }) {
  const own = CORELANE_NODE_FLAGS.split(' ').map(nameOf);
  const users = inFront(NODE_OPTIONS);
  return Object.keys(SIZES).filter((name) => own.includes(name) && isSaidBy(users, name));
}

module.exports = {
  ENTRY,
  SIZES: Object.keys(SIZES),
  entryFirst,
  hasPreloadInFront,
  isSaidBy,
  nameOf,
  overriding,
  usersOptions,
  withoutOverruled,
};

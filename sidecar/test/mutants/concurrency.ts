/** Breakages of `concurrency: Auto`: what is measured, what is decided, and who is told. */
import { type Mutant, REMOVED } from './mutant.ts';

export const concurrency: Mutant[] = [
  {
    name: 'HAProxy is told of places behind #',
    breaks: 'concurrency',
    file: 'auto-concurrency.cjs',
    edits: [[/up maxconn:/g, 'up #maxconn:']],
    caughtBy: 'concurrency-auto: for renders that wait it opens',
  },
  {
    name: 'HAProxy is told of no limit',
    breaks: 'concurrency',
    file: 'auto-concurrency.cjs',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: text of the file
    edits: [[/up maxconn:\$\{rule\.limit\}/g, 'up maxconn:${0 * rule.limit}']],
    caughtBy: 'concurrency-auto: for renders that wait it opens',
  },
  {
    name: 'no limit is taken for a number',
    breaks: 'I1',
    file: 'moving-limits.lua',
    edits: [[/return math\.min\(math\.max\(limit, .*\n/g, 'return limit\n']],
    caughtBy: 'concurrency-auto: a number beyond the bounds',
  },
  {
    name: 'the queue does not follow',
    breaks: 'concurrency',
    file: 'moving-limits.lua',
    edits: [[/slots:set_maxconn\(places\)/g, 'slots:get_maxconn()']],
    caughtBy: 'concurrency-auto: for renders that wait it opens',
  },
  {
    name: 'the worker itself lets as many through as it ever might',
    breaks: 'I1',
    file: 'auto-concurrency.cjs',
    edits: [[/setLimit\(rule\.limit\)/g, 'setLimit(bounds.max)']],
    caughtBy: 'concurrency-auto: the worker itself holds back what is above the limit',
  },
  {
    name: 'more than max',
    breaks: 'I1',
    file: 'concurrency-rule.cjs',
    edits: [[/ {2}return max;/g, '  return max + 2;']],
    caughtBy: 'concurrency-auto: a dependency that hangs',
  },
  {
    name: 'renders of the warm-up teach',
    breaks: 'concurrency',
    file: 'auto-concurrency.cjs',
    edits: [
      [/phase\(\) !== 'up' \|\| /g, REMOVED],
      [/ && phase\(\) === 'up'/g, REMOVED],
    ],
    caughtBy: 'concurrency-auto: renders of the warm-up',
  },
  {
    name: 'the event loop is always idle',
    breaks: 'I1',
    file: 'loop-levels.cjs',
    edits: [[/levelIdleMs\[level\] \+= idleMs;/g, 'levelIdleMs[level] += 0.5 * (now.active - this.#before.active);']],
    caughtBy: 'concurrency-auto: renders that compute stay one at a time',
  },
  {
    name: 'what hangs is not seen',
    breaks: 'concurrency',
    file: 'concurrency-limiter.cjs',
    edits: [[/(begins or ends while all that there is hangs\.\n) +this\.#levels\?\.note\(this\.#active\);\n/g, '$1']],
    caughtBy: 'concurrency-auto: a dependency that hangs',
  },
  {
    name: 'renders between two beats are not seen',
    breaks: 'concurrency',
    file: 'concurrency-limiter.cjs',
    edits: [[/this\.#hasRendered \|\| this\.#active > 0/g, 'this.#active > 0']],
    caughtBy: 'concurrency-auto: the limit of the moment holds',
  },
  {
    name: 'it rises while a debugger is attached',
    breaks: 'concurrency',
    file: 'auto-concurrency.cjs',
    edits: [[/inspector: server\.inspected,/g, 'inspector: false,']],
    caughtBy: 'concurrency-auto: an open debugger',
  },
  {
    name: 'several processes are measured as one',
    breaks: 'I1',
    file: 'auto-concurrency.cjs',
    edits: [[/renderers\.length > 1/g, 'renderers.length > 9']],
    caughtBy: 'concurrency-auto: with several processes',
  },
];

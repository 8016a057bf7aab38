/** Breakages of live settings: what is taken, when, and by whom. */
import { type Mutant, REMOVED } from './mutant.ts';

export const live: Mutant[] = [
  {
    name: 'live settings are read once',
    breaks: 'live',
    file: 'live-settings.lua',
    edits: [[/ {4}look\(\)\n/g, REMOVED]],
    caughtBy: 'live: queue.maxLength',
  },
  {
    name: 'a HAProxy that begins has defaults for a moment',
    breaks: 'live',
    file: 'live-settings.lua',
    edits: [
      [/take\(document\.defaults\(\), nil\)\n {2}look\(\)/g, 'take(document.defaults(), nil)'],
      [/LOOK_MS = 250/g, 'LOOK_MS = 5000'],
    ],
    caughtBy: 'live: a HAProxy that is started again',
  },
  {
    name: 'what is wrong counts as far as it is right',
    breaks: 'live',
    file: 'live/document.lua',
    edits: [[/ {4}if least and \(value < least .*\n/g, REMOVED]],
    caughtBy: 'live: what is wrong changes nothing',
  },
  {
    name: 'a file of a later version is taken',
    breaks: 'live',
    file: 'live/document.lua',
    edits: [[/ or read\['version'\] > VERSION/g, REMOVED]],
    caughtBy: 'live: what is wrong changes nothing',
  },
  {
    name: 'the number of places stays',
    breaks: 'live',
    file: 'moving-limits.lua',
    edits: [[/if places ~= limit then server:set_maxconn\(places\) end/g, REMOVED]],
    caughtBy: 'live: concurrency: more at a time',
  },
  {
    name: 'the worker stays at its number',
    breaks: 'live',
    file: 'auto-concurrency.cjs',
    edits: [[/else setFixed\(settings\.concurrency\);/g, 'else return;']],
    caughtBy: 'live: concurrency: more at a time',
  },
  {
    name: 'the bounds stay',
    breaks: 'live',
    file: 'auto-concurrency.cjs',
    edits: [[/setBounds\(settings\);/g, 'return;']],
    caughtBy: 'live: concurrencyRange',
  },
  {
    name: 'a render may take as long as ever',
    breaks: 'live',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-request set-timeout server str\(worker-ms\).*\n/g, REMOVED]],
    caughtBy: 'live: timeouts.render',
  },
  {
    name: 'classes wait as they did',
    breaks: 'live',
    file: 'haproxy.cfg',
    edits: [[/-delay-ms\)/g, '-delay)']],
    caughtBy: 'live: priority: other delays',
  },
  {
    name: 'a full pod leaves its Service whatever anybody says',
    breaks: 'live',
    file: 'pooling/readiness.lua',
    edits: [
      [/live\['shed'\] == 1 and /g, REMOVED],
      [/live\['shed'\] ~= 1/g, 'false'],
    ],
    caughtBy: 'live: readiness.shedWhenFull',
  },
  {
    name: 'a client may have as many as ever',
    breaks: 'live',
    file: 'live.c',
    edits: [[/(look_again\(ngx_event_t \*ev\) \{\n) {2}look\(\);\n/g, '$1']],
    caughtBy: 'live: limits.perClient.requests',
  },
  {
    name: 'pods of all revisions stay strangers',
    breaks: 'live',
    file: 'pooling.lua',
    edits: [[/live\['across-revisions'\] == 1 and /g, 'false and ']],
    caughtBy: 'live: pooling.acrossRevisions',
  },
  {
    name: 'anybody may send something to the port that tells',
    breaks: 'doors',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-request return status 405 unless METH_GET\n/g, REMOVED]],
    caughtBy: 'live: nobody sets anything',
  },
];

/** Breakages of connections that are kept only where the length of responses is seen to. */
import { type Mutant, REMOVED } from './mutant.ts';

export const guarded: Mutant[] = [
  {
    name: 'connections are kept to whoever is up',
    breaks: 'I5',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-request set-header Connection .*\n/g, REMOVED]],
    caughtBy: 'guarded: a server without node:http',
  },
  {
    name: 'who says nothing is guarded',
    breaks: 'I5',
    file: 'haproxy.cfg',
    edits: [[/ {2}(option tcp-check|tcp-check .*)\n/g, REMOVED]],
    caughtBy: 'guarded: a server without node:http',
  },
  {
    name: 'the first process of a cluster takes the guard away',
    breaks: 'I5',
    file: 'worker.cjs',
    edits: [[/ \|\| server\._handle === null/g, REMOVED]],
    caughtBy: 'guarded: a program that uses cluster',
  },
  {
    name: 'processes that render nothing make a worker guarded',
    breaks: 'I5',
    file: 'servers.cjs',
    edits: [
      [
        /all\(\)\.every\(\(\{ guarded \}\) => guarded\) && all\(\)\.some\(\(\{ renders \}\) => renders\)/g,
        'all().length > 0',
      ],
    ],
    caughtBy: 'guarded: a server without node:http',
  },
];

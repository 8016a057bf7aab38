/** Breakages of who waits for whom, and for how long. */
import { type Mutant, REMOVED } from './mutant.ts';

type Breakage = Omit<Mutant, 'file' | 'breaks'>;

const priorityHaproxy: Breakage[] = [
  {
    name: 'all wait alike',
    edits: [[/ +http-request set-priority-offset .*\n/g, REMOVED]],
    caughtBy: 'priority: each goes before those below',
  },
  {
    name: 'a class that is lower never has its turn',
    edits: [[/set-priority-offset .*/g, 'set-priority-class int(1) if { var(txn.class) -m len gt 0 }']],
    caughtBy: 'priority: nobody waits for ever',
  },
  {
    name: 'crawlers fill the queue',
    edits: [[/ +http-request set-var\(txn\.refused\) .*\n/g, REMOVED]],
    caughtBy: 'priority: where there is more to do',
  },
  {
    name: 'crawlers that are refused are counted as people are',
    edits: [
      [/ +use_backend refused-.*\n/g, REMOVED],
      [/ !{ var\(txn\.refused\) -m bool }/g, REMOVED],
    ],
    caughtBy: 'priority: who is lower is refused earlier',
  },
  {
    name: 'who is lower is refused although a worker is free',
    edits: [
      [/(set-var\(txn\.class_max\) .*) if no_slot$/gm, '$1'],
      [/(set-var\(txn\.refused\) .*) if no_slot /g, '$1 if '],
    ],
    caughtBy: 'priority: a crawler',
  },
];

const priorityNginx: Breakage[] = [
  {
    name: 'of several classes the best',
    edits: [[/~\^([0-9]) /g, '~$1$$ ']],
    caughtBy: 'priority: a crawler that says that it looks ahead',
  },
  {
    name: 'a client names its class',
    edits: [[/proxy_set_header X-Corelane-Class \$corelane_class;/g, REMOVED]],
    caughtBy: 'priority: each goes before those below',
  },
];

const deadlinesHaproxy: Breakage[] = [
  {
    name: 'nobody gives up',
    edits: [[/ +http-request set-timeout server var\(txn\.left_ms\)\n/g, REMOVED]],
    caughtBy: 'deadlines: who waits beyond it',
  },
  {
    name: 'who has given up stays in the queue',
    edits: [[/(backend timed\n) +option abortonclose\n/g, '$1']],
    caughtBy: 'deadlines: a client that goes leaves',
  },
  {
    name: 'a deadline that has passed is none',
    edits: [[/ +http-request return .* if { var\(txn\.left_ms\) -m int lt 10 }\n/g, REMOVED]],
    caughtBy: 'deadlines: who waits beyond it',
  },
  {
    name: 'a response is cut at the deadline',
    edits: [[/(var\(txn\.left_ms\)\n.*\n) +http-response set-timeout server .*\n/g, '$1']],
    caughtBy: 'deadlines: a response that has begun',
  },
  {
    name: 'a second try that is too late is rendered',
    edits: [[/ +http-request return .* if { var\(txn\.until_ms\) -m found } .*\n/g, REMOVED]],
    caughtBy: 'deadlines: a second try that comes too late',
  },
  {
    name: 'the largest counts',
    edits: [[/,sub\(txn\.wait_ms\) lt 0/g, ',sub(txn.wait_ms) gt 0']],
    caughtBy: 'deadlines: who may say it',
  },
  {
    name: 'the end of a worker is an error of the stage',
    edits: [[/(frontend timed\n(?:.*\n){5,8}?) +errorfile 502 \/dev\/null\n/g, '$1']],
    caughtBy: 'deadlines: a second try that comes in time',
  },
];

const deadlinesNginx: Breakage[] = [
  {
    name: 'whatever begins with a number is one',
    edits: [[/\{1,9\}\)\$"/g, '{1,9})"']],
    caughtBy: 'deadlines: who may say it',
  },
  {
    name: 'Prefer says milliseconds',
    edits: [[/(\$\{corelane_wait_s\})000/g, '$1']],
    caughtBy: 'deadlines: who may say it',
  },
];

const of = (breaks: Mutant['breaks'], file: Mutant['file'], breakages: Breakage[]): Mutant[] =>
  breakages.map((mutant) => ({ ...mutant, breaks, file }));

export const overload: Mutant[] = [
  ...of('priority', 'haproxy.cfg', priorityHaproxy),
  ...of('priority', 'nginx.conf', priorityNginx),
  ...of('deadlines', 'haproxy.cfg', deadlinesHaproxy),
  ...of('deadlines', 'nginx.conf', deadlinesNginx),
];

/** Breakages of the drain hook. */
import { type Mutant, REMOVED } from './mutant.ts';

export const scripts: Mutant[] = [
  {
    name: 'the hook does not wait for drain.delay',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^while \[ ! -e .*$/gm, 'while false; do']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'clients that do not cease hold the pod for ever',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/ && \[ "\$now_s" -lt "\$end_s" \]/g, REMOVED]],
    caughtBy: 'drain: a client that does not cease',
  },
  {
    name: 'the hook does not stop nginx',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^kill -s USR1 .*$/gm, 'exit 0']],
    caughtBy: 'drain: an idle pod',
  },
  {
    name: 'connections that have sent nothing hold the pod',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/\*segs_in:\*\) .*$/gm, '*segs_in:*) ;;']],
    caughtBy: 'drain: a connection that has never sent anything',
  },
  {
    name: 'a request whose head is still arriving is dropped',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^ *\*bytes_received:\*\) ;;\n/gm, REMOVED]],
    caughtBy: 'drain: a connection that has never sent anything',
  },
  {
    name: 'nobody says that the drain is over when HAProxy has ended for good',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^trap .*$/gm, '']],
    caughtBy: 'drain: a HAProxy that has ended for good',
  },
  {
    name: 'the hook of nginx drops what it has',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/-s USR1 "\$parent"/g, '-s TERM "$pid"']],
    caughtBy: 'drain: nothing is lost',
  },
];

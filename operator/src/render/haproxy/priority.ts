/** Classes of requests: whom others overtake in the queue, and who is refused before it is full. */
import { type Lines, paragraphs, section } from '../directives.ts';
import type { PriorityClass } from '../model/priority.ts';
import { word } from '../safe.ts';
import { liveOfClass } from './live.ts';
import { errorReply } from './replies.ts';

const isIn = ({ name }: PriorityClass) => `{ var(txn.class) -m str ${word(name, 'priority.classes.name')} }`;

/** Before the headers of nginx are taken away. */
export const NOTES_CLASS = 'http-request set-var(txn.class) req.hdr(X-Corelane-Class)';

/**
 * @param waiting sample of all that wait
 * @returns rules for requests without a free slot (`no_slot`)
 */
export function ranks(waiting: string): Lines {
  return [
    '# Milliseconds that it seems to have come later: the queue is in the order of these times.',
    `http-request set-priority-offset ${liveOfClass('delay-ms')}`,
    '# Nobody can be sent away again from the queue. So those that must not fill it do not get in.',
    `http-request set-var(txn.class_max) ${liveOfClass('length-max')} if no_slot`,
    `http-request set-var(txn.class_retry_s) ${liveOfClass('retry-s')} if no_slot`,
    `http-request set-var(txn.refused) bool(true) if no_slot { ${waiting},sub(txn.class_max) ge 0 }`,
  ];
}

/** Which go to the backend below. */
export function usesRefused(classes: PriorityClass[]): Lines {
  return classes.map((one) => `use_backend ${backendOf(one)} if { var(txn.refused) -m bool } ${isIn(one)}`);
}

function backendOf({ name }: PriorityClass): string {
  return `refused-${word(name, 'priority.classes.name')}`;
}

/** One for each class, where its refused requests are counted. */
export function refusedBackends(classes: PriorityClass[]): Lines {
  return [
    '# Counted here, and not as those that a full queue refuses: they are no reason for more pods.',
    ...paragraphs(
      ...classes.map((one) =>
        section(
          `backend ${backendOf(one)}`,
          `http-request return ${errorReply(503, 'queue-full')} hdr Retry-After %[var(txn.class_retry_s)]`,
        ),
      ),
    ),
  ];
}

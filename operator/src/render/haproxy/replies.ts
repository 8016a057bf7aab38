/** What HAProxy answers by itself, and how it says in X-Corelane-Error who made the error. */
import { type Lines, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';

/** An error reply, for `http-error` and `return`. */
export function errorReply(status: number, reason: string, retryAfterSeconds?: number): string {
  const retry = retryAfterSeconds === undefined ? '' : ` hdr Retry-After ${whole(retryAfterSeconds, 'Retry-After')}`;
  const body = `string '{"error":"${reason}"}'`;
  return `status ${status} content-type application/json ${body} hdr X-Corelane-Error ${reason}${retry}`;
}

/** Of a request that has waited for a worker, or for its answer, for too long. */
export function tooLateReplies({ retryAfterSeconds }: DataPlaneModel): Lines {
  return [
    `http-error ${errorReply(503, 'queue-timeout', retryAfterSeconds)}`,
    `http-error ${errorReply(504, 'render-timeout')}`,
  ];
}

/**
 * For a backend of workers: a response whose head is too large, of a far larger one HAProxy's parser says so; and the
 * 431 of a Node.js whose own bound is smaller than ours.
 */
export function boundsHead({ heads }: DataPlaneModel): Lines {
  const max = whole(heads.bytesMax, 'buffering.maxHeaderSize');
  return [
    '# The stage before could not read a larger head, with what is added to it, and would take that for a death.',
    `http-response return ${errorReply(502, 'bad-response')} if { res.hdrs,length gt ${max} } !{ srv_name waiting-room }`,
    '# Of Node.js itself, whose bound is the smaller one of its user. A program sends a Date with its own.',
    words(
      `http-response return ${errorReply(431, 'head-too-large')}`,
      'if { status 431 } !{ res.hdr(Date) -m found } !{ srv_name waiting-room }',
    ),
  ];
}

/** Of a request whose worker has died. */
export const NO_REPLY = [
  '# Closed without a word when a worker dies: nginx then knows that no application answered, replays the request once',
  '# where that is allowed, and else makes the 502 itself. A 502 of an application is passed on and never replayed.',
  'errorfile 502 /dev/null',
];

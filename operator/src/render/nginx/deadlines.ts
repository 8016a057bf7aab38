/** How long a request is waited for, by its own words; and the way that such requests go. */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { block, type Lines } from '../directives.ts';
import type { Deadlines } from '../model/deadlines.ts';
import { headerVariable } from './patterns.ts';

/** HAProxy's entrance for them. */
export const TIMED_SOCKET = `${RUN_MOUNT_PATH}/timed.sock`;

/** Nobody means more than eleven days. */
const WHOLE_MS = '[0-9]{1,9}';
/** A body of less than 10,000 bytes: one buffer of HAProxy holds it and its head, unless that is one of the largest. */
const SMALL_BODY = '[0-9]{1,4}';
const WHOLE_SECONDS = '[0-9]{1,6}';

/** Maps. What is no number of milliseconds or seconds says nothing. */
export function deadlineMaps({ header }: Deadlines): Lines {
  return [
    '# Milliseconds by three who may say them; 0: says nothing.',
    block(
      `map ${headerVariable(header)} $corelane_deadline_own`,
      'default 0;',
      `"~^(?<corelane_own_ms>${WHOLE_MS})$" $corelane_own_ms;`,
    ),
    block(
      'map $http_x_envoy_expected_rq_timeout_ms $corelane_deadline_envoy',
      'default 0;',
      `"~^(?<corelane_envoy_ms>${WHOLE_MS})$" $corelane_envoy_ms;`,
    ),
    block(
      'map $http_prefer $corelane_deadline_prefer',
      'default 0;',
      `"~*(?:^|[,;]) *wait *= *\\"?(?<corelane_wait_s>${WHOLE_SECONDS})\\"? *(?:[,;]|$)" "\${corelane_wait_s}000";`,
    ),
    '# Not of what is to become another protocol: it has no end to wait for.',
    block(
      'map "$http_upgrade|$corelane_deadline_own,$corelane_deadline_envoy,$corelane_deadline_prefer" $corelane_deadlines',
      '"~^\\|0+,0+,0+$" "";',
      '"~^\\|(?<corelane_three>[0-9,]+)$" $corelane_three;',
    ),
    '# Where the rest of a large body waits in front of a stage, HAProxy cannot tell the end of the wait from the end of the stage behind.',
    block(
      'map "$http_transfer_encoding|$content_length|$corelane_deadlines" $corelane_upstream',
      'default corelane;',
      `"~^\\|(?:${SMALL_BODY})?\\|." corelane_timed;`,
    ),
  ];
}

/** For HAProxy, which takes them away. Times: now, and since the first byte of the head. */
export const TELLS_DEADLINES: Lines = [
  'proxy_set_header X-Corelane-Deadlines $corelane_deadlines;',
  'proxy_set_header X-Corelane-Times "$msec,$request_time";',
];

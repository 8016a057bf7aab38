/**
 * Backend `line`, the first stage: the queue. A client that goes leaves it, or gives back its place among those that
 * are served.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { Pooling } from '../model/pooling.ts';
import { ms } from '../safe.ts';
import { STAYS_ON_SIDE } from './canary.ts';
import { KEEPS_SERVERS } from './connections.ts';
import { MOVING_MAXCONN } from './dispatch.ts';
import { STAYS_AT_REVISION } from './stickiness.ts';
import { ONLY_PROVEN_OF_BORROWED, withTicket } from './tickets.ts';

/** The backend: this pod's slots, and those that peers lend. */
export function queue({ cache, pooling, timeouts, webSockets }: DataPlaneModel): Lines {
  return [
    '# As many are let through as there are slots, so that hardly anybody waits in the second stage, where a client that goes',
    '# cannot be noticed. Here it is: aborts free a place in front of the workers, never a worker.',
    section(
      'backend line',
      'option abortonclose',
      KEEPS_SERVERS,
      `timeout server ${ms(timeouts.lineMs, 'timeouts.render')}`,
      // The limit of WebSockets is this pod's own: another one could not say no any more.
      when(webSockets, 'use-server slots if { req.hdr(Upgrade) -m found }'),
      when(
        pooling?.handsOver,
        '# Home first; then whom pooling.lua has opened for one request, each the slot of a peer. Weight 0 is closed.',
        'balance first',
        STAYS_ON_SIDE,
        when(cache === undefined, STAYS_AT_REVISION),
        ONLY_PROVEN_OF_BORROWED,
      ),
      `server slots unix@${RUN_MOUNT_PATH}/slots.sock ${MOVING_MAXCONN}`,
      given(pooling, borrowedSlots),
    ),
  ];
}

function borrowedSlots({ borrowedMax }: Pooling): string[] {
  return Array.from(
    { length: borrowedMax },
    (_unused, index) =>
      `server borrowed-${index} 127.0.0.1:9 maxconn 1 weight 0 ${withTicket(`%[lua.corelane_ticket(${index})]`)}`,
  );
}

/** Section `defaults`: what holds for every frontend and backend that does not say otherwise. */
import { type Lines, section, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ms } from '../safe.ts';

/** The section. */
export function defaults({ isSupervised, queue, timeouts, webSockets }: DataPlaneModel): Lines {
  return section(
    'defaults',
    'mode http',
    '# Also the pause before the same worker is tried again: the smaller of this and 1 s.',
    'timeout connect 200ms',
    when(isSupervised, '# Longer than a supervisor lets the agent check wait for news (0.9 s).', 'timeout check 2s'),
    when(!isSupervised, 'timeout check 500ms'),
    '# The client is nginx, or another pod. nginx alone sees how fast a visitor reads, and cuts those that are too slow.',
    `timeout client ${ms(timeouts.haproxyClientMs, 'timeout client')}`,
    'timeout http-request 10s',
    `timeout queue ${ms(queue.timeoutMs, 'queue.timeout')}`,
    `timeout server ${ms(timeouts.workerMs, 'timeouts.render')}`,
    when(
      webSockets,
      '# A WebSocket that is silent for so long, both ways, gives its worker back.',
      `timeout tunnel ${ms(timeouts.workerMs, 'timeouts.render')}`,
    ),
    '# One request for each connection, but where it says otherwise.',
    'option http-server-close',
    'http-reuse never',
    "# Clear-text HTTP/2 is nobody's here: one connection of it could carry 100 requests past every limit of connections.",
    'option disable-h2-upgrade',
    '# A render goes on when its client has gone; only its end may free the slot (single flight). See backend line.',
    'no option abortonclose',
    'retries 3',
    'option redispatch 1',
  );
}

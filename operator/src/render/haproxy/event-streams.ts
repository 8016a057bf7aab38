/** Server-Sent Events: a response with pauses, in a stage that gives up renders sooner. */
import { words } from '../directives.ts';
import { ms } from '../safe.ts';

/** From its head on an event stream may be silent for so long. */
export function outlastsSilence(limitMs: number, condition?: string): string {
  return words(
    `http-response set-timeout server ${ms(limitMs, 'timeouts.handler')}`,
    'if { res.hdr(Content-Type) -m beg -i text/event-stream }',
    condition,
  );
}

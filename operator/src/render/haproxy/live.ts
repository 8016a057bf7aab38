/** Numbers that change while HAProxy runs: Lua keeps them in a map (sidecar/haproxy/live-settings.lua). */
import { word } from '../safe.ts';

const MAP = 'map_str_int(/usr/share/corelane/haproxy/live.map)';

/** A live setting as a sample, for a rule. */
export function live(name: string): string {
  return `str(${word(name, 'live setting')}),${MAP}`;
}

/** One of the class of priority.classes that the request is in; no sample if it is in none. */
export function liveOfClass(what: 'delay-ms' | 'length-max' | 'retry-s'): string {
  return `str(priority),concat(-,txn.class,-${what}),${MAP}`;
}

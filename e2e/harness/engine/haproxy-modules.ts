/** Pods whose HAProxy has other Lua than the image: for tests that want a fault, or more patience. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { PodOptions } from './pod.ts';

const SEARCH_PATH = 'lua-prepend-path /usr/share/corelane/haproxy/?.lua';

/**
 * Changes modules that others `require`.
 * @param edits by the module's path below sidecar/haproxy
 * @throws Error if an edit changes nothing: the module is written in another way by now
 */
export function withModules(edits: Record<string, (text: string) => string>): PodOptions {
  const files = Object.entries(edits).map(([module, edit]) => {
    const text = readFileSync(fileURLToPath(new URL(`../../../sidecar/haproxy/${module}`, import.meta.url)), 'utf8');
    const edited = edit(text);
    if (edited === text) throw new Error(`${module} is written in another way`);
    return [module, edited] as const;
  });
  return {
    files: Object.fromEntries(files),
    // HAProxy searches the path that was named last first.
    edit: (_file, config) => config.replace(SEARCH_PATH, `${SEARCH_PATH}\n  lua-prepend-path /etc/corelane/?.lua`),
  };
}

/** Gives constants of a module other values. */
function constants(values: Record<string, number>): (text: string) => string {
  return (text) =>
    Object.entries(values).reduce((edited, [name, value]) => {
      const next = edited.replace(new RegExp(`^local ${name} = \\d+$`, 'm'), `local ${name} = ${value}`);
      if (next === edited) throw new Error(`there is no constant ${name} with another value than ${value}`);
      return next;
    }, text);
}

/** Tries to cache each page, however many could not be cached: for http-cache-tests, which sends hundreds at once. */
export const TRIES_EACH_PAGE = withModules({ 'cache/routes.lua': constants({ VAIN_MAX: 100_000 }) });

/**
 * Peers have seconds to answer, and so has nginx to purge. The product gives them 120 to 1,000 ms and does without them
 * then, which is right for visitors; a test of what they answer would be red where a busy machine is late. Not for
 * tests of frozen peers.
 */
export const PATIENT_PEERS = withModules({
  'cache/homes.lua': constants({ ANSWER_MS_MAX: 3000 }),
  'cache/purge-peers.lua': constants({ WAITS_MAX: 2000 }),
  'cache/purging.lua': constants({ ANSWER_MS_MAX: 30_000, RECEIVE_MS_MAX: 2500 }),
  'pooling/handing-over.lua': constants({ LOOK_MS_MAX: 6000 }),
  'pooling/heartbeats.lua': constants({ ANSWER_MS_MAX: 3000 }),
  'pooling/peers.lua': constants({ ANSWER_MS_MAX: 3000, FILE_MS_MAX: 3000 }),
  'stickiness/elsewhere.lua': constants({ LOOK_MS_MAX: 6000, PATIENCE_MS: 3000 }),
});

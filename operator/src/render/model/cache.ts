/** What is kept of responses, and who gets it. */
import { createHash } from 'node:crypto';
import { bypassCookiesOf, keyHeadersOf } from '../../api/presets.ts';
import { durationMs, sizeBytes } from '../../api/scalars.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';

/** A response that is larger is not kept: eight of them would be all there is. */
const KEPT_SHARE = 1 / 8;
/** Pages that are rendered at a time, each with its herd: a server of HAProxy (some kB, 58 lines of metrics). */
const HERDS_MAX = 32;
/** Of nginx' table of pages: 128 bytes each. */
const TABLE_BYTES = 4 * 1024 ** 2;
/** A page that nobody has asked for so long goes. Longer than any page may be given out after its end. */
const IDLE_SECONDS = 2 * 3_600;
/** How long a pod does not try again to cache a URL, or the pages of a route, that could not be cached. */
const PASS_MS = 60_000;
/**
 * Patterns of cookies that only scripts in browsers read: of Google, Meta, Hotjar, Microsoft, TikTok and Matomo. Not
 * every name that begins with _ga: _gaexp is Google Optimize, which changes the page.
 */
const TRACKING_COOKIES = [
  '_ga(?:[ct]?_[^=;]*|li|t)?',
  '_gid',
  '_gcl_[^=;]*',
  '_dc_gtm_UA-[0-9-]+',
  '__utm[a-z]',
  '__gads',
  '__gpi',
  '_fbp',
  '_fbc',
  '_hj(?:id|[A-Z][^=;]*)',
  '_clck',
  '_clsk',
  '_uet(?:s|v)id',
  '_ttp',
  '_pk_(?:id|ses|ref|cvar|hsr)[^=;]*',
];
/** Renders that may fail, one after the other, before all who wait for the page are told so. */
const TRIES_MAX = 2;
/**
 * A page that nginx has not found so often where it should be cannot be kept, as sidecar/haproxy/cache/herds.lua has
 * it.
 */
export const ROUNDS_MAX = 3;

export interface Cache {
  /** Prefixes of paths without a slash at the end; an empty one is all paths. */
  paths: string[];
  /**
   * The longest first. By `rule` nginx tells Lua which of them it is: it is of its path, so that pods of two revisions
   * mean the same.
   */
  ttl: { path: string; rule: string; seconds: number }[];
  key: { headers: string[]; cookies: string[]; query: { mode: 'all' | 'only' | 'except'; names: string[] } };
  /** Patterns of the names of cookies that make no page personal. */
  trackingCookies: string[];
  bypass: { cookies: string[]; headers: string[]; paths: string[] };
  sizeBytesMax: number;
  keptBytesMax: number;
  tableBytes: number;
  idleSeconds: number;
  herdsMax: number;
  passMs: number;
  triesMax: number;
  /** Whether a page that is not here is looked for at its home, another pod. */
  isShared: boolean;
}

const MODES = { All: 'all', Only: 'only', Except: 'except' } as const;

function prefix(path: string): string {
  return path.replace(/\/$/, '');
}

/** Whether pages of a defaulted spec are kept. */
export function hasCache({ cache }: RenderServiceSpec): boolean {
  return cache.enabled;
}

/** Pages that a pod of a defaulted spec may fetch from others at a time; 0 if it never does. */
export function fetchedMax({ cache, pooling }: RenderServiceSpec): number {
  return cache.enabled && cache.shared === 'Peers' && pooling.enabled ? HERDS_MAX : 0;
}

/** Name of the entry of `cache.ttl` for a path, in the configuration and in the live settings. */
export function ruleOf(pathPrefix: string): string {
  return `r${createHash('sha256').update(prefix(pathPrefix)).digest('hex').slice(0, 12)}`;
}

/** The cache of a defaulted spec; undefined if nothing is kept. */
export function cache(spec: RenderServiceSpec): Cache | undefined {
  if (!hasCache(spec)) return undefined;
  const { paths, ttl, key, bypass, maxSize } = spec.cache;
  return {
    paths: paths.map(prefix),
    ttl: ttl
      .map(({ pathPrefix, value }) => ({
        path: prefix(pathPrefix),
        rule: ruleOf(pathPrefix),
        seconds: Math.ceil(durationMs(value) / 1_000),
      }))
      .toSorted((one, other) => other.path.length - one.path.length),
    key: {
      headers: keyHeadersOf(spec),
      cookies: key.cookies,
      query: { mode: MODES[key.query.mode], names: key.query.names },
    },
    trackingCookies: TRACKING_COOKIES,
    bypass: { ...bypass, cookies: bypassCookiesOf(spec), paths: bypass.paths.map(prefix) },
    sizeBytesMax: sizeBytes(maxSize),
    keptBytesMax: Math.floor(KEPT_SHARE * sizeBytes(maxSize)),
    tableBytes: TABLE_BYTES,
    idleSeconds: IDLE_SECONDS,
    herdsMax: HERDS_MAX,
    passMs: PASS_MS,
    triesMax: TRIES_MAX,
    isShared: fetchedMax(spec) > 0,
  };
}

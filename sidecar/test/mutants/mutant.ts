/** What a deliberate breakage is. docs/testing.md explains the invariants I1 to I7. */

export type MutantFile =
  | 'haproxy.cfg'
  | 'nginx.conf'
  | `${'classes' | 'drain' | 'first-checks' | 'live-settings' | 'moving-limits' | 'pod-metrics' | 'pooling' | 'resting' | 'second-tries' | 'supervisors' | 'quarantine' | 'waiting-room' | 'without-slot'}.lua`
  | `peers/${'keys' | 'questions' | 'tokens'}.lua`
  | `pooling/${'answering' | 'askers' | 'borrowing' | 'ejection' | 'group' | 'handing-over' | 'heartbeats' | 'lending' | 'offering' | 'peers' | 'readiness' | 'reservations' | 'revision-index' | 'revisions' | 'some' | 'tickets'}.lua`
  | 'cache.lua'
  | 'budget.lua'
  | 'purge.lua'
  | `canary/${'actions' | 'counts' | 'decision' | 'judged' | 'state'}.lua`
  | `cache/${'herds' | 'homes' | 'judge' | 'purge-list' | 'purge-log' | 'purge-peers' | 'purging' | 'rendezvous' | 'routes' | 'vary' | 'verdict'}.lua`
  | `quarantine/${'silence' | 'suspects'}.lua`
  | 'live/document.lua'
  | 'own-site/marks.lua'
  | `metrics/${'exposition' | 'nginx' | 'workers'}.lua`
  | 'second-tries/requests.lua'
  | `stickiness/${'actions' | 'decision' | 'elsewhere' | 'ids' | 'navigation' | 'search'}.lua`
  | 'corelane-drain'
  | `${'copy-assets' | 'entrypoint' | 'listeners' | 'settings' | 'wait-for-drain'}.c`
  | `${'answers' | 'cache' | 'heads' | 'interim' | 'kept' | 'live' | 'log' | 'metrics' | 'names' | 'places' | 'proxy-protocol' | 'purge' | 'rounds' | 'size' | 'spans' | 'streaming' | 'target' | 'trace' | 'transform' | 'upstream' | 'whole-files'}.c`
  | `${RuntimeModule}.cjs`;

/** Of the runtime, those that are broken. */
export const RUNTIME_MODULES = [
  'abandoned',
  'auto-concurrency',
  'child-waits',
  'concurrency-limiter',
  'concurrency-rule',
  'child',
  'class-places',
  'clients-gone',
  'etag',
  'given-up',
  'head',
  'health',
  'length',
  'live',
  'lifecycle',
  'loop-levels',
  'node-options',
  'own-requests',
  'own-site',
  'processes',
  'questions',
  'recycler',
  'recycling',
  'redirects',
  'refusals',
  'request-journal',
  'routes',
  'servers',
  'set-aside',
  'shared-metrics',
  'stalls',
  'supervisor',
  'thread',
  'watchdog',
  'without-slot',
  'worker',
] as const;
type RuntimeModule = (typeof RUNTIME_MODULES)[number];

export interface Mutant {
  name: string;
  breaks:
    | 'I1'
    | 'I2'
    | 'I3'
    | 'I4'
    | 'I5'
    | 'I6'
    | 'I7'
    | 'drain'
    | 'readiness'
    | 'pooling'
    | 'peers'
    | 'runtime'
    | 'forwarded'
    | 'doors'
    | 'streaming'
    | 'heads'
    | 'compression'
    | 'etag'
    | 'fallback'
    | 'priority'
    | 'deadlines'
    | 'assets'
    | 'cache'
    | 'classes'
    | 'own site'
    | 'concurrency'
    | 'live'
    | 'canary'
    | 'stickiness'
    | 'metrics'
    | 'traces'
    | 'logs';
  file: MutantFile;
  /** Every match of each pattern is replaced. */
  edits: [find: RegExp, replace: string][];
  /** `file: part of a test's name`; only these tests are run. */
  caughtBy: string;
}

/** Each place that has this text. */
export function exactly(text: string): RegExp {
  return new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'g');
}

/** For breakages that take something away. */
export const REMOVED = '';

/**
 * Required tests of http-cache-tests 0.4.5 that Corelane fails, each with its reason. cache-rfc9111.load.test.ts and
 * `make bench-edge` hold the cache against this list; docs/cache.md has it by `make generate`.
 */
import type { CacheTest } from './suite.ts';

/** How many there are. */
const REQUIRED = 165;

interface Reason {
  what: string;
  why: string;
  tests: string[];
}

const UPDATED_BY_304 = [
  ...['Test-Header', 'X-Test-Header', 'Content-Foo', 'X-Content-Foo', 'Cache-Control', 'Content-Encoding'],
  ...['Content-Length', 'Content-Location', 'Content-MD5', 'Content-Range', 'Content-Security-Policy', 'Content-Type'],
  ...['Clear-Site-Data', 'ETag', 'Expires', 'Public-Key-Pins', 'Set-Cookie', 'Set-Cookie2', 'X-Frame-Options'],
  'X-XSS-Protection',
];

const REASONS: Reason[] = [
  {
    what: 'a 304 updates what is kept',
    why: 'a worker is asked for the whole page, never whether it has changed: a render is done anyway, and its answer is the better page. (The origin of the suite then answers 999, a failure: `staleIfError` has the old page given out.)',
    tests: ['304-lm-use-stored-Test-Header', ...UPDATED_BY_304.map((name) => `304-etag-update-response-${name}`)],
  },
  {
    what: '`must-revalidate`, and `Vary`, in a question on a condition',
    why: 'the same: what is over is rendered',
    tests: ['cc-resp-must-revalidate-stale', 'conditional-etag-vary-headers'],
  },
  {
    what: '`Age: 0,7200` is 0',
    why: 'an `Age` that is a list is no age here, and such a page is not kept; two other tests want just that of `0, 0`',
    tests: ['age-parse-prefix'],
  },
  {
    what: 'nothing stale where that is forbidden',
    why: 'it is not given out: the suite takes the 502 of the proxy, for a worker that hangs up, for a kept page, because it lacks a header of the suite',
    tests: ['must-revalidate', 'proxy-revalidate', 'no-cache', 's-maxage=2'].map((name) => `stale-close-${name}`),
  },
  {
    what: '`Set-Cookie`, `Content-Range` and `Transfer-Encoding` of a kept page',
    why: 'pages with one of the first two are not kept; what says a `Transfer-Encoding` that is none is answered 502',
    tests: ['Set-Cookie', 'Content-Range', 'Transfer-Encoding'].map((name) => `headers-store-${name}`),
  },
  {
    what: 'a part of a kept page',
    why: 'is cut out where the application says `Accept-Ranges: bytes` and a length; else everybody gets all of it, as RFC 9110 allows',
    tests: ['partial-use-headers'],
  },
  {
    what: '`Surrogate-Control: max-age` before `Cache-Control: no-store`',
    why: 'it shortens the time of a page here, and never gives leave: that is meant for a CDN, which is told when a page has changed',
    tests: ['surrogate-fresh-cc-nostore'],
  },
];

/** Their ids. */
const FAILING = REASONS.flatMap(({ tests }) => tests).toSorted();

/** Of what an implementation has made of the suite: required tests, and what is not as the list has it. */
export function heldAgainstList(tests: CacheTest[]): { failing: string[]; unexpected: string[] } {
  const required = tests.filter(({ kind }) => kind === 'required');
  const failing = required.filter(({ passed }) => !passed).map(({ id }) => id);
  const found = new Set(failing);
  const unexpected = [
    ...failing.filter((id) => !FAILING.includes(id)),
    ...FAILING.filter((id) => !found.has(id)),
    ...(required.length === REQUIRED ? [] : [`${required.length} of ${REQUIRED} tests ran`]),
  ];
  return { failing: failing.toSorted(), unexpected };
}

/** Part of docs/cache.md. */
export function requiredTests(): string {
  const rows = REASONS.map(({ what, why, tests }) => `| ${what} (${tests.length}) | ${why} |`);
  return [
    `${REQUIRED - FAILING.length} of the ${REQUIRED} required ones pass (Varnish 6.4: 123, nginx alone: 99). The others:`,
    '',
    ...['| tests | why they fail |', '|---|---|', ...rows],
  ].join('\n');
}

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
    what: 'A 304 updates the cached page',
    why: 'Corelane asks the worker for the whole page, never on a condition: the worker has to render it anyway. The origin of the suite then answers 999, which is a failure, so `staleIfError` serves the old page.',
    tests: ['304-lm-use-stored-Test-Header', ...UPDATED_BY_304.map((name) => `304-etag-update-response-${name}`)],
  },
  {
    what: 'An expired page with `must-revalidate`, or with `Vary`, is validated on a condition',
    why: 'The same: an expired page is rendered again.',
    tests: ['cc-resp-must-revalidate-stale', 'conditional-etag-vary-headers'],
  },
  {
    what: '`Age: 0,7200` means 0',
    why: 'Corelane does not cache a page whose `Age` is a list. Two other tests want that of `0, 0`.',
    tests: ['age-parse-prefix'],
  },
  {
    what: 'No expired page is served where that is forbidden',
    why: 'Corelane serves none. Its own 502, for a worker that closes the connection, lacks a header of the suite, and the suite takes it for a cached page.',
    tests: ['must-revalidate', 'proxy-revalidate', 'no-cache', 's-maxage=2'].map((name) => `stale-close-${name}`),
  },
  {
    what: '`Set-Cookie`, `Content-Range` and `Transfer-Encoding` are stored with a page',
    why: 'Corelane does not cache a page with one of the first two. A response with an invalid `Transfer-Encoding` gets 502.',
    tests: ['Set-Cookie', 'Content-Range', 'Transfer-Encoding'].map((name) => `headers-store-${name}`),
  },
  {
    what: 'A part of a cached page',
    why: 'Corelane serves parts if the response says `Accept-Ranges: bytes` and its length. Else it serves the whole page, as RFC 9110 allows.',
    tests: ['partial-use-headers'],
  },
  {
    what: '`Surrogate-Control: max-age` before `Cache-Control: no-store`',
    why: '`Surrogate-Control` can shorten the lifetime, and never allows caching: it is meant for a CDN, which is told when a page has changed.',
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

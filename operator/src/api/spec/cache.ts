/** What a client or the pod need not get again: pages that are kept and given to others, and tags of pages. */
import { z } from 'zod';
import { cookieName, duration, matching, pathPrefix, size } from '../scalars.ts';

/** Each name is a part of the key, and costs every request of the cache some nanoseconds. */
const NAMES_MAX = 16;
const RULES_MAX = 16;

const HEADER_MESSAGE = 'must be the name of a header, such as X-Market';
const PARAMETER_MESSAGE = 'must be the name of a parameter, such as page or utm_source';

/** With 16 of the longest the word of nginx.conf that has them all stays below its 4,096 bytes. */
const cookie = () => cookieName(64, 'lang');
const parameter = () => matching('^[A-Za-z0-9_.~-]+$', 64, PARAMETER_MESSAGE);

/** What nginx or HAProxy sets itself, or what would make a cache of each request. */
const NO_KEY =
  'accept-encoding|authorization|connection|content-.*|cookie|expect|forwarded|host|if-.*|keep-alive|proxy-.*|range|te|trailer|transfer-encoding|upgrade|x-accel-.*|x-corelane-.*|x-forwarded-(for|host|proto)|x-real-ip|x-request-id';

function header() {
  const pattern = `^[A-Za-z][A-Za-z0-9-]{0,47}$`;
  return matching(pattern, 48, HEADER_MESSAGE);
}

function keyHeader() {
  const message = `${HEADER_MESSAGE}; Cookie, Authorization, Accept-Encoding, Host, X-Forwarded-For and others that the proxies set or that end at them cannot be in the key`;
  return z
    .string()
    .min(1)
    .max(48)
    .regex(/^[A-Za-z][A-Za-z0-9-]*$/, message)
    .refine((name) => !new RegExp(`^(${NO_KEY})$`, 'i').test(name), message)
    .meta({
      'x-kubernetes-validations': [
        {
          rule: `self.matches('^[A-Za-z][A-Za-z0-9-]*$') && !self.matches('(?i)^(${NO_KEY})$')`,
          message,
        },
      ],
    });
}

const ttl = z
  .strictObject({
    pathPrefix: pathPrefix().describe('A path and all below it, as in an Ingress. Of several the longest counts.'),
    value: duration({ min: '0s', max: '24h' }).describe(
      'How long a page is kept, a second at least, rounded up to whole seconds. 0s: the cache is not for this path.',
    ),
  })
  .describe(
    'A time of yours for pages (status 200) in place of the one that the application gives them: max-age, s-maxage, no-cache, Expires and Age do not count. private, no-store, Set-Cookie and `Vary: *` do: such a page is never kept, nor is a redirect or an error.',
  );

const query = z
  .strictObject({
    mode: z
      .enum(['All', 'Only', 'Except'])
      .default('All')
      .describe(
        'Which parameters of the query make another page. All: each, in their order. Only: those in `names`. Except: all but those in `names` (utm_source, fbclid). The others do not reach the worker.',
      ),
    names: z.array(parameter()).max(NAMES_MAX).default([]).describe('Names of parameters, as they stand in the URL.'),
  })
  .prefault({})
  .describe('Parameters of the query.');

const key = z
  .strictObject({
    headers: z
      .array(keyHeader())
      .max(NAMES_MAX)
      .default([])
      .describe(
        'Headers in the cache key, beside those that the application names in Vary. The worker gets them. With framework: Next, RSC and Next-Router-* are among them.',
      ),
    cookies: z
      .array(cookie())
      .max(NAMES_MAX)
      .default([])
      .describe('Cookies whose values make another page, such as lang. The worker sees these, and no others.'),
    query,
  })
  .prefault({})
  .describe(
    'The cache key, beside host, scheme and path. A shared render gets the headers and cookies in the key and the headers that the application names in Vary, and no others of its client, so one visitor cannot change the page of another (docs/cache.md).',
  );

const bypass = z
  .strictObject({
    cookies: z
      .array(cookie())
      .max(NAMES_MAX)
      .default([])
      .describe(
        'Names of cookies: a request that has one is rendered for itself, with all it has. The session, say: connect.sid. The cookies of draft and preview modes (__prerender_bypass, __next_preview_data, previewToken) always are among them.',
      ),
    headers: z.array(header()).max(NAMES_MAX).default([]).describe('Names of headers, likewise.'),
    paths: z
      .array(pathPrefix())
      .max(RULES_MAX)
      .default([])
      .describe('Paths, and all below them, that the cache is not for: /account.'),
  })
  .prefault({})
  .describe(
    'Requests that are rendered for themselves, as without a cache. Those with Authorization, a body, an Upgrade, or Cache-Control: no-cache or no-store are in any case.',
  );

// Not On and Off: kubectl reads these words as true and false.
const etag = z
  .enum(['Auto', 'Never'])
  .default('Auto')
  .describe(
    'Auto: a page (text or JSON, up to 4 MiB, GET or HEAD, status 200) that the program ends whole and gives no ETag has one, made of its bytes. Who has that page already gets 304 and no body. Pages that say no-store and streams have none. Never: no ETag but those of the program. Works with runtime.instrument only. See docs/etag.md.',
  );

// Not On and Off: kubectl reads these words as true and false.
const shared = z
  .enum(['Peers', 'Never'])
  .default('Never')
  .describe(
    'Peers: each page has a home, one of the pods, and a pod that has not got it asks there before it renders: one render in the fleet. The answer is kept until the same moment in both. A home that is away costs a moment, never a page. Needs pooling.enabled. Never: each pod renders its own. See docs/cache.md.',
  );

export const cache = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether a pod keeps pages that the application allows to be kept (Cache-Control: s-maxage or max-age, Expires), and renders a page once for all who ask for it at the same time.',
      ),
    paths: z
      .array(pathPrefix())
      .min(1)
      .max(32)
      .default(['/'])
      .describe('Paths that the cache is for: /shop stands for /shop and all below /shop/. All unless given.'),
    ttl: z
      .array(ttl)
      .max(RULES_MAX)
      .default([])
      .describe('Paths whose pages are kept for a time of yours. Elsewhere the application says how long.'),
    maxTtl: duration({ min: '1s', max: '8760h' })
      .default('60s')
      .describe(
        'The longest that a page is fresh, whatever longer time the application says (Next says a year of its static pages). A time in `ttl` is not bounded by it. An expired page may still be served: while it is rendered again (stale-while-revalidate of the application, or `staleWhileRevalidate`), and if its render fails (stale-if-error, or `staleIfError`). Each of the two lasts an hour at most.',
      ),
    staleWhileRevalidate: duration({ min: '0s', max: '1h' })
      .default('0s')
      .describe(
        'How long after its end a page is still given out while it is rendered anew in the background. What the application says in Cache-Control goes before it.',
      ),
    staleIfError: duration({ min: '0s', max: '1h' })
      .default('5m')
      .describe(
        'How long after its end a page is still given out where there is no other: the render failed, the queue is full, no worker is up. What the application says in Cache-Control goes before it.',
      ),
    key,
    bypass,
    maxSize: size({ min: '8Mi', max: '64Gi' })
      .default('256Mi')
      .describe(
        'Disk for pages; those that nobody has asked for the longest go first. A page larger than an eighth of it is not kept. The pod may take twice as much for a moment (docs/cache.md).',
      ),
    shared,
    etag,
  })
  .prefault({})
  .describe(
    'What a client or the pod need not get again. The burst cache, off unless enabled: a page is rendered once for many, in each pod or in the fleet (docs/cache.md). ETags: docs/etag.md.',
  );

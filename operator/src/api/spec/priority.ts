/** Fields on who waits for whom. */
import { z } from 'zod';
import { cookieName, duration, headerName, matching, pathPrefix, word } from '../scalars.ts';

const CLASSES_MAX = 5;
/** Unless given. */
export const PRIORITY_DELAY = '5s';
const MATCHES_MAX = 6;
/** HAProxy's offsets end at 524 s, and one that has waited must still be less than one that has just come. */
const DELAY_MAX = '5m';

export const header = z
  .strictObject({
    name: headerName(48, 'X-Job').describe('Name of the header.'),
    value: word(48, 'a value', 'batch')
      .optional()
      .describe('Its whole value, in upper or lower case. Any that is not empty unless given.'),
  })
  .describe('A header of the request.');

const match = z
  .strictObject({
    visitor: z
      .enum(['Crawler', 'Prefetch'])
      .optional()
      .describe(
        'Crawler: the User-Agent is empty or a known crawler’s. Prefetch: a browser that looks ahead (Sec-Purpose, Purpose, X-Moz, Next-Router-Prefetch).',
      ),
    pathPrefix: pathPrefix().optional().describe('A path and all below it, as in an Ingress.'),
    header: header.optional(),
    cookie: cookieName(48, 'preview').optional().describe('Name of a cookie that the request has.'),
    userAgent: word(48, 'a part of a User-Agent', 'python-requests')
      .optional()
      .describe('Part of the User-Agent, in upper or lower case.'),
  })
  .refine((fields) => Object.values(fields).some((field) => field !== undefined), 'needs at least one field')
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.visitor) || has(self.pathPrefix) || has(self.header) || has(self.cookie) || has(self.userAgent)',
        message: 'needs at least one field',
      },
    ],
  });

const priorityClass = z.strictObject({
  name: matching(
    '^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$',
    32,
    'must be a name such as crawler: lower case, digits and -',
  ).describe('Name, in the access log and in metrics.'),
  match: z
    .array(match)
    .min(1)
    .max(MATCHES_MAX)
    .describe('A request is in the class if one of these is true of it: all fields that the entry has.'),
  delay: duration({ min: '0s', max: DELAY_MAX })
    .default(PRIORITY_DELAY)
    .describe(
      'It waits as if it had come so much later: behind all others that come within this time, and before those that come after it. So nobody waits for ever.',
    ),
  maxQueue: matching('^(100|[0-9]{1,2})%$', 4, 'must be a percentage from "0%" to "100%"')
    .default('10%')
    .describe(
      'Share of queue.maxLength: where so many requests wait in the pod, of whatever class, it is refused (503 queue-full).',
    ),
});

/** HAProxy's key of the queue has 20 bits of milliseconds, half of them to either side. */
export const ORDERED_MAX = '520s';

/** Browsers that look ahead wait behind people. */
export const PREFETCH: z.output<typeof priorityClass> = {
  name: 'prefetch',
  match: [{ visitor: 'Prefetch' }],
  delay: '2s',
  maxQueue: '25%',
};

/** People before those that look ahead, and these before crawlers. */
const PRESET: z.output<typeof priorityClass>[] = [
  PREFETCH,
  { name: 'crawler', match: [{ visitor: 'Crawler' }], delay: '5s', maxQueue: '10%' },
];

export const priority = z
  .strictObject({
    classes: z
      .array(priorityClass)
      .max(CLASSES_MAX)
      .default(PRESET)
      .describe(
        'Classes of requests that the pod serves later than others. A request in no class waits behind none of them. If a request is in several classes, the class with the longest delay counts, so a client can only make its own request later. Unless given: prefetch (2s, 25%) and crawler (5s, 10%). With an empty list the pod serves all requests alike.',
      ),
  })
  .optional()
  .describe(
    'Which requests a pod serves first, and which it refuses first, when it has more than it can serve. `priority: {}` serves people before prefetches (pages that a browser fetches before anybody has clicked) and before crawlers. Without this field, `framework: Next` serves people before prefetches, and any other pod serves all requests alike (docs/overload.md).',
  );

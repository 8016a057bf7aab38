/** Fields on requests that are no renders: they have places of their own in the workers. */
import { z } from 'zod';
import { duration, matching, urlPath } from '../scalars.ts';
import { header } from './priority.ts';

const CLASSES_MAX = 5;
const MATCHES_MAX = 6;
/** Unless given. */
export const CLASS_CONCURRENCY = 10;
export const CLASS_QUEUE_LENGTH = 20;

/** What a client says about itself can only narrow a path: else it would choose whether its render is one. */
const ONE_PATH =
  'needs one of pathPrefix, path and pathSuffix: by a header or a method alone a client could have a render without a render slot';
const PATHS = ['pathPrefix', 'path', 'pathSuffix'] as const;

const SUFFIX_MESSAGE =
  'must be the end of a path, such as /__data.json or .data: it begins with "/" or ".", and has letters, digits and . _ ~ - only';

const match = z
  .strictObject({
    pathPrefix: urlPath()
      .optional()
      .describe('A path and all below it, as in an Ingress; not "/", for then nothing would be a render.'),
    path: urlPath().optional().describe('A path, and nothing below it.'),
    pathSuffix: matching('^[/.][A-Za-z0-9_~-][A-Za-z0-9._~-]*$', 64, SUFFIX_MESSAGE)
      .optional()
      .describe('The end of a path, such as /__data.json: no page may have such a path.'),
    method: z
      .enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      .optional()
      .describe('Only this method.'),
    header: header.optional().describe('Only with this header, such as Accept: text/event-stream.'),
  })
  .refine((match) => PATHS.filter((name) => match[name] !== undefined).length === 1, ONE_PATH)
  .meta({
    'x-kubernetes-validations': [
      { rule: `[${PATHS.map((name) => `has(self.${name})`).join(', ')}].filter(p, p).size() == 1`, message: ONE_PATH },
    ],
  });

const requestClass = z.strictObject({
  name: matching(
    '^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$',
    32,
    'must be a name such as api: lower case, digits and -',
  ).describe('Name, in the access log, in metrics, and in the header X-Corelane-Class that the worker gets.'),
  match: z
    .array(match)
    .min(1)
    .max(MATCHES_MAX)
    .describe(
      'A request is in the class if one of these is true of it: all fields that the entry has. Only a path that is spelled plainly counts: one with //, dot segments, \\ or an encoded / \\ . or % is a render, wherever it leads.',
    ),
  concurrency: z
    .int()
    .min(1)
    .max(1000)
    .default(CLASS_CONCURRENCY)
    .describe('Requests of the class that one worker gets at a time, beside its renders.'),
  queue: z
    .strictObject({
      maxLength: z
        .int()
        .min(0)
        .max(10_000)
        .default(CLASS_QUEUE_LENGTH)
        .describe('Requests of the class that may wait in one pod. One more is answered 503 class-full at once.'),
      timeout: duration({ min: '100ms', max: '10m' })
        .default('10s')
        .describe('Longest wait for a place, after which the answer is 503 class-queue-timeout.'),
    })
    .prefault({})
    .describe('The queue of the class in one pod.'),
  timeouts: z
    .strictObject({
      idle: duration({ min: '100ms', max: '1h' })
        .default('60s')
        .describe(
          'Longest silence of the worker: before the response (504 class-timeout after it), and between two pieces of it. A stream may last as long as it says something; a WebSocket may be silent, both ways, for so long.',
        ),
      drain: duration({ min: '0s', max: '1h' })
        .default('10s')
        .describe(
          'What has not ended so long after a stopping pod accepts no more is cut: streams have no end, and clients come back to another pod. drain.timeout bounds it.',
        ),
    })
    .prefault({})
    .describe('Time limits of a request of the class.'),
  cache: z
    .boolean()
    .default(false)
    .describe(
      'Whether the cache is for this class, where spec.cache is enabled: images, say. Not for streams and long polls: who asks for the same one would wait for its end (docs/cache.md).',
    ),
  replay: z
    .boolean()
    .default(true)
    .describe(
      'true: spec.replay decides. false: a request of the class is not replayed once a worker has begun it, whatever its method; and the class does not use the cache, even with cache: true.',
    ),
});

export const classes = z
  .array(requestClass)
  .max(CLASSES_MAX)
  .optional()
  .describe(
    'Requests that are no renders (APIs, Server-Sent Events, long polls, images): they take no render slot, but places of a class in the same workers, with a queue and time limits of its own. Of several that a request is in the first counts. A worker that is busy rendering on its CPU cannot answer anybody meanwhile: one without a render is chosen first (docs/classes.md). Those of `framework` unless given; none with an empty list.',
  );

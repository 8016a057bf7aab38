/** `spec.rollout.canary`: how large a share of the requests a new revision gets, and for how long. */
import { z } from 'zod';
import { cookieName, duration, headerName, matching, word } from '../scalars.ts';

export const STEPS_MAX = 20;
const MATCHES_MAX = 8;
const shareMessage = 'must be a percentage above 0 and below 100 with at most 2 decimals, such as 5 or 12.5';

const step = z.strictObject({
  share: z
    .number()
    .min(0)
    .max(100)
    .refine((percent) => percent > 0 && percent < 100 && Math.round(percent * 100) / 100 === percent, shareMessage)
    .meta({
      'x-kubernetes-validations': [
        {
          // Not by its text: to the API server that of a number may be without an end.
          rule: 'self > 0.0 && self < 100.0 && double(int(self * 100.0 + 0.5)) / 100.0 == self',
          message: shareMessage,
        },
      ],
    })
    .describe('Percentage of the requests that the new revision gets.'),
  for: duration({ min: '0s', max: '168h' })
    .default('0s')
    .describe('How long it gets them before the next step, from the moment at which every pod that is ready knows it.'),
  approval: z
    .boolean()
    .default(false)
    .describe('Whether somebody has to let it go on after that time (corelane rollout promote).'),
});

const WHAT_MESSAGE = 'needs header, cookie or query, and only one of them';
const match = z
  .strictObject({
    header: headerName(48, 'X-Canary').optional().describe('Name of a header.'),
    cookie: cookieName(48, 'canary').optional().describe('Name of a cookie.'),
    query: matching(
      '^[A-Za-z0-9._~-]+$',
      48,
      'must be the name of a parameter of the query, such as canary: letters, digits and . _ ~ - only',
    )
      .optional()
      .describe('Name of a parameter of the query.'),
    value: word(64, 'a value', 'always').describe('Its whole value.'),
  })
  .refine(
    ({ header, cookie, query }) => [header, cookie, query].filter((name) => name !== undefined).length === 1,
    WHAT_MESSAGE,
  )
  .meta({
    'x-kubernetes-validations': [
      {
        rule: '[has(self.header), has(self.cookie), has(self.query)].filter(x, x).size() == 1',
        message: WHAT_MESSAGE,
      },
    ],
  });

const KEY_MESSAGE = 'needs header or cookie, and not both';
const key = z
  .strictObject({
    header: headerName(48, 'X-Canary').optional().describe('Name of a header.'),
    cookie: cookieName(48, 'canary').optional().describe('Name of a cookie.'),
  })
  .refine(({ header, cookie }) => (header === undefined) !== (cookie === undefined), KEY_MESSAGE)
  .meta({
    'x-kubernetes-validations': [{ rule: 'has(self.header) != has(self.cookie)', message: KEY_MESSAGE }],
  })
  .optional()
  .describe(
    'What names a person: who has the same value gets the same revision, so it is a share of people. A share of requests unless given, by a cookie that the pods set.',
  );

/** A number that is written with two decimals at most. */
function hundredths(min: number, max: number) {
  const message = `must be a number from ${min} to ${max} with at most 2 decimals, such as 1.5`;
  return z
    .number()
    .min(min)
    .max(max)
    .refine((value) => Math.round(value * 100) / 100 === value, message)
    .meta({ 'x-kubernetes-validations': [{ rule: 'double(int(self * 100.0 + 0.5)) / 100.0 == self', message }] });
}

const analysis = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether a canary is judged. Without it time and people let it go on.'),
    minRequests: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(300)
      .describe(
        'Requests of the new revision of which it has to be known in each step what came of them, before the next one. 0: time is enough.',
      ),
    maxWait: duration({ min: '0s', max: '168h' })
      .default('1h')
      .describe(
        'How long a step waits for them, or for what is not clear, before somebody has to decide. Never is a lack of requests a failure.',
      ),
    errors: z
      .strictObject({
        ratio: hundredths(1, 100)
          .default(1.5)
          .describe(
            'How many times as many errors (5xx, and answers that are lost) as of the stable revision are tolerated.',
          ),
        floorPercent: hundredths(0, 100)
          .default(0.5)
          .describe('Below this percentage of its requests nobody minds them.'),
      })
      .prefault({})
      .describe('Errors of the new revision, beside those of the stable one in the same time.'),
    latency: z
      .strictObject({
        enabled: z.boolean().default(true).describe('Whether the times of renders are looked at.'),
        slowerThan: hundredths(1, 100)
          .default(1.25)
          .describe(
            'A render is slow that takes so many times as long as 95 of 100 renders of the stable revision do.',
          ),
      })
      .prefault({})
      .describe('Slow renders of the new revision, beside those of the stable one: without the wait in queues.'),
    onFailure: z
      .enum(['Abort', 'Pause'])
      .default('Abort')
      .describe('What comes of a canary that is clearly worse: it gets nothing any more, or somebody has to decide.'),
  })
  .prefault({})
  .describe(
    'What a canary is judged by: errors and slow renders of its requests, against those of the stable revision in the same time (docs/canary.md).',
  );

export const canary = z
  .strictObject({
    steps: z
      .array(step)
      .min(1)
      .max(STEPS_MAX)
      .describe('Shares, each larger than the one before. After the last one the new revision gets everything.'),
    minReplicas: z
      .int()
      .min(1)
      .max(1000)
      .default(1)
      .describe('Pods of the new revision, at least. Their number is that of replicas times the share, rounded up.'),
    match: z
      .array(match)
      .max(MATCHES_MAX)
      .default([])
      .describe('Requests that always get the new revision while there is one: if one of these is true of them.'),
    key,
    analysis,
  })
  .optional()
  .describe(
    'A change of yours gets a share of the requests first, in steps, while the revision before stays as large as it is (docs/canary.md). Every pod decides for every request, so the share is exact whatever the number of pods. A turn of the data plane and the way back go without steps. Needs pooling.enabled. Off unless given.',
  );

export type CanarySpec = NonNullable<z.output<typeof canary>>;

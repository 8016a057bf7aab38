/**
 * `spec.objectives`: what a service is held to. Nothing in a pod depends on it; metrics, alerts and `corelane plan` do.
 * objectives.ts beside this folder makes numbers of it.
 */
import { z } from 'zod';
import { duration } from '../scalars.ts';

/** More decimals would be a budget that no service has the requests for. */
const percentMessage = 'must be a percentage below 100 with at most 3 decimals, such as 99.9';
/** A ratio, 0.999, would be less than a percent, and no alert would ever tell: so none below 50. */
const PERCENT_MIN = 50;

/** The least bucket of the pods' histogram, and the last one. */
const bounds = { min: '1ms', max: '30s' };
const within = (percent: number) =>
  duration(bounds).optional().describe(`Time in which ${percent} % of the requests are to be answered.`);

export const objectives = z
  .strictObject({
    availability: z
      .number()
      .min(PERCENT_MIN)
      .max(100)
      .refine((percent) => percent < 100 && Math.round(percent * 1000) / 1000 === percent, percentMessage)
      .meta({
        'x-kubernetes-validations': [
          // Not by its text: to the API server that of a number may be without an end.
          {
            rule: 'self < 100.0 && double(int(self * 1000.0 + 0.5)) / 1000.0 == self',
            message: percentMessage,
          },
        ],
      })
      .optional()
      .describe('Percentage of the requests that are not to be answered 5xx, by Corelane or by your program.'),
    latency: z
      .strictObject({ p50: within(50), p90: within(90), p95: within(95), p99: within(99) })
      .optional()
      .describe(
        'From the first byte of a request in the pod to the last one that its client was sent, waiting included; kept pages and errors count. The pods count times in buckets of 25 50 100 250 500 ms and 1 2.5 5 10 30 s. A time between two of them counts in proportion, as in histogram_quantile; give one of these for an exact count.',
      ),
  })
  .optional()
  .describe(
    'What the service is held to. Metrics say it (corelane_renderservice_objective_*, docs/metrics.md), so that one pair of alerts serves every RenderService, and corelane plan -f tells whether a fleet keeps it. It changes nothing in the pods.',
  );

export type ObjectivesSpec = NonNullable<z.output<typeof objectives>>;

/** `spec.scaling`: when the operator adds and removes pods by itself. docs/scaling.md explains it. */
import { z } from 'zod';
import { duration } from './scalars.ts';

/** What differs between the two signals that thresholds can stand on. */
interface SignalDefaults {
  /** "per-core CPU", say. */
  what: string;
  upPercent: number;
  downPercent: number;
  percentMax: number;
}

const window = (fallback: string, what: string) =>
  duration({ min: '15s', max: '1h' }).default(fallback).describe(`Time over which ${what} is averaged.`);
const cooldown = (fallback: string, what: string) =>
  duration({ min: '0s', max: '1h' }).default(fallback).describe(what);
const podCount = () => z.int().min(1).max(1000);

function thresholds({ what, upPercent, downPercent, percentMax }: SignalDefaults) {
  const percent = () => z.int().min(1).max(percentMax);
  const step = z.strictObject({
    abovePercent: percent().describe('From here on this step counts instead of the one below it.'),
    addReplicas: podCount().describe('Pods to add, more than the step below it adds.'),
  });
  return z.strictObject({
    statistic: z
      .enum(['Average', 'Max'])
      .default('Average')
      .describe(
        'Average over all workers, or the busiest worker. Max is for fleets in which a single hot worker must count.',
      ),
    scaleUp: z
      .strictObject({
        abovePercent: percent().default(upPercent).describe(`Pods are added when ${what} is above this.`),
        addReplicas: podCount().default(3).describe('Pods to add at a time.'),
        steps: z
          .array(step)
          .max(8)
          .default([])
          .describe('Larger steps for higher values: above 50: +10. Each has a higher threshold and adds more pods.'),
        window: window('60s', what),
        cooldown: cooldown('60s', 'Shortest time between two additions.'),
      })
      .prefault({})
      .describe('When pods are added.'),
    scaleDown: z
      .strictObject({
        belowPercent: percent()
          .default(downPercent)
          .describe(`Pods are removed when ${what} is below this, unless the rest would then stand above scaleUp.`),
        removeReplicas: podCount().default(1).describe('Pods to remove at a time.'),
        window: window('5m', what),
        cooldown: cooldown('60s', 'Shortest time from the last addition or removal to the next removal.'),
      })
      .prefault({})
      .describe('When pods are removed.'),
  });
}

const cpu = thresholds({ what: 'per-core CPU', upPercent: 20, downPercent: 15, percentMax: 1000 });
const occupancy = thresholds({
  what: 'the share of busy slots',
  upPercent: 60,
  downPercent: 45,
  percentMax: 100,
});

/** Thresholds on one signal, defaulted. */
export type Thresholds = z.output<typeof cpu>;
/** What `scaling` without `cpu` and `occupancy` means. */
export const DEFAULT_CPU: Thresholds = cpu.parse({});

export const scaling = z
  .strictObject({
    minReplicas: z.int().min(1).max(10_000).default(2).describe('Fewest pods.'),
    maxReplicas: z.int().min(1).max(10_000).describe('Most pods. Required: only you know what you can pay.'),
    cpu: cpu
      .optional()
      .describe(
        'Thresholds on per-core CPU: usage over request of each worker container, from metrics.k8s.io. With the default values unless occupancy is set.',
      ),
    occupancy: occupancy
      .optional()
      .describe(
        'Thresholds on requests in progress over all places of the workers, instead of cpu: for renders that wait, a fixed number of them at a time. With concurrency: Auto, cpu means what it means for renders that compute.',
      ),
    queue: z
      .strictObject({
        enabled: z
          .boolean()
          .default(true)
          .describe('Whether refused requests (queue full, or waited for longer than queue.timeout) add pods at once.'),
        addReplicas: podCount().default(3).describe('Pods to add at a time.'),
        cooldown: cooldown('30s', 'Shortest time from the last addition to the next one by this signal.'),
      })
      .prefault({})
      .describe('Adds pods at once when requests are refused, whatever the window says.'),
    warmUp: duration({ min: '0s', max: '1h' })
      .default('60s')
      .describe('How long the CPU of a worker that has just started does not count: its JIT compiler uses much of it.'),
  })
  .optional()
  .describe(
    'Adds and removes pods by itself, by writing spec.replicas through the scale subresource; leave replicas out of your manifests then. Left out, replicas belong to you, an HPA or KEDA.',
  );

export type ScalingSpec = NonNullable<z.output<typeof scaling>>;

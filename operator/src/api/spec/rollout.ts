/** Fields on pods that come and go: rollout, drain, evictions. */
import { z } from 'zod';
import { duration, intOrPercent } from '../scalars.ts';

export const rollout = z
  .strictObject({
    rolling: z
      .strictObject({
        maxSurge: intOrPercent().default('25%').describe('Pods above the wanted number during a rollout.'),
        maxUnavailable: intOrPercent().default(0).describe('Pods below the wanted number during a rollout.'),
        minReadySeconds: z
          .int()
          .min(0)
          .max(3600)
          .default(0)
          .describe('Seconds that a new pod must have been ready before the rollout goes on.'),
        progressDeadlineSeconds: z
          .int()
          .min(10)
          .max(86_400)
          .default(600)
          .describe('Seconds without progress after which the rollout counts as failed (condition Stalled).'),
      })
      .prefault({})
      .describe('Rolling update, as in a Deployment.'),
  })
  .prefault({})
  .describe('How a change reaches the pods.');

export const drain = z
  .strictObject({
    delay: duration({ min: '0s', max: '5m' })
      .default('4s')
      .describe(
        'A pod that is to stop goes on accepting connections until no request has come for so long, so that every endpoint list has forgotten it. Where requests do not cease it stops all the same after ten times as long again, 30 s at most.',
      ),
    timeout: duration({ min: '1s', max: '2h' })
      .optional()
      .describe(
        'Longest time after that a stopping pod may take to finish its queue and its renders. 60s unless given, or queue.timeout and timeouts.render together if that is longer.',
      ),
  })
  .prefault({})
  .describe('What happens when a pod is to stop.');

export const disruptionBudget = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether a PodDisruptionBudget is made.'),
    maxUnavailable: intOrPercent()
      .default(1)
      .describe('Pods that an eviction (kubectl drain, a node upgrade) may take at once.'),
  })
  .prefault({})
  .describe('PodDisruptionBudget of the fleet.');

/** Fields on pods that come and go: rollout, drain, evictions. */
import { z } from 'zod';
import { duration, intOrPercent } from '../scalars.ts';
import { canary } from './canary.ts';
import { stickiness } from './stickiness.ts';

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
    canary,
    stickiness,
    retain: z
      .strictObject({
        for: duration({ min: '0s', max: '24h' })
          .default('15m')
          .describe('How long after a change pods of the revision before live on, out of the Service. 0s: not at all.'),
        replicas: z
          .int()
          .min(0)
          .max(1000)
          .default(1)
          .describe('How many. With as many as the service has, the way back starts no pod.'),
      })
      .prefault({})
      .describe(
        'What is kept of the revision before, so that corelane rollout undo brings it back in seconds (docs/rollouts.md). Pods that find no room get that of these.',
      ),
    paused: z
      .boolean()
      .default(false)
      .describe('Holds every change of pods where it is, or before it begins. Scaling and live settings go on.'),
    dataPlane: z
      .enum(['Staged', 'WithNextChange'])
      .default('Staged')
      .describe(
        'When pods get the sidecar image and the configuration of another version of the operator. Staged: when it is the turn of this service, one after the other (dataPlaneRollout of the chart); WithNextChange: with the next change of yours that makes other pods, and no sooner. A change of yours never waits.',
      ),
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
        'Longest time after that a stopping pod may take to finish its queue and its renders; a pod that has nothing left to do stops at once. 60s unless given, or queue.timeout together with the longer one of timeouts.render and timeouts.handler, if that is longer (310s with their defaults). A shorter one cuts handlers that take longer.',
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

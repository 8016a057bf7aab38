/** Fields on waiting for a worker: the queue, other pods, readiness. */
import { z } from 'zod';
import { duration } from '../scalars.ts';

export const QUEUE_LENGTH_MAX = 10_000;

export const queue = z
  .strictObject({
    maxLength: z
      .int()
      .min(0)
      .max(QUEUE_LENGTH_MAX)
      .default(100)
      .describe(
        'Requests that may wait in one pod for a free worker. One more is answered 503 with Retry-After at once.',
      ),
    timeout: duration({ min: '100ms', max: '10m' })
      .default('10s')
      .describe(
        'Longest wait for a free worker, after which the answer is 503 with Retry-After. Does not count against timeouts.render.',
      ),
  })
  .prefault({})
  .describe('The queue in front of the workers of one pod.');

export const readiness = z
  .strictObject({
    shedWhenFull: z
      .boolean()
      .default(true)
      .describe(
        'Whether a pod whose queue has been full for 2 seconds leaves the Service while another pod has room. When the whole fleet is full, every pod stays.',
      ),
  })
  .prefault({})
  .describe('When a pod gets new connections: a worker is up, the pod does not drain, and the queue rule below.');

export const pooling = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe('Whether a request that finds no free worker in its pod may be rendered by another pod that has one.'),
    maxAsks: z
      .int()
      .min(1)
      .max(16)
      .default(4)
      .describe('Random pods that are asked at once for a free worker. A pod asks again as long as requests wait.'),
    maxPeers: z.int().min(1).max(256).default(64).describe('Pods that a pod knows; in a larger fleet a random subset.'),
    acrossRevisions: z
      .boolean()
      .default(false)
      .describe('Whether old and new pods of a rollout share work, so that a page may come from either revision.'),
  })
  .prefault({})
  .describe('Pods share their work: ask before you queue (docs/pooling.md).');

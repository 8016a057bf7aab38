/** `spec.rollout.stickiness`: who stays at a revision while several live. */
import { z } from 'zod';

export const stickiness = z
  .strictObject({
    cookie: z
      .enum(['Off', 'Canary', 'Always'])
      .default('Canary')
      .describe(
        'Which cookie of ours keeps a person at a revision. Canary: a place, while there is a canary. Always: the revision of his page as well, in every rollout, for as long as pods of it live (rollout.retain); needs pooling.enabled. Off: none, so that a canary has a share of requests, or of people by its key.',
      ),
  })
  .prefault({})
  .describe(
    'How a person stays at the revision of his page while several live. Requests that name one (x-deployment-id, ?dpl=) and files of assets with hashed names find it in any case (docs/version-skew.md).',
  );

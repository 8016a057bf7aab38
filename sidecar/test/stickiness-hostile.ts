/** Two revisions beside each other, of one worker each. */
import { ASSETS, NOW, OLD, Revisions } from '../../e2e/harness/engine/revisions.ts';

const SPEC = {
  workersPerPod: 1,
  queue: { maxLength: 2, timeout: '30s' },
  assets: ASSETS,
  rollout: { stickiness: { cookie: 'Always' } },
} as const;

/** Starts them. */
export const startTwo = (): Promise<Revisions> => Revisions.start({ ...SPEC, assets: [...(ASSETS ?? [])] }, OLD, NOW);

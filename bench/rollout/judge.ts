/** A canary as the operator judges it by default: what it has seen of it, and what it says. */
import { renderServiceSpec } from '../../operator/src/api/validated-spec.ts';
import { canaryPlanOf } from '../../operator/src/controller/shares.ts';
import { atShare, type Evidence, looked, noEvidence } from '../../operator/src/rollout/evidence.ts';
import { type AnalysisPlan, judged } from '../../operator/src/rollout/judgement.ts';
import type { Case } from './judgement.ts';

/** `rollout.canary.analysis` as it is unless somebody says otherwise. */
function usualPlan(): AnalysisPlan {
  const template = { spec: { containers: [{ name: 'worker', image: 'any' }] } };
  const rollout = { canary: { steps: [{ share: 5, for: '5m' }] } };
  const plan = canaryPlanOf(renderServiceSpec.parse({ template, rollout }).rollout.canary)?.analysis;
  if (!plan) throw new Error('by default nobody judges a canary');
  return plan;
}

/** Evidence of a canary that nobody has looked at yet. */
export function newCase(plan = usualPlan()): Case {
  let evidence: Evidence = noEvidence(0);
  return {
    look: (share, figures) => {
      evidence = looked(atShare(evidence, share), figures, plan.ratio);
    },
    isStopped: () => judged(evidence, plan).verdict !== undefined,
  };
}

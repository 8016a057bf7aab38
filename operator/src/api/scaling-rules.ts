/** Rules between fields of `spec.scaling`; see rules.ts. */
import type { Thresholds } from './scaling.ts';
import type { RenderServiceSpec } from './spec.ts';
import type { SpecRule } from './spec-rule.ts';

type Signal = 'cpu' | 'occupancy';

/** A rule on the thresholds of one signal. `t` stands for them in CEL. */
function onThresholds(
  signal: Signal,
  path: string[],
  message: string,
  cel: (t: string) => string,
  holds: (thresholds: Thresholds) => boolean,
): SpecRule {
  const at = `self.scaling.${signal}`;
  return {
    path: ['scaling', signal, ...path],
    message,
    cel: `!has(self.scaling) || !has(${at}) || ${cel(at)}`,
    holds: ({ scaling }) => !scaling?.[signal] || holds(scaling[signal]),
  };
}

function signalRules(signal: Signal): SpecRule[] {
  return [
    onThresholds(
      signal,
      ['scaleDown', 'belowPercent'],
      'must be smaller than scaleUp.abovePercent: between the two nothing happens, and without a gap the fleet would go up and down for ever',
      (t) => `${t}.scaleDown.belowPercent < ${t}.scaleUp.abovePercent`,
      ({ scaleUp, scaleDown }) => scaleDown.belowPercent < scaleUp.abovePercent,
    ),
    onThresholds(
      signal,
      ['scaleUp', 'steps'],
      'every step must have a threshold of its own above scaleUp.abovePercent, and add more than each step below it: overlapping steps leave open which one counts',
      (t) =>
        `${t}.scaleUp.steps.all(x, x.abovePercent > ${t}.scaleUp.abovePercent && x.addReplicas > ${t}.scaleUp.addReplicas && ` +
        `${t}.scaleUp.steps.exists_one(y, y.abovePercent == x.abovePercent) && ` +
        `${t}.scaleUp.steps.all(y, x.abovePercent <= y.abovePercent || x.addReplicas > y.addReplicas))`,
      ({ scaleUp }) => {
        const steps = [scaleUp, ...scaleUp.steps.toSorted((one, other) => one.abovePercent - other.abovePercent)];
        return steps.every((step, index) => {
          const below = steps[index - 1];
          return !below || (step.abovePercent > below.abovePercent && step.addReplicas > below.addReplicas);
        });
      },
    ),
  ];
}

export const scalingRules: SpecRule[] = [
  {
    path: ['scaling', 'minReplicas'],
    message: 'must not be larger than maxReplicas',
    cel: '!has(self.scaling) || self.scaling.minReplicas <= self.scaling.maxReplicas',
    holds: ({ scaling }: RenderServiceSpec) => !scaling || scaling.minReplicas <= scaling.maxReplicas,
  },
  {
    path: ['scaling', 'occupancy'],
    message: 'must not stand beside cpu: one signal decides; remove one of the two',
    cel: '!has(self.scaling) || !has(self.scaling.cpu) || !has(self.scaling.occupancy)',
    holds: ({ scaling }: RenderServiceSpec) => !scaling?.cpu || !scaling.occupancy,
  },
  ...signalRules('cpu'),
  ...signalRules('occupancy'),
];

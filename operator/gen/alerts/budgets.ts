/** Alerts on error budgets: one pair of rules, in four windows, for all RenderServices that have objectives. */
import { FAILED, FAILED_RATE, mean, SLOW, SLOW_RATE, type Window } from './recordings.ts';
import { type Alert, OF_SERVICE, promql, SERVICE, type Severity } from './rule.ts';

interface Burn {
  /** Over which so much must burn, and the short one that ends the alert soon after the fault. */
  long: keyof typeof SECONDS;
  short: Window;
  /** How many times faster than the budget of 30 days allows. */
  factor: number;
  for: string;
  severity: Severity;
}

/**
 * As the SRE workbook has them: 14.4 spends 2 % of the budget of 30 days in an hour, 6 spends 5 % in six hours, 3
 * spends 10 % in a day, and 1 spends all of it in 30.
 */
const BURNS: Burn[] = [
  { long: '1h', short: '5m', factor: 14.4, for: '2m', severity: 'critical' },
  { long: '6h', short: '30m', factor: 6, for: '15m', severity: 'critical' },
  { long: '1d', short: '2h', factor: 3, for: '1h', severity: 'warning' },
  { long: '3d', short: '6h', factor: 1, for: '3h', severity: 'warning' },
];

/** One request that fails at night is no burning budget, whatever share of the traffic it was. */
const BAD_MIN = 10;
const SECONDS = { '1h': 3600, '6h': 21_600, '1d': 86_400, '3d': 259_200 } as const;

/** What may burn: the shares, and the objectives that they are held against. */
interface Budget {
  name: Alert['name'];
  ratio: (window: Window) => string;
  rate: string;
  objectives: string;
  on: string;
  what: string;
  means: string;
}

const AVAILABILITY: Budget = {
  name: 'CorelaneAvailabilityBudgetBurn',
  ratio: FAILED,
  rate: FAILED_RATE,
  objectives: 'objective="availability"',
  on: SERVICE,
  what: 'answers {{ $value | humanizePercentage }} of the requests 5xx',
  means: 'That is more than spec.objectives.availability leaves.',
};

const LATENCY: Budget = {
  name: 'CorelaneLatencyBudgetBurn',
  ratio: SLOW,
  rate: SLOW_RATE,
  objectives: 'objective!="availability"',
  on: `${SERVICE}, objective`,
  what: 'is too slow for its {{ $labels.objective }} with {{ $value | humanizePercentage }} of the requests',
  means: 'spec.objectives.latency.{{ $labels.objective }} allows fewer.',
};

function alertsOn({ name, ratio, rate, objectives, on, what, means }: Budget): Alert[] {
  return BURNS.map(({ long, short, factor, severity, for: pending }) => {
    const allowed = promql`
      (${String(factor)} * (1 - max by (${on}) (corelane_renderservice_objective_ratio{${objectives}})))`;
    return {
      name,
      expr: promql`
        (${ratio(long)} > on (${on}) ${allowed})
        and on (${on})
        (${ratio(short)} > on (${on}) ${allowed})
        and on (${on})
        ${mean(rate, long)} * ${String(SECONDS[long])} > ${String(BAD_MIN)}`,
      for: pending,
      severity,
      labels: { window: long },
      summary: `${OF_SERVICE} ${what} (${long})`,
      description: `${means} For ${long} the error budget of 30 days has been spent at least ${factor} times as fast as it lasts, and for the last ${short}, too.`,
    };
  });
}

export const BUDGETS: Alert[] = [...alertsOn(AVAILABILITY), ...alertsOn(LATENCY)];

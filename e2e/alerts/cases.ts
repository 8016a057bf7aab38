/** What the rules are tried on: worlds, and the alerts that fire in them, as promtool reads both. */
import { stringify } from 'yaml';
import { ALL_ALERTS, RUNBOOK_URL } from '../../operator/gen/alerts/rules.ts';
import { FAULTS, type Fault, failing, ofAllPods, pod, QUIET } from './faults.ts';
import { healthy, SHOP, type World } from './world.ts';

/** Whether an alert is the operator's own: those have its labels, and all others those of a RenderService. */
const ofOperator = (alert: string) => /^Corelane(Operator|DataPlane)/.test(alert);
const LENGTH_MIN = 120;

interface Case {
  world: World;
  at: number;
  /** Minutes from one look at the rules to the next. */
  every?: number;
  fires: Fault['fires'];
  /** Of the alert of this name. */
  named?: string;
  says?: Fault['says'];
}

const severityOf = (alert: string, labels: Record<string, string>) =>
  ALL_ALERTS.find(({ name, labels: own }) => name === alert && own?.window === labels.window)?.severity as string;

/** All labels that an alert of the shop has. */
function labelled(alert: string, more: Record<string, string>): Record<string, string> {
  const severity = severityOf(alert, more);
  return ofOperator(alert)
    ? { ...more, severity }
    : { namespace: 'shop', renderservice: 'storefront', ...more, severity };
}

/** A test of promtool: the set of alerts that fire is exactly this, and one of them says this. */
export function promtoolTest({ world, at, every = 1, fires, named = '', says }: Case, rules = 'rules.yaml'): string {
  const samples = Object.entries(fires).flatMap(([alert, all]) =>
    all.map((labels) => {
      const text = Object.entries({ alertname: alert, alertstate: 'firing', ...labelled(alert, labels) });
      return { labels: `ALERTS{${text.map(([label, value]) => `${label}="${value}"`).join(',')}}`, value: 1 };
    }),
  );
  const test = {
    interval: '1m',
    input_series: Object.entries(world).map(([series, values]) => ({ series, values })),
    promql_expr_test: [{ expr: 'ALERTS{alertstate="firing"}', eval_time: `${at}m`, exp_samples: samples }],
    alert_rule_test: says ? [wordsOf(named, at, fires[named] ?? [], says)] : [],
  };
  return stringify({ rule_files: [rules], evaluation_interval: `${every}m`, tests: [test] });
}

/** The alerts of a name with all that they say. */
function wordsOf(alert: string, at: number, fires: Record<string, string>[], says: Fault['says']) {
  return {
    eval_time: `${at}m`,
    alertname: alert,
    exp_alerts: fires.map((labels, index) => ({
      exp_labels: labelled(alert, labels),
      exp_annotations: { ...says[index], runbook_url: RUNBOOK_URL.replace('%s', alert) },
    })),
  };
}

function worldWith(series: Fault['series'], minutes = LENGTH_MIN): World {
  const all = { ...healthy(minutes), ...series };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function without(names: RegExp, more: Record<string, string> = {}): World {
  return { ...Object.fromEntries(Object.entries(worldWith({})).filter(([series]) => !names.test(series))), ...more };
}

/** Minutes of three days. */
const DAYS = 3 * 24 * 60;

/** The cases by name; each is a file of tests of its own. */
export const CASES: Record<string, Case> = {
  'two hours in which all is well': { world: healthy(LENGTH_MIN), at: LENGTH_MIN, fires: {} },
  'no pod reaches another': {
    world: worldWith(ofAllPods((name) => ({ [`corelane_peers_known{${pod(name)}}`]: '0x300' }))),
    at: 20,
    fires: { CorelanePodsIsolated: [{}] },
  },
  'no pod is left': {
    world: without(/^(corelane_(request|worker|peers)|up).*storefront/, {
      [`corelane_renderservice_replicas{${SHOP},state="ready"}`]: '4x19 0x281',
    }),
    at: 30,
    fires: { CorelaneNoWorkerUp: [{}] },
  },
  'nobody scrapes the operator': {
    world: without(/^corelane_(operator|renderservice)/),
    at: 30,
    fires: { CorelaneOperatorNoLeader: [{}] },
  },
  'three days in which slightly too much fails': {
    // All that this is about: it is long.
    world: Object.fromEntries(
      Object.entries(worldWith(failing(0.8, DAYS), DAYS)).filter(([series]) =>
        /requests_total|objective|leader/.test(series),
      ),
    ),
    at: DAYS,
    every: 5,
    fires: { CorelaneAvailabilityBudgetBurn: [{ window: '3d' }] },
  },
  ...Object.fromEntries(
    Object.entries(QUIET).map(([name, { series, at }]) => [
      `quiet: ${name}`,
      { world: worldWith(series, Math.max(at, LENGTH_MIN)), at, fires: {} },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(FAULTS).map(([alert, { series, at, fires, says }]) => [
      alert,
      { world: worldWith(series), at, fires, named: alert, says },
    ]),
  ),
};

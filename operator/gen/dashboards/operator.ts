/** The operator: does it carry out what is applied, and what does that cost? */
import { type Dashboard, figure, lines, RANGE, type Row, rate } from './board.ts';

/** Of one release of the chart. Series about a RenderService have the namespace of that one, so these are not here. */
const O = 'namespace="$operator",job="$job"';
const POD = ['pod'];
const CALLS = 'corelane_operator_api_request_duration_seconds_count';
/** Of all that a counter counts; a series of what fails is there from the first failure on. */
const share = (counter: string, failed: string) =>
  `(${rate(counter, `${O},${failed}`)} or vector(0)) / ${rate(counter, O)}`;

const head: Row = {
  panels: [
    figure('Leads', 'One pod does. None: nothing is carried out, and nothing scales.', 'short', [
      { expr: `sum(corelane_operator_leader{${O}})`, legend: 'leaders' },
    ]),
    figure('Processes', 'That answer to scrapes.', 'short', [
      { expr: `count by (version) (corelane_operator_info{${O}})`, legend: '{{version}}' },
    ]),
    figure('Waiting', 'RenderServices that wait, or are worked on.', 'short', [
      { expr: `sum(corelane_operator_queue_depth{${O}})`, legend: 'waiting' },
    ]),
    figure('Calls that fail', 'Share of the calls to the API server without an answer, or with 5xx.', 'percentunit', [
      { expr: share(CALLS, 'code=~"0|5.."'), legend: 'fail' },
    ]),
    figure('Pods unread', 'Share of the reads of pods that fail.', 'percentunit', [
      { expr: share('corelane_operator_pod_samples_total', 'result="error"'), legend: 'fail' },
    ]),
    figure('Events dropped', 'That were only logged, in an hour: there were too many.', 'short', [
      { expr: `sum(increase(corelane_operator_events_dropped_total{${O}}[1h]))`, legend: 'dropped' },
    ]),
  ],
};

const does: Row = {
  title: 'Does it do its work?',
  panels: [
    lines('Who leads', 'It changes hands: the process, its node, or the API server.', 'short', [
      { expr: `max by (pod) (corelane_operator_leader{${O}})`, legend: '{{pod}}' },
    ]),
    lines('Reconciles', 'In a second, by how they end. Errors are tried again; stalled waits for somebody.', 'reqps', [
      { expr: rate('corelane_operator_reconcile_duration_seconds_count', O, ['result']), legend: '{{result}}' },
    ]),
    lines('Time of reconciles (p99)', 'Mostly calls to the API server.', 's', [
      {
        expr: `histogram_quantile(0.99, sum by (le, result) (rate(corelane_operator_reconcile_duration_seconds_bucket{${O}}${RANGE})))`,
        legend: '{{result}}',
      },
    ]),
    lines(
      'RenderServices waiting',
      'Grows: more changes come than it can apply (value concurrency of the chart).',
      'short',
      [{ expr: `sum by (pod) (corelane_operator_queue_depth{${O}})`, legend: '{{pod}}' }],
    ),
    lines(
      'Writes',
      'By kind and reason. In a steady state there are none: a line that goes on and on is somebody else who writes the same field.',
      'reqps',
      [{ expr: `${rate('corelane_operator_writes_total', O, ['what'])} > 0`, legend: '{{what}}' }],
      { none: 'none' },
    ),
    lines('Reads of pods', 'For status and scaling by occupancy.', 'reqps', [
      { expr: rate('corelane_operator_pod_samples_total', O, ['result']), legend: '{{result}}' },
    ]),
  ],
};

const api: Row = {
  title: 'Is it the API server?',
  panels: [
    lines('Calls by code', '0 is no answer, 409 a change by somebody else, 429 too many calls.', 'reqps', [
      { expr: rate(CALLS, O, ['code']), legend: '{{code}}' },
    ]),
    lines('Time of calls (p99)', 'By method.', 's', [
      {
        expr: `histogram_quantile(0.99, sum by (le, method) (rate(corelane_operator_api_request_duration_seconds_bucket{${O}}${RANGE})))`,
        legend: '{{method}}',
      },
    ]),
    lines(
      'Watches that failed',
      'And were begun again, so far, by kind.',
      'short',
      [{ expr: `sum by (kind) (corelane_operator_watch_errors_total{${O}})`, legend: '{{kind}}' }],
      { none: 'none' },
    ),
  ],
};

const process: Row = {
  title: 'Is it the process?',
  panels: [
    lines('CPU', 'Cores.', 'short', [{ expr: rate('process_cpu_seconds_total', O, POD), legend: '{{pod}}' }]),
    lines('Memory', 'Of the process; limits.memory of the chart is 320 Mi.', 'bytes', [
      { expr: `max by (pod) (process_resident_memory_bytes{${O}})`, legend: '{{pod}}' },
    ]),
    lines('Event loop: how late (p99)', 'Above a second: leases are lost.', 's', [
      { expr: `max by (pod) (nodejs_eventloop_lag_p99_seconds{${O}})`, legend: '{{pod}}' },
    ]),
  ],
};

export const OPERATOR: Dashboard = {
  uid: 'corelane-operator',
  title: 'Corelane / operator',
  description: 'Does the operator carry out what is applied, and what does that cost?',
  variables: [
    {
      name: 'operator',
      label: 'namespace of the operator',
      query: 'label_values(corelane_operator_leader, namespace)',
    },
    { name: 'job', label: 'job', query: 'label_values(corelane_operator_leader{namespace="$operator"}, job)' },
  ],
  annotations: [
    {
      name: 'Change of the lead',
      color: 'orange',
      expr: `max by (pod) (corelane_operator_leader{${O}}) == 1 unless max by (pod) (corelane_operator_leader{${O}} offset 1m) == 1`,
      title: '{{pod}} leads',
      tags: 'pod',
    },
  ],
  rows: [head, does, api, process],
};

/** All RenderServices: which one needs somebody? Of recorded series, which stay few with thousands of pods. */
import { type Dashboard, figure, lines, RANGE, type Row, table } from './board.ts';

const N = 'namespace=~"$namespace"';
const SERVICE = 'namespace, renderservice';
const NAMED = '{{namespace}}/{{renderservice}}';
const recorded = (series: string) => `renderservice:corelane_${series}{${N}}`;
const said = (metric: string, more = '') =>
  `max by (${SERVICE}) (corelane_renderservice_${metric}{${N}${more === '' ? '' : `,${more}`}})`;
const top = (expr: string) => [{ expr: `topk(10, ${expr})`, legend: NAMED }];

/** What stands in a column of the row that was clicked. */
const field = (name: string) => `\${__data.fields.${name}}`;
/** Where the name of a RenderService leads. */
const TO_SERVICE = {
  title: 'Why is p99 up?',
  url: `/d/corelane-service?var-datasource=$datasource&var-namespace=${field('namespace')}&var-renderservice=${field('renderservice')}`,
};

/** That something does not hold, by type: most are good when True. */
const NOT_WELL = [
  `max by (${SERVICE}, type, reason) (corelane_renderservice_condition{${N},type=~"Stalled|Reconciling"}) == 1`,
  `max by (${SERVICE}, type, reason) (corelane_renderservice_condition{${N},type!~"Stalled|Reconciling"}) <= 0`,
].join('\nor\n');

const head: Row = {
  panels: [
    figure('RenderServices', 'That the operator knows.', 'short', [
      { expr: `count(${said('info')})`, legend: 'RenderServices' },
    ]),
    figure('Requests', 'In a second.', 'reqps', [{ expr: `sum(${recorded('requests:rate5m')})`, legend: 'requests' }]),
    figure('Failed', 'Share that was answered 5xx.', 'percentunit', [
      {
        expr: `sum(${recorded('requests_failed:rate5m')}) / sum(${recorded('requests:rate5m')})`,
        legend: 'failed',
      },
    ]),
    figure('Pods', 'Ready, of those that are wanted.', 'short', [
      { expr: `sum(${said('replicas', 'state="ready"')})`, legend: 'ready' },
      { expr: `sum(${said('replicas', 'state="wanted"')})`, legend: 'wanted' },
    ]),
    figure('Workers', 'Ready, of all.', 'short', [
      { expr: `sum(${said('workers', 'state="ready"')})`, legend: 'ready' },
      { expr: `sum(${said('workers', 'state="total"')})`, legend: 'all' },
    ]),
    figure('Alerts', 'That fire.', 'short', [
      { expr: 'count(ALERTS{alertname=~"Corelane.*",alertstate="firing"}) or vector(0)', legend: 'firing' },
    ]),
  ],
};

const which: Row = {
  title: 'Which one?',
  panels: [
    table(
      'All RenderServices',
      'The name leads to "Why is p99 up?". Columns can be sorted and filtered.',
      'short',
      [
        { expr: recorded('requests:rate5m'), legend: 'requests/s', unit: 'reqps' },
        { expr: recorded('requests_failed:ratio_rate5m'), legend: 'failed', unit: 'percentunit' },
        { expr: recorded('request_duration_seconds:p99_5m'), legend: 'p99', unit: 's' },
        { expr: recorded('request_queue_duration_seconds:p99_5m'), legend: 'p99 of the queue', unit: 's' },
        { expr: recorded('workers_busy:ratio_avg5m'), legend: 'busy', unit: 'percentunit' },
        { expr: said('replicas', 'state="ready"'), legend: 'pods ready' },
        { expr: said('replicas', 'state="wanted"'), legend: 'wanted' },
      ],
      { labels: ['namespace', 'renderservice'], width: 24, link: TO_SERVICE },
    ),
    table(
      'What does not hold',
      'Conditions that are not as they should be, with their reason: 1 is True, 0 False, -1 Unknown. A rollout is Reconciling and is no fault.',
      'short',
      [{ expr: NOT_WELL, legend: 'is' }],
      { labels: ['namespace', 'type', 'reason', 'renderservice'], link: TO_SERVICE, none: 'everything holds' },
    ),
    table(
      'Alerts that fire',
      'docs/runbooks has a page for each. Wants prometheusRule.',
      'short',
      [
        {
          expr: `max by (alertname, severity, ${SERVICE}) (ALERTS{alertname=~"Corelane.*",alertstate="firing"})`,
          legend: 'fires',
        },
      ],
      { labels: ['alertname', 'severity', 'namespace', 'renderservice'], link: TO_SERVICE, none: 'none' },
    ),
  ],
};

const most: Row = {
  title: 'The ten highest of each: what visitors get',
  panels: [
    lines('p99', 'Of whole requests.', 's', top(recorded('request_duration_seconds:p99_5m'))),
    lines('Failed', 'Share that was answered 5xx.', 'percentunit', top(recorded('requests_failed:ratio_rate5m'))),
    lines('Requests', 'In a second.', 'reqps', top(recorded('requests:rate5m')), { stacked: true }),
    lines(
      'Error budget: availability',
      'How many times faster than 30 days allow, over an hour. Only with spec.objectives.',
      'short',
      top(
        `${recorded('requests_failed:ratio_rate1h')} / on (${SERVICE}) (1 - ${said('objective_ratio', 'objective="availability"')})`,
      ),
      { none: 'no objectives' },
    ),
    lines(
      'Error budget: latency',
      'The same of each objective for latency.',
      'short',
      [
        {
          expr: `topk(10, ${recorded('requests_slow:ratio_rate1h')} / on (${SERVICE}, objective) (1 - max by (${SERVICE}, objective) (corelane_renderservice_objective_ratio{${N},objective!="availability"})))`,
          legend: `${NAMED} {{objective}}`,
        },
      ],
      { none: 'no objectives' },
    ),
    lines('p99 of the queue', 'Up: workers are missing.', 's', top(recorded('request_queue_duration_seconds:p99_5m'))),
  ],
};

const room: Row = {
  title: 'The ten highest of each: room, and what breaks',
  panels: [
    lines('Workers busy', 'Mean share.', 'percentunit', top(recorded('workers_busy:ratio_avg5m')), { max: 1 }),
    lines(
      'Renders that waited',
      'Share that waited for longer than 100 ms.',
      'percentunit',
      top(recorded('requests_waited:ratio_rate5m')),
      { max: 1 },
    ),
    lines(
      'Load over its threshold',
      'Of those with scaling: above 1 pods are added.',
      'short',
      top(
        `max by (${SERVICE}) (corelane_scaling_utilization_ratio{${N}}) / ${said('scaling_threshold_ratio', 'direction="up"')}`,
      ),
      { none: 'no scaling' },
    ),
    lines(
      'Pods of their maximum',
      'At 1 scaling can add none.',
      'percentunit',
      top(`${said('replicas', 'state="wanted"')} / ${said('replicas_max')}`),
      { max: 1, none: 'no scaling' },
    ),
    lines(
      'Pods that are missing',
      'Wanted and not ready, for whatever reason.',
      'short',
      top(`${said('replicas', 'state="wanted"')} - ${said('replicas', 'state="ready"')} > 0`),
      { stacked: true, none: 'none' },
    ),
    lines(
      'Pods that are not scraped',
      'Nothing is seen of them here.',
      'short',
      top(`count by (${SERVICE}) (up{${N},renderservice!=""} == 0)`),
      { stacked: true, none: 'all are' },
    ),
    lines(
      'Restarts',
      'Of workers, without those that were planned.',
      'short',
      top(`sum by (${SERVICE}) (increase(corelane_worker_restarts_total{${N},reason!="recycled"}${RANGE}))`),
      { stacked: true, none: 'none' },
    ),
    lines(
      'Stuck renders',
      'That the watchdog has ended.',
      'short',
      top(`sum by (${SERVICE}) (increase(corelane_worker_stalls_total{${N}}${RANGE})) > 0`),
      { stacked: true, none: 'none' },
    ),
    lines(
      'Memory of workers',
      'Of all pods together.',
      'bytes',
      top(`sum by (${SERVICE}) (corelane_worker_resident_memory_bytes{${N}})`),
      { stacked: true },
    ),
  ],
};

export const FLEET: Dashboard = {
  uid: 'corelane-fleet',
  title: 'Corelane / fleet',
  description: 'All RenderServices: which one needs somebody?',
  variables: [
    {
      name: 'namespace',
      label: 'namespace',
      query: 'label_values(corelane_renderservice_info, namespace)',
      several: true,
    },
  ],
  annotations: [
    {
      name: 'Critical alerts',
      color: 'red',
      expr: 'ALERTS{alertname=~"Corelane.*",alertstate="firing",severity="critical"}',
      title: '{{alertname}}',
      tags: 'namespace,renderservice',
    },
  ],
  rows: [head, which, most, room],
};

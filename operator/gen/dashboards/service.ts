/** One RenderService: why is p99 up? Read from top to bottom; each row rules something out. */
import { NO_ROOM } from '../alerts/services.ts';
import { type Dashboard, figure, lines, quantile, RANGE, type Row, rate, table } from './board.ts';

/** Everything about the chosen RenderService: targets of pods and series of the operator have both labels. */
const S = 'namespace="$namespace",renderservice="$renderservice"';
/** Of those that have it, so that two operators (a change of the lead) do not make two. */
const said = (metric: string, by: string, chosen = S) => `max by (${by}) (corelane_renderservice_${metric}{${chosen}})`;

const REQUESTS = 'corelane_requests_total';
const TOTAL = 'corelane_request_duration_seconds';
const FIRST_BYTE = 'corelane_request_first_byte_duration_seconds';
const QUEUE = 'corelane_request_queue_duration_seconds';
const RENDER = 'corelane_request_render_duration_seconds';
const REVISION = ['revision'];
/** Seconds of something for each request that was answered: the parts of a request's mean time. */
const aRequest = (seconds: string) => `${seconds} / ${rate(`${TOTAL}_count`, S)}`;
const sumOf = (histogram: string) => rate(`${histogram}_sum`, S);
const p50AndP99 = (histogram: string) => [
  { expr: quantile(0.5, histogram, S, REVISION), legend: 'p50 {{revision}}' },
  { expr: quantile(0.99, histogram, S, REVISION), legend: 'p99 {{revision}}' },
];
const failedShare = (by: string[]) => `${rate(REQUESTS, `${S},code="5xx"`, by)} / ${rate(REQUESTS, S, by)}`;
const busy = `sum(avg_over_time(corelane_workers{${S},state="busy"}${RANGE})) / sum(avg_over_time(corelane_workers{${S},state="up"}${RANGE}))`;

const READING = `\
Read from top to bottom, until a row shows what the first one does; its title says what is ruled out otherwise.

| when | then |
|---|---|
| **render** time is up | 2: heavier pages, a slow backend, starved CPUs, garbage |
| render is flat, **queue** is up | 3: too few workers for what comes; then 4 (do pods share?), 5 (one hot worker?), 7 (is scaling held?) |
| both are flat | the client's way: *sending* or *reading* in "Where the time goes"; the access log has each request |
| it is one **revision** | 6: roll back |`;

const head: Row = {
  panels: [
    { kind: 'words', title: 'Why is p99 up?', width: 12, height: 8, text: READING },
    figure('Requests', 'In a second, whoever answered.', 'reqps', [{ expr: rate(REQUESTS, S), legend: 'requests' }]),
    figure('Failed', 'Share that was answered 5xx.', 'percentunit', [{ expr: failedShare([]), legend: 'failed' }]),
    figure('p99', 'From the first byte of a request to the last one that its client was sent.', 's', [
      { expr: quantile(0.99, TOTAL, S), legend: 'p99' },
    ]),
    figure('Workers busy', 'Mean share of the workers that have a request.', 'percentunit', [
      { expr: busy, legend: 'busy' },
    ]),
    figure('Pods', 'That are ready, of those that are wanted.', 'short', [
      { expr: said('replicas', 'state', `${S},state="ready"`), legend: 'ready' },
      { expr: said('replicas', 'state', `${S},state="wanted"`), legend: 'wanted' },
    ]),
    figure('Alerts', 'Of this RenderService that fire; docs/runbooks has a page for each.', 'short', [
      { expr: `count(ALERTS{${S},alertname=~"Corelane.*",alertstate="firing"}) or vector(0)`, legend: 'firing' },
    ]),
  ],
};

const isIt: Row = {
  title: '1 · Is it up, for whom, and where does the time go? Otherwise nothing is wrong here.',
  panels: [
    lines(
      'Time of requests',
      'From the first byte of a request to the last one that its client was sent; and what spec.objectives.latency promises.',
      's',
      [
        { expr: quantile(0.5, TOTAL, S), legend: 'p50' },
        { expr: quantile(0.99, TOTAL, S), legend: 'p99' },
        { expr: said('objective_latency_seconds', 'objective'), legend: 'objective of {{objective}}' },
      ],
    ),
    lines(
      'Where the time goes',
      'The mean request in parts. Sending: before a worker was asked for, and between; reading: after the head of the response, with the rest of a stream. The part that grows says which row to read.',
      's',
      [
        { expr: aRequest(sumOf(QUEUE)), legend: 'queue (row 3)' },
        { expr: aRequest(sumOf(RENDER)), legend: 'render (row 2)' },
        {
          expr: aRequest(`clamp_min(${sumOf(FIRST_BYTE)} - ${sumOf(QUEUE)} - ${sumOf(RENDER)}, 0)`),
          legend: 'sending, proxies',
        },
        { expr: aRequest(`clamp_min(${sumOf(TOTAL)} - ${sumOf(FIRST_BYTE)}, 0)`), legend: 'reading' },
      ],
      { stacked: true },
    ),
    lines(
      'Requests by status',
      'More than before, with the time of renders flat: it is load.',
      'reqps',
      [{ expr: rate(REQUESTS, S, ['code']), legend: '{{code}}' }],
      { stacked: true },
    ),
    lines(
      'What fails, and why',
      'By X-Corelane-Error; "application" is a 5xx that the program has answered itself. Only what there is.',
      'reqps',
      [
        { expr: `${rate(REQUESTS, `${S},reason!=""`, ['reason'])} > 0`, legend: '{{reason}}' },
        { expr: `${rate(REQUESTS, `${S},code="5xx",reason=""`)} > 0`, legend: 'application' },
      ],
      { stacked: true, none: 'nothing' },
    ),
    lines(
      'Error budget: availability',
      'How many times faster than 30 days allow; at 1 it is spent just in time. Wants prometheusRule and spec.objectives.',
      'short',
      ['1h', '6h'].map((window) => ({
        expr: `renderservice:corelane_requests_failed:ratio_rate${window}{${S}} / on (namespace, renderservice) (1 - ${said('objective_ratio', 'namespace, renderservice', `${S},objective="availability"`)})`,
        legend: window,
      })),
      { none: 'no objective' },
    ),
    lines(
      'Error budget: latency',
      'The same of each objective for latency.',
      'short',
      ['1h', '6h'].map((window) => ({
        expr: `renderservice:corelane_requests_slow:ratio_rate${window}{${S}} / on (namespace, renderservice, objective) (1 - ${said('objective_ratio', 'namespace, renderservice, objective', `${S},objective!="availability"`)})`,
        legend: `{{objective}} ${window}`,
      })),
      { none: 'no objective' },
    ),
  ],
};

const renders: Row = {
  title: '2 · Do renders take longer? Flat: neither the program, nor its backends, nor the CPUs.',
  panels: [
    lines('Time of renders', 'From the way to a worker to the head of its response.', 's', p50AndP99(RENDER)),
    lines(
      'CPU for a render',
      'Up with the time: pages are heavier, or the program is. Flat while the time is up: renders wait for something.',
      's',
      [
        {
          expr: `${rate('corelane_worker_cpu_seconds_total', S, REVISION)} / ${rate(`${RENDER}_count`, S, REVISION)}`,
          legend: '{{revision}}',
        },
      ],
    ),
    lines(
      'CPU while rendering',
      'Seconds of CPU in a second of render. Falls: neighbours or limits take the CPU, or a backend is slow. Flat: pages are heavier. Above 1: other threads work, too.',
      'percentunit',
      [
        {
          expr: `${rate('corelane_worker_cpu_seconds_total', S, REVISION)} / ${rate(`${RENDER}_sum`, S, REVISION)}`,
          legend: '{{revision}}',
        },
      ],
    ),
    lines(
      'Garbage collection',
      'Share of the time in which event loops were busy. Above a quarter: too little heap, or a leak (row 5).',
      'percentunit',
      [
        {
          expr: `${rate('corelane_worker_gc_seconds_total', S, ['kind'])} / ignoring (kind) group_left () ${rate('corelane_worker_event_loop_active_seconds_total', S)}`,
          legend: '{{kind}}',
        },
      ],
    ),
    lines(
      'Throttled by a CPU limit',
      'Share of the periods in which kubelet has stopped a worker: limits.cpu is too low. From cAdvisor, which the scrape of kubelets brings.',
      'percentunit',
      [
        {
          expr: `topk(10, rate(container_cpu_cfs_throttled_periods_total{namespace="$namespace",container=~"worker-.*"}${RANGE}) / rate(container_cpu_cfs_periods_total{namespace="$namespace",container=~"worker-.*"}${RANGE}) and on (namespace, pod) corelane_queue_length{${S}})`,
          legend: '{{pod}} {{container}}',
        },
      ],
      { max: 1, none: 'no limit, or cAdvisor is not scraped' },
    ),
    lines(
      'Event loops: how late (p99)',
      'Long synchronous parts of renders delay everything else in the worker. Wants podMonitor.workers.detail.',
      's',
      [{ expr: quantile(0.99, 'corelane_worker_event_loop_lag_seconds', S, REVISION), legend: '{{revision}}' }],
      { none: 'without detail' },
    ),
  ],
};

const queue: Row = {
  title: '3 · Do requests wait for a worker? Flat: there are workers enough.',
  panels: [
    lines('Time in the queue', 'Of renders, here and in the pod that took them.', 's', p50AndP99(QUEUE)),
    lines(
      'Renders that waited',
      'Share that waited for longer than 100 ms.',
      'percentunit',
      [
        {
          expr: `1 - ${rate(`${QUEUE}_bucket`, `${S},le="0.1"`)} / ${rate(`${QUEUE}_count`, S)}`,
          legend: 'longer than 100 ms',
        },
      ],
      { max: 1 },
    ),
    lines(
      'Workers busy',
      "Seen at the scrapes, and by Little's law from the times of renders, which bursts between two scrapes are in. Streams: only the first. Above 80 %: a queue is a matter of time.",
      'percentunit',
      [
        { expr: busy, legend: 'at the scrapes' },
        { expr: `${sumOf(RENDER)} / sum(corelane_workers{${S},state="up"})`, legend: "Little's law" },
      ],
    ),
    lines('Workers', 'Down: they restart (row 5), or their pod is just starting.', 'short', [
      { expr: `sum by (state) (corelane_workers{${S},state!="watched"})`, legend: '{{state}}' },
    ]),
    lines(
      'Waiting now',
      'Requests in the queues, at the scrapes: bursts between two of them are in the time above only.',
      'short',
      [{ expr: `sum by (pod) (corelane_queue_length{${S}})`, legend: '{{pod}}' }],
      { stacked: true },
    ),
    lines(
      'Refused: there was no room',
      'What has not waited in vain long enough to be in the times above.',
      'reqps',
      [{ expr: `${rate(REQUESTS, `${S},reason=~"${NO_ROOM}"`, ['reason'])} > 0`, legend: '{{reason}}' }],
      { stacked: true, none: 'nothing' },
    ),
  ],
};

const sharing: Row = {
  title: '4 · Do pods help each other? All the same: not one pod, nor the network between them.',
  panels: [
    lines('p99 by pod', 'The ten slowest. One above the others: its node, or visitors that stick to it.', 's', [
      { expr: `topk(10, ${quantile(0.99, TOTAL, S, ['pod'])})`, legend: '{{pod}}' },
    ]),
    lines(
      'Handed over',
      'Share of the requests that another pod has rendered. None while some wait: pods do not reach each other.',
      'percentunit',
      [
        {
          expr: `${rate('corelane_requests_handed_over_total', `${S},direction="out"`)} / ${rate(REQUESTS, S)}`,
          legend: 'to another pod',
        },
      ],
    ),
    lines('Pods that know each other', 'Each should know all others; fewer: a NetworkPolicy, or DNS.', 'short', [
      { expr: `min by (pod) (corelane_peers_known{${S}})`, legend: '{{pod}}' },
      { expr: `count(corelane_queue_length{${S}}) - 1`, legend: 'all others' },
    ]),
  ],
};

const workers: Row = {
  title: '5 · Is it one worker? None stands out: neither a stuck render, nor memory, nor restarts.',
  panels: [
    lines(
      'Hottest workers',
      'Utilisation of the event loop; the ten highest.',
      'percentunit',
      [
        {
          expr: `topk(10, rate(corelane_worker_event_loop_active_seconds_total{${S}}${RANGE}) / (rate(corelane_worker_event_loop_active_seconds_total{${S}}${RANGE}) + rate(corelane_worker_event_loop_idle_seconds_total{${S}}${RANGE})))`,
          legend: '{{pod}} {{worker}}',
        },
      ],
      { max: 1 },
    ),
    lines('Memory', 'Of the processes; the ten largest.', 'bytes', [
      { expr: `topk(10, corelane_worker_resident_memory_bytes{${S}})`, legend: '{{pod}} {{worker}}' },
    ]),
    lines('Old space', 'What outlives collections; the ten largest. Grows for hours: a leak.', 'bytes', [
      {
        expr: `topk(10, corelane_worker_heap_space_used_bytes{${S},space="old"})`,
        legend: '{{pod}} {{worker}}',
      },
    ]),
    lines(
      'Restarts by reason',
      'recycled is planned; each other one has cost the renders of its worker.',
      'short',
      [{ expr: `sum by (reason) (increase(corelane_worker_restarts_total{${S}}${RANGE}))`, legend: '{{reason}}' }],
      { stacked: true, width: 6, none: 'none so far' },
    ),
    lines(
      'Stuck, and crash loops',
      'Event loops that the watchdog has ended; workers that end again and again.',
      'short',
      [
        { expr: `sum(increase(corelane_worker_stalls_total{${S}}${RANGE}))`, legend: 'stuck' },
        { expr: `sum(corelane_worker_crash_looping{${S}})`, legend: 'in a loop' },
      ],
      { width: 6 },
    ),
    table(
      'Where renders got stuck',
      'Function, file and line, newest first. Wants podMonitor.workers.detail.',
      'dateTimeFromNow',
      [
        {
          expr: `sort_desc(max by (in, pod, worker) (corelane_worker_last_stall_timestamp_seconds{${S}} > 0) * 1000)`,
          legend: 'when',
        },
      ],
      { labels: ['in', 'pod', 'worker'], none: 'nowhere, or without detail' },
    ),
  ],
};

const revisions: Row = {
  title: '6 · Is it a new revision? All the same: it was not the rollout.',
  panels: [
    lines('Pods by revision', 'Two lines: a rollout is under way.', 'short', [
      { expr: `count by (revision) (corelane_queue_length{${S}})`, legend: '{{revision}}' },
    ]),
    lines('p99 by revision', 'Of whole requests; renders are in row 2.', 's', [
      { expr: quantile(0.99, TOTAL, S, REVISION), legend: '{{revision}}' },
    ]),
    lines('Failed by revision', 'Share that was answered 5xx.', 'percentunit', [
      { expr: failedShare(REVISION), legend: '{{revision}}' },
    ]),
  ],
};

const scaling: Row = {
  title: '7 · Is scaling held? Below its threshold, or as many pods as wanted: it does what it should.',
  panels: [
    lines('Load as scaling sees it', 'Pods are added above up, and removed below down.', 'percentunit', [
      { expr: `max(corelane_scaling_utilization_ratio{${S}})`, legend: 'load' },
      { expr: said('scaling_threshold_ratio', 'direction'), legend: '{{direction}}' },
    ]),
    lines(
      'Pods',
      'Wanted at the maximum: raise it. Ready below wanted: the condition Ready says what they lack.',
      'short',
      [
        { expr: said('replicas', 'state'), legend: '{{state}}' },
        { expr: `max(corelane_renderservice_replicas_min{${S}})`, legend: 'minimum' },
        { expr: `max(corelane_renderservice_replicas_max{${S}})`, legend: 'maximum' },
      ],
    ),
    lines(
      'Decisions so far',
      'Since this operator leads. Both rise: it goes back and forth.',
      'short',
      [
        {
          expr: `max by (direction, reason) (corelane_scaling_decisions_total{${S}})`,
          legend: '{{direction}}: {{reason}}',
        },
      ],
      { none: 'none' },
    ),
    table(
      'Conditions',
      'Of status.conditions: 1 is True, 0 False, -1 Unknown; the words to each are in `kubectl describe`.',
      'short',
      [{ expr: said('condition', 'type, reason'), legend: 'is' }],
      { labels: ['type', 'reason'] },
    ),
    lines(
      'What nobody had to render',
      'Pages that the cache gave, and those that it had to get. Only with cache.enabled.',
      'reqps',
      [{ expr: rate('corelane_cache_requests_total', S, ['result']), legend: '{{result}}' }],
      { stacked: true, width: 12, none: 'no cache' },
    ),
  ],
};

export const SERVICE: Dashboard = {
  uid: 'corelane-service',
  title: 'Corelane / service: why is p99 up?',
  description: 'One RenderService. Read from top to bottom: each row rules something out.',
  variables: [
    { name: 'namespace', label: 'namespace', query: 'label_values(corelane_requests_total, namespace)' },
    {
      name: 'renderservice',
      label: 'RenderService',
      query: 'label_values(corelane_requests_total{namespace="$namespace"}, renderservice)',
    },
  ],
  annotations: [
    {
      name: 'Alerts',
      color: 'red',
      expr: `ALERTS{${S},alertname=~"Corelane.*",alertstate="firing"}`,
      title: '{{alertname}}',
      tags: 'severity',
    },
    {
      name: 'New revisions',
      color: 'blue',
      expr: `max by (revision) (corelane_renderservice_info{${S}}) unless max by (revision) (corelane_renderservice_info{${S}} offset 1m)`,
      title: 'revision {{revision}}',
      tags: 'revision',
    },
  ],
  rows: [head, isIt, renders, queue, sharing, workers, revisions, scaling],
};

/** Everything that a pod's page tells: :8999/corelane/metrics, and with `?detail=1`. */
import type { MetricRow } from './row.ts';

const counter = (name: string, labels: readonly string[], meaning: string): MetricRow => ({
  ...{ name: `corelane_${name}`, type: 'counter', labels, meaning },
});
const gauge = (name: string, labels: readonly string[], meaning: string): MetricRow => ({
  ...{ name: `corelane_${name}`, type: 'gauge', labels, meaning },
});
const histogram = (name: string, labels: readonly string[], meaning: string): MetricRow => ({
  ...{ name: `corelane_${name}`, type: 'histogram', labels, meaning },
});

/** Of the pod. */
const OWN: MetricRow[] = [
  counter(
    'requests_total',
    ['code', 'reason'],
    'requests of clients that have ended, whoever answered: `2xx` to `5xx` (`1xx` is a WebSocket); the reason is [`X-Corelane-Error`](../sidecar/README.md#errors), or empty where the application or nobody has answered. `499` (the client went first) and `408` are `4xx`. Series of the common failures are there from the first scrape on, so that a rate sees the first one',
  ),
  histogram(
    'request_queue_duration_seconds',
    [],
    'how long each request waited for a worker, here and in the pod that it was handed to. Not of those that were refused at once',
  ),
  histogram(
    'request_render_duration_seconds',
    [],
    'from the way to a worker to the head of its response: `renderMs` of the access log',
  ),
  histogram(
    'request_first_byte_duration_seconds',
    [],
    'from the first byte of a request to the head of the response of HAProxy, errors among them; not of kept pages',
  ),
  histogram(
    'request_duration_seconds',
    [],
    'from the first byte of a request to the last one that the client was sent, whatever the status: kept pages and refusals too. Not of clients that went before an answer',
  ),
  counter(
    'cache_requests_total',
    ['result'],
    'requests that the [cache](cache.md) had to do with: hit, waited, stale, miss, expired, shared (from its home, another pod), pass or bypass. Only with `cache.enabled`',
  ),
  counter(
    'span_records_total',
    ['result'],
    'sampled requests of which [spans](tracing.md#spans-of-the-pod) were to be made: `told` to the sender, above 200 a second (`limited`), or not heard by anybody (`untold`). Only with `tracing.endpoint`',
  ),
  gauge(
    'workers',
    ['state'],
    'workers of the pod that are `up`, and that are `down`; of all, those that have a request (`busy`), and those whose worker runtime answers (`watched`)',
  ),
  gauge('queue_length', [], 'requests that wait for a worker, at the moment of the scrape'),
  gauge(
    'peers_known',
    [],
    'other pods that this one may share work with; without those that did not answer of late. Only where pods look at each other ([pooling](pooling.md))',
  ),
  counter(
    'requests_handed_over_total',
    ['direction'],
    'requests that another pod has answered (`out`), and those that came from another pod (`in`). Only with [pooling](pooling.md)',
  ),
  counter(
    'canary_assigned_total',
    ['side'],
    'requests that this pod has given to a side of a [canary](canary.md), `canary` or `stable`, by chance, cookie or key; not those that a rule of `match` has. These three only where there is a canary, or was one',
  ),
  counter(
    'canary_errors_total',
    ['side'],
    'of these, those that were answered 5xx by that side (but for `queue-full` and `queue-timeout`), or not at all: counted in the pod that has decided',
  ),
  counter(
    'canary_fallbacks_total',
    ['side'],
    'requests for that side of which no pod has taken them: they were served by the other one',
  ),
  counter(
    'sticky_requests_total',
    ['by'],
    'requests that this pod has led to another revision, because they name it (`id`) or their page was of it (`cookie`) ([version skew](version-skew.md)). Each of these three only where there has been one',
  ),
  counter(
    'sticky_fallbacks_total',
    ['by'],
    'requests for another revision of which no pod has taken them: they were served as if they had named none',
  ),
  counter(
    'sticky_files_total',
    ['result'],
    'files of [assets](assets.md) that this pod lacks and has looked for in pods of other revisions: `found`, `missing`, or `limited` (not looked for: too many were in vain)',
  ),
];

/** Of each worker, for everybody. */
const WORKERS: MetricRow[] = [
  gauge('worker_up', ['worker'], 'whether it takes requests; missing, with all others, if its runtime does not answer'),
  counter(
    'worker_restarts_total',
    ['worker', 'reason'],
    'restarts of its process: exit, error, signal, stalled, recycled, abandoned; without detail those reasons that have occurred',
  ),
  counter(
    'worker_spans_total',
    ['worker', 'result'],
    'spans of the whole pod, which `worker-0` sends: `exported`, or dropped: the endpoint did not take them (`failed`), too many waited (`full`); and records that did not arrive (`lost`) or were none (`invalid`). Without detail those that have occurred',
  ),
  counter('worker_stalls_total', ['worker'], 'stuck event loops ([where](runtime.md#where-it-was-stuck))'),
  gauge('worker_crash_looping', ['worker'], 'whether it ends again and again'),
  counter('worker_cpu_seconds_total', ['worker'], 'of the process, its watchdog thread included, the supervisor not'),
  gauge('worker_resident_memory_bytes', ['worker'], 'of the process'),
  counter(
    'worker_event_loop_active_seconds_total',
    ['worker'],
    'time that the event loop was busy: `rate(active) / (rate(active) + rate(idle))` is the utilisation',
  ),
  counter('worker_event_loop_idle_seconds_total', ['worker'], 'time that it waited for work'),
  gauge(
    'worker_heap_space_used_bytes',
    ['worker', 'space'],
    'as of the last second; without detail `old`, with it new, code, large_object and so on',
  ),
  counter(
    'worker_gc_seconds_total',
    ['worker', 'kind'],
    'time in garbage collections: minor and major; with detail incremental and weakcb, too',
  ),
];

const DETAIL: MetricRow[] = [
  counter('worker_requests_total', ['worker'], 'requests begun'),
  gauge('worker_requests_in_flight', ['worker'], 'requests in progress that have a render slot'),
  gauge(
    'worker_requests_without_slot',
    ['worker'],
    'requests in progress without a [render slot](streaming.md#render-slots): open streams and downloads',
  ),
  gauge(
    'worker_abandoned_renders',
    ['worker'],
    'of those in progress, the ones that nobody waits for any more: [given up by the proxy](runtime.md#renders-that-were-given-up)',
  ),
  counter(
    'worker_overlap_total',
    ['worker'],
    'requests that came while the worker had `concurrency` of them, and waited in it',
  ),
  counter('worker_dropped_total', ['worker'], 'of these, the ones whose client had gone when it was their turn'),
  counter(
    'worker_own_requests_total',
    ['worker'],
    'requests that the program sent to its own port, [parts of the renders that sent them](adr/0039-a-program-that-asks-itself.md); not among the requests above',
  ),
  counter(
    'worker_own_site_sent_total',
    ['worker'],
    'requests that its renders sent [to their own site](frameworks/README.md#a-page-that-asks-its-own-site)',
  ),
  counter(
    'worker_own_site_requests_total',
    ['worker'],
    'requests that renders of any pod have sent to their own site, and that the worker began beside its renders; not among the requests above',
  ),
  counter(
    'worker_own_site_refused_total',
    ['worker'],
    'requests that its program sent, and that a full queue of Corelane refused (`queue-full`, `queue-timeout`)',
  ),
  counter(
    'worker_child_waits_total',
    ['worker'],
    'renders that waited for 5 s [beside a child process](frameworks/README.md#a-child-process-that-asks-the-site) while all slots of the worker were taken',
  ),
  histogram(
    'worker_render_duration_seconds',
    ['worker', 'concurrency'],
    'until the end of the response; by requests in progress when it began, itself included (16 and more as 16)',
  ),
  counter(
    'worker_level_seconds_total',
    ['worker', 'concurrency'],
    'with `concurrency: Auto`: time with so many requests in progress',
  ),
  counter(
    'worker_level_idle_seconds_total',
    ['worker', 'concurrency'],
    'of that, time in which the event loop was idle',
  ),
  counter(
    'worker_class_requests_total',
    ['worker', 'class'],
    'requests of a [class](classes.md), which are not among those above: begun',
  ),
  gauge('worker_class_requests_in_flight', ['worker', 'class'], 'of a class, in progress'),
  counter('worker_class_overlap_total', ['worker', 'class'], 'of a class, those that had to wait in the worker'),
  histogram('worker_class_duration_seconds', ['worker', 'class'], 'of a class, until the end of the response'),
  counter(
    'worker_background_seconds_total',
    ['worker'],
    'time that the event loop was busy while no request was in progress: [work after the response](classes.md#work-after-the-response)',
  ),
  gauge(
    'worker_concurrency_limit',
    ['worker'],
    'requests at a time, as HAProxy said last; 0 before. With [`concurrency: Auto`](concurrency.md) as the supervisor has found',
  ),
  gauge(
    'worker_wait_ratio',
    ['worker'],
    'with `concurrency: Auto`: [time that renders wait for each second of CPU](concurrency.md#what-can-be-seen)',
  ),
  gauge('worker_concurrency_held', ['worker', 'reason'], 'likewise: what keeps the limit from rising'),
  counter('worker_concurrency_changes_total', ['worker', 'direction'], 'likewise: changes of the limit'),
  histogram('worker_event_loop_lag_seconds', ['worker'], 'how late a timer of 250 ms ran'),
  gauge(
    'worker_event_loop_silence_seconds',
    ['worker'],
    'age of the last sign of life, as the watchdog thread sees it',
  ),
  gauge('worker_heartbeat_age_seconds', ['worker'], 'likewise, as the supervisor sees it'),
  counter('worker_gc_total', ['worker', 'kind'], 'garbage collections'),
  gauge('worker_heap_space_size_bytes', ['worker', 'space'], 'committed'),
  gauge('worker_heap_space_available_bytes', ['worker', 'space'], 'free'),
  gauge(
    'worker_last_stall_timestamp_seconds',
    ['worker', 'in'],
    'when the event loop was stuck last, and where: function, file and line',
  ),
  counter('worker_recycles_total', ['worker'], 'planned restarts (`runtime.recycle`)'),
  gauge('worker_backoff_seconds', ['worker'], 'wait before the last restart'),
  gauge('worker_backoff_active', ['worker'], 'whether a restart is waiting'),
  gauge('worker_last_exit_code', ['worker'], 'of the last process that ended'),
  gauge('worker_start_time_seconds', ['worker'], 'start of the process, in seconds since 1970'),
];

/** In the order of the page. */
export const POD_METRICS: readonly MetricRow[] = [
  ...OWN,
  ...WORKERS,
  ...DETAIL.map((row) => ({ ...row, detail: true })),
];

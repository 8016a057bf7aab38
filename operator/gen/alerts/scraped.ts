/**
 * What Prometheus takes of the page of a pod. Whoever may make a pod can give it the label of a RenderService and write
 * anything on its page: names of the operator's series, or of recorded ones, of which one too many stops a rule for
 * everybody. The chart and docs/metrics.md have the same.
 */

/** Names of a pod's own series, as a regular expression that is anchored. */
export const POD_SERIES =
  'corelane_(workers|(cache_requests|canary|peers|queue|requests?|span_records|sticky|worker)_.+)';
/** Of HAProxy's exporter. */
export const HAPROXY_SERIES = 'haproxy_.+';

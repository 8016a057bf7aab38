/** Alerts on the operator, and on whether Prometheus sees the pods at all. */
import { type Alert, promql, SERVICE } from './rule.ts';

/** A release of the chart: several may run, each for some namespaces. */
const RELEASE = 'namespace, job';

/** Services that are not healthy with this operator's data plane, each with a space before it. */
const FAILED =
  'max by (namespace, renderservice) (corelane_renderservice_condition{type="DataPlaneCurrent",reason="Failed"}) == 0';
const FAILED_ONES = `{{ range query ${JSON.stringify(FAILED)} }} {{ .Labels.namespace }}/{{ .Labels.renderservice }}{{ end }}`;

export const OF_OPERATOR: Alert[] = [
  {
    name: 'CorelaneOperatorNoLeader',
    expr: promql`
      max by (${RELEASE}) (corelane_operator_leader) == 0
      or absent(corelane_operator_leader)`,
    for: '3m',
    severity: 'critical',
    summary: 'no Corelane operator leads',
    description:
      'Pods go on serving, but nothing scales, no RenderService is carried out, and the alerts on them see nothing. Or Prometheus does not scrape the operator (serviceMonitor.enabled).',
  },
  {
    name: 'CorelaneOperatorApiErrors',
    expr: promql`
      sum by (${RELEASE}) (rate(corelane_operator_api_request_duration_seconds_count{code=~"0|5.."}[10m]))
      / (sum by (${RELEASE}) (rate(corelane_operator_api_request_duration_seconds_count[10m])) > 0)
      > 0.05`,
    for: '15m',
    severity: 'warning',
    summary: "{{ $value | humanizePercentage }} of the operator's calls to the API server fail",
    description: 'They had no answer, or 5xx. What is applied, and scaling, is late.',
  },
  {
    name: 'CorelaneOperatorPodsUnreachable',
    expr: promql`
      sum by (${RELEASE}) (rate(corelane_operator_pod_samples_total{result="error"}[10m]))
      / (sum by (${RELEASE}) (rate(corelane_operator_pod_samples_total[10m])) > 0)
      > 0.25`,
    for: '15m',
    severity: 'warning',
    summary: 'the operator cannot read {{ $value | humanizePercentage }} of the pods',
    description:
      'Port 8999 of the pods does not answer it. Scaling by occupancy is blind there, and status.workers is old.',
  },
  {
    name: 'CorelaneDataPlaneHeld',
    // How many wait, while one holds them.
    expr: promql`
      max by (${RELEASE}) (corelane_data_plane_waiting)
      and on (${RELEASE}) max by (${RELEASE}) (corelane_data_plane_held) == 1`,
    for: '5m',
    severity: 'warning',
    summary: `the upgrade of the data plane has stopped:${FAILED_ONES}`,
    description:
      'It got the pods of this version and is not healthy with them. No other service gets them meanwhile: {{ $value }} wait, and serve with the pods that they have.',
  },
  {
    name: 'CorelanePodsNotScraped',
    expr: promql`
      count by (${SERVICE}) (up{renderservice!=""} == 0)
      / count by (${SERVICE}) (up{renderservice!=""})
      > 0.1`,
    for: '15m',
    severity: 'warning',
    summary:
      'Prometheus cannot scrape {{ $value | humanizePercentage }} of the pods of {{ $labels.namespace }}/{{ $labels.renderservice }}',
    description: 'All alerts on their visitors and workers are blind for these pods.',
  },
];

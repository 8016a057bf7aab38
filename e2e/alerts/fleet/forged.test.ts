/**
 * Whoever may make a pod can give it the label by which Prometheus finds the pods of RenderServices, and write what he
 * likes on its page. He speaks for himself alone.
 */

import { ALL_ALERTS } from '../../../operator/gen/alerts/rules.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import { docker, engine } from '../../harness/engine/docker.ts';
import { until } from '../../harness/engine/pod.ts';
import { SHOP } from '../world.ts';
import { OperatorPage, type Page, wellPage } from './operator-page.ts';
import { Prometheus } from './prometheus.ts';

const TIMES = 60;
const TENANT = { namespace: 'tenant', renderservice: 'forged' };

/** Counters that grow with every look. */
const failing = (seconds: number): Page => ({
  'corelane_requests_total{code="2xx",reason=""}': 10 * seconds,
  'corelane_requests_total{code="5xx",reason=""}': 10 * seconds,
});

/** Names of recorded series; one more of them than there should be stops a rule for everybody. */
const RECORDED = [...new Set(ALL_ALERTS.flatMap(({ expr }) => expr.match(/renderservice:[a-z0-9_:]+/g) ?? []))];

const FORGED: Page = {
  'corelane_workers{state="up"}': 1,
  corelane_operator_leader: 1,
  'corelane_operator_api_request_duration_seconds_count{method="GET",code="500"}': 1,
  [`corelane_renderservice_objective_ratio{${SHOP},objective="availability"}`]: 0.5,
  'corelane_renderservice_objective_ratio{objective="availability"}': 0.5,
  'ALERTS{alertname="CorelaneNoWorkerUp",alertstate="firing"}': 1,
  'up{renderservice="storefront"}': 0,
  ...Object.fromEntries(RECORDED.map((name) => [name, 100])),
  ...Object.fromEntries(RECORDED.map((name) => [`${name}{${SHOP}}`, 99])),
};

let prometheus: Prometheus | undefined;
const pages: OperatorPage[] = [];
let growing: NodeJS.Timeout | undefined;

async function serve(network: string, page: Page, port: number): Promise<[OperatorPage, string]> {
  const served = await OperatorPage.start(network, page, port);
  pages.push(served);
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
  return [served, await docker('inspect', '--format', format, served.container)];
}

afterAll(async () => {
  clearInterval(growing);
  await prometheus?.stop();
  for (const { container } of pages) await docker('rm', '--force', container);
});

test("a page with other names than a pod's breaks no rule, and neither silences an alert nor raises one", async () => {
  const network = await engine.network({ ipv6: false });
  const { corelane_operator_leader: _nobody, ...known } = wellPage(1);
  const says = { ...known, [`corelane_renderservice_objective_ratio{${SHOP},objective="availability"}`]: 0.999 };
  const [, operator] = await serve(network, says, 8080);
  const [pod, address] = await serve(network, failing(0), PORTS.stats);
  const [, forged] = await serve(network, FORGED, PORTS.stats);
  const began = Date.now();
  growing = setInterval(() => pod.set(failing((Date.now() - began) / 1000)), 500);
  const targets = [
    { pod: 'pod-0', address },
    { pod: 'forged', address: forged, service: TENANT },
  ];
  prometheus = await Prometheus.start(network, targets, operator, TIMES);
  const seen = prometheus;
  await until(
    'both are scraped',
    async () => (await seen.query('up{job="corelane-renderservices"} == 1')).length === 2,
  );
  const fires = async (alert: string) => (await seen.firing()).some(({ labels }) => labels.alertname === alert);
  try {
    await until('the shop burns its budget', () => fires('CorelaneAvailabilityBudgetBurn'), 60_000);
    await until('nobody leads', () => fires('CorelaneOperatorNoLeader'), 60_000);
  } finally {
    expect(await seen.broken()).toEqual([]);
  }
  const names = await seen.names('{namespace="tenant",__name__!~"scrape_.*|renderservice:.*|revision:.*|ALERTS.*"}');
  expect(names).toEqual(['corelane_workers', 'up']);
  expect((await seen.firing()).filter(({ labels }) => labels.namespace === 'tenant')).toEqual([]);
});

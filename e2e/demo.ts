/**
 * The last part of the demo (demo.sh): renders 1,000 pages through the Service and shows how they were spread. Last
 * line: `demo: ok=1000 failed=0 overlaps=0`.
 */
import { KUBECONFIG } from './harness/cluster/cluster.ts';
import { type LoadResult, startLoad } from './harness/cluster/load.ts';

const NAMESPACE = 'shop';
const NAME = 'storefront';
const REQUESTS = 1000;
/** Twice the six workers of the example: half of the requests wait in a queue all the time. */
const CONCURRENCY = 12;
/** A page of about 20 ms on a laptop's core: what the storefront shows by itself takes ten times as long. */
const PRODUCTS = 150;

interface DemoResult extends LoadResult {
  workers: Record<string, { requests: number; maxInProgress: number; overlaps: number }>;
  latencyMs: { p50: number; p95: number; p99: number };
  durationS: number;
}

/** A table whose columns are as wide as their widest cell; the first column is text, the others are numbers. */
function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_cell, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))),
    )
    .map((row) => `  ${row.join('   ')}`)
    .join('\n');
}

function report(result: DemoResult): string {
  const workers = Object.entries(result.workers);
  const rows = workers.map(([name, { requests, maxInProgress }]) => [name, String(requests), String(maxInProgress)]);
  const pods = new Set(workers.map(([name]) => name.split(':')[0]));
  const most = Math.max(...workers.map(([, { maxInProgress }]) => maxInProgress));
  const { p50, p95, p99 } = result.latencyMs;
  return [
    table([['worker (pod:port)', 'requests', 'most at once'], ...rows]),
    '',
    table([
      ['pods', String(pods.size)],
      ['workers', String(workers.length)],
      ['most requests ever in progress in one worker', String(most)],
      ['p50 / p95 / p99, waiting in the queue included', `${p50} / ${p95} / ${p99} ms`],
      ['renders per second', String(Math.round((10 * result.ok) / result.durationS) / 10)],
      ['failures', String(result.failed)],
    ]),
  ].join('\n');
}

const NEXT = `
The cluster stays up. Try next:

  export KUBECONFIG=$PWD/.state/kubeconfig PATH=$(make -s tools-path):$PATH
  kubectl get renderservices -A
  kubectl -n ${NAMESPACE} get pods
  kubectl explain renderservice.spec.queue
  operator/bin/corelane.mjs dashboard ${NAME} -n ${NAMESPACE}     # its workers live in the browser: open the address
  kubectl -n ${NAMESPACE} scale renderservice ${NAME} --replicas=4
  kubectl -n ${NAMESPACE} delete service ${NAME}     # and see it come back
  operator/bin/corelane.mjs rollout history ${NAME} -n ${NAMESPACE}
  kubectl -n ${NAMESPACE} port-forward service/${NAME} 8080:80     # http://localhost:8080/
  make down     # removes the cluster, keeps what was built
  make clean    # removes everything
`;

async function main(): Promise<boolean> {
  const url = `http://${NAME}.${NAMESPACE}.svc/?products=${PRODUCTS}`;
  const args = ['--url', url, '--requests', String(REQUESTS), '--concurrency', String(CONCURRENCY)];
  const load = await startLoad(NAMESPACE, 'demo-load', args);
  const result = (await load.result(300_000)) as DemoResult;
  console.log(`\n${report(result)}\n${NEXT}`);
  console.log(`demo: ok=${result.ok} failed=${result.failed} overlaps=${result.overlaps}`);
  return result.ok === REQUESTS && result.overlaps === 0;
}

try {
  if (!(await main())) process.exitCode = 1;
} catch (error) {
  console.error(
    `\ndemo: ${(error as Error).message}\n\nLook at: kubectl --kubeconfig ${KUBECONFIG.split('/').slice(-2).join('/')} get pods -A`,
  );
  process.exitCode = 1;
}

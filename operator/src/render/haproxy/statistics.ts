/** Frontend `stats`: metrics for Prometheus and the operator, and HAProxy's page for people. */
import { type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';
import { bindAny, door } from './door.ts';
import { serverAt } from './servers.ts';

/** The frontend: whole pages are counted, workers have pages of their own. */
export function statistics({ doors, isSupervised, pooling, ports }: DataPlaneModel): Lines {
  const { eachMax, allMax, seconds } = doors.wholePages;
  const tooMany = words(
    'http-request return status 429 content-type text/plain string "too many whole pages"',
    `hdr Retry-After ${whole(seconds, 'Retry-After')} if { var(txn.is_whole) -m bool }`,
  );
  return section(
    'frontend stats',
    `${bindAny(ports.stats)} backlog 4096`,
    door(doors.stats),
    'acl statistics path_reg ^/(;[A-Za-z0-9;=_-]*)?$',
    "# Pages of hundreds of kB, each some milliseconds of this process; less with metrics= (the operator's question, or one name).",
    'acl narrow query -m reg ^(no-maint&metrics=[a-z_,]{1,400}|metrics=[a-z_]{1,64})$',
    'http-request set-var(txn.is_whole) bool(true) if statistics or { path /metrics } !narrow',
    'http-request track-sc1 src table whole-pages if { var(txn.is_whole) -m bool }',
    'http-request track-sc2 str(all) table whole-pages if { var(txn.is_whole) -m bool }',
    `${tooMany} { sc1_gpc0_rate ge ${whole(eachMax, 'pages')} }`,
    `${tooMany} { sc2_gpc0_rate ge ${whole(allMax, 'pages')} }`,
    'http-request sc-inc-gpc0(1) if { var(txn.is_whole) -m bool }',
    'http-request sc-inc-gpc0(2) if { var(txn.is_whole) -m bool }',
    'http-request use-service prometheus-exporter if { path /metrics }',
    'http-request use-service lua.live if { path /live }',
    when(pooling?.handsOver, 'http-request use-service lua.canary if { path /canary }'),
    'http-request use-service lua.corelane_metrics if { path /corelane/metrics }',
    when(isSupervised, 'acl one_worker path_reg ^/workers/[0-9]+/(metrics|stalls)$'),
    words(
      'http-request return status 404 content-type text/plain string "not found" unless statistics',
      isSupervised && 'or one_worker',
    ),
    when(isSupervised, 'use_backend worker-runtimes if one_worker'),
    'default_backend stats-page',
  );
}

/** The count of whole pages. */
export function wholePages({ doors }: DataPlaneModel): Lines {
  const seconds = whole(doors.wholePages.seconds, 'seconds');
  return [
    '# Never used for traffic: who has had how many whole pages.',
    section(
      'backend whole-pages',
      `stick-table type string len 40 size 4k expire ${seconds}s store gpc0,gpc0_rate(${seconds}s)`,
    ),
  ];
}

/** The page for people. */
export const STATS_PAGE: Lines = [
  '# Of its own, because the page answers whatever begins with its path.',
  section('backend stats-page', 'stats enable', 'stats uri /', 'stats show-legends', 'stats refresh 5s'),
];

/** The supervisors listen on loopback; this is how Prometheus reaches them. */
export function workerRuntimes({ workers }: DataPlaneModel): Lines {
  return section(
    'backend worker-runtimes',
    'timeout server 5s',
    'retries 0',
    '# A number, however it is written.',
    'http-request set-var(txn.worker) path,field(3,/),add(0)',
    `http-request return status 404 unless { var(txn.worker) -m int lt ${whole(workers.length, 'workersPerPod')} }`,
    'http-request set-path /stalls/summary if { path_end /stalls }',
    'http-request set-path /metrics if { path_end /metrics }',
    'use-server worker-%[var(txn.worker)] if TRUE',
    workers.map((worker) => serverAt(worker, worker.runtimePort)),
  );
}

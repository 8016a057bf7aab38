import { startArticle } from './article.ts';
import { Corelane } from './corelane.ts';
import { startDirect } from './direct.ts';
import { startNginx } from './nginx.ts';
import { startCluster, startPm2 } from './node.ts';
import { QueueProxies } from './queue-proxy.ts';
import type { System } from './system.ts';

/** The watchdog's limit in the benches: far above a render, so that a busy machine kills nobody. */
export const STALL_TIMEOUT_MS = 2_000;

/** Renders are pure, so a POST may be given to a second worker as well (`Always`). */
function startCorelane(workersPerPod: number, name: string, replay: 'Always' | 'Safe'): Promise<System> {
  const watchdog = { stallTimeout: `${STALL_TIMEOUT_MS / 1_000}s` };
  return Corelane.start({ workersPerPod, watchdog, replay }, name);
}

export interface SystemKind {
  title: string;
  start(workers: number): Promise<System>;
  /** Scenarios that are worth it; all unless given. */
  only?: string[];
}

/** All systems by name, in the order of the report. */
export const SYSTEMS: { [name: string]: SystemKind } = {
  corelane: { title: 'Corelane', start: (workers) => startCorelane(workers, 'corelane', 'Always') },
  'corelane-safe': {
    title: 'Corelane, replay: Safe (default)',
    start: (workers) => startCorelane(workers, 'corelane-safe', 'Safe'),
    only: ['kill', 'kill-all'],
  },
  article: { title: "the article's nginx + HAProxy", start: startArticle },
  cluster: { title: 'Node cluster, round-robin', start: (workers) => startCluster(workers) },
  nginx: { title: 'nginx least_conn', start: (workers) => startNginx(workers) },
  pm2: { title: 'PM2 cluster mode', start: startPm2 },
  'queue-proxy': { title: "Knative's queue-proxy, random", start: QueueProxies.start },
  direct: {
    title: 'no way at all: clients that know which worker is free, a measured bound',
    start: startDirect,
    only: ['normal-5', 'normal-13', 'normal-20'],
  },
};

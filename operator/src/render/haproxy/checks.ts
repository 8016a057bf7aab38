/**
 * Backends whose servers are counted and never used: workers that are up, that are there, and whose connections may
 * be kept.
 */
import { type Lines, section, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';
import { serverAt } from './servers.ts';

/** As the checks of backend `workers` see them. */
export function workersUp({ workers }: DataPlaneModel): Lines {
  return [
    '# Never used for traffic: the waiting room counts as a server of "workers" when no worker is up; here nbsrv is honest.',
    section(
      'backend workers-up',
      workers.map((worker) => `${serverAt(worker, worker.port)} track workers/${worker.name}`),
    ),
  ];
}

/**
 * A worker whose places are all taken by renders that were given up takes no requests, which "workers" must know, but
 * it is not down: a pod that left the Service for it would leave it with all its like, for all wait for the same
 * dependency. Servers are the supervisors; one that is there says "up", after 9 s or when there is news.
 */
export function workersAlive({ workers }: DataPlaneModel): Lines {
  return [
    '# Never used for traffic: workers that are there, though busy, as their supervisors say.',
    section(
      'backend workers-alive',
      'timeout check 10s',
      words(
        'default-server check inter 1s fastinter 100ms downinter 100ms fall 2 rise 1',
        'agent-check agent-inter 100ms agent-send "corelane-alive\\n"',
      ),
      workers.map((worker) => {
        const port = whole(worker.runtimePort, 'runtime port');
        return `${serverAt(worker, worker.runtimePort)} agent-port ${port}`;
      }),
    ),
  ];
}

/**
 * Whether a worker's connections may be kept: its supervisor says so, in its own words, after 9 s or when there is
 * news. A check and no agent: where nobody answers (no Node.js, no NODE_OPTIONS, a supervisor that has ended) the
 * answer is no.
 */
export function workersGuarded({ workers }: DataPlaneModel): Lines {
  return [
    '# Never used for traffic: up are the workers whose runtime sees to the length of responses.',
    section(
      'backend workers-guarded',
      'timeout check 10s',
      'option tcp-check',
      'tcp-check connect',
      'tcp-check send "corelane-guarded\\n"',
      'tcp-check expect rstring ^up',
      'default-server check inter 100ms fastinter 100ms downinter 100ms fall 1 rise 1',
      workers.map((worker) => serverAt(worker, worker.runtimePort)),
    ),
  ];
}

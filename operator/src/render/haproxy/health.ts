/** Frontend `health`: kubelet's probes, and what supervisors ask of clients. */
import { type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { SAYS_WHETHER_GONE } from './clients.ts';
import { door } from './door.ts';

/** The frontend, which answers by itself. */
export function health({ doors, isSupervised, pooling }: DataPlaneModel): Lines {
  const reply = (status: number, body: string) =>
    `http-request return status ${status} content-type text/plain string ${body}`;
  const noWorker = words('{ nbsrv(workers-up) eq 0 }', isSupervised && '{ nbsrv(workers-alive) eq 0 }');
  return section(
    'frontend health',
    "# The entry point holds this port open: kubelet's probes wait in there while HAProxy is started again.",
    `bind "\${CORELANE_HEALTH}"`,
    door(doors.health),
    `${reply(200, 'ok')} if { path /livez }`,
    `${reply(503, 'draining')} if { path /readyz } { lua.corelane_draining -m bool }`,
    `http-request lua.wait_for_first_worker if { path /readyz } ${noWorker}`,
    `${reply(503, 'no-worker')} if { path /readyz } ${noWorker}`,
    when(pooling !== undefined, `${reply(503, 'queue-full')} if { path /readyz } { lua.corelane_shed -m bool }`),
    `${reply(200, 'ok')} if { path /readyz }`,
    when(isSupervised, SAYS_WHETHER_GONE),
    reply(404, '"not found"'),
  );
}

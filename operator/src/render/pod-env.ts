/**
 * pod.env: what the entry point and the drain hook of the sidecar image are told, one NAME=VALUE a line.
 * docs/protocol.md.
 */
import { MADE_BY_CORELANE, text } from './directives.ts';
import type { DataPlaneModel } from './model/index.ts';
import { whole } from './safe.ts';

/**
 * Version of docs/protocol.md, which is between this operator, the sidecar image and its worker runtime. It is one more
 * whenever an image of the version before would misunderstand something. The image refuses to start with another one,
 * and says so.
 */
export const PROTOCOL_VERSION = 9;

/** The file. */
export function renderPodEnv({ drain, ports }: DataPlaneModel): string {
  return text([
    MADE_BY_CORELANE,
    `CORELANE_PROTOCOL_VERSION=${PROTOCOL_VERSION}`,
    `CORELANE_HTTP_PORT=${whole(ports.http, 'port')}`,
    `CORELANE_FIGURES_PORT=${whole(ports.figures, 'port')}`,
    `CORELANE_HEALTH_PORT=${whole(ports.health, 'port')}`,
    `CORELANE_DRAIN_ACCEPT_MS_MAX=${whole(drain.acceptMsMax, 'drain.delay')}`,
  ]);
}

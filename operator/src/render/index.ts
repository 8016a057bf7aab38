/** Configuration of the data plane, rendered from a spec. Pure: no I/O, no clock, no environment. */

import { SHELL_FILE } from '../api/names.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { renderHaproxy } from './haproxy/index.ts';
import { dataPlaneModel } from './model/index.ts';
import { renderNginx } from './nginx/index.ts';
import { renderListenIpv6 } from './nginx/server.ts';
import { renderPodEnv } from './pod-env.ts';

/** The files of the ConfigMap at /etc/corelane. */
export interface DataPlaneConfig {
  'nginx.conf': string;
  'listen-ipv6.conf': string;
  'haproxy.cfg': string;
  'pod.env': string;
  /** The page of `fallback`, if the spec has it itself. */
  [SHELL_FILE]?: string;
}

/**
 * All configuration files of a pod.
 * @throws RangeError when a value cannot stand in a configuration file (I7; admission has refused it before).
 */
export function renderConfig(spec: RenderServiceSpec): DataPlaneConfig {
  const model = dataPlaneModel(spec);
  const html = spec.fallback?.html;
  return {
    'nginx.conf': renderNginx(model),
    'listen-ipv6.conf': renderListenIpv6(model),
    'haproxy.cfg': renderHaproxy(model),
    'pod.env': renderPodEnv(model),
    ...(html !== undefined && { [SHELL_FILE]: html }),
  };
}

/** Configuration of the data plane, rendered from a spec. Pure: no I/O, no clock, no environment. */

import { withoutLive } from '../api/live.ts';
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
}

/**
 * All configuration files of a pod: what does not change while it runs.
 * @throws RangeError when a value cannot stand in a configuration file (I7; admission has refused it before).
 */
export function renderConfig(spec: RenderServiceSpec): DataPlaneConfig {
  const model = dataPlaneModel(withoutLive(spec));
  return {
    'nginx.conf': renderNginx(model),
    'listen-ipv6.conf': renderListenIpv6(model),
    'haproxy.cfg': renderHaproxy(model),
    'pod.env': renderPodEnv(model),
  };
}

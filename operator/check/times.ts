/** C008: time-outs of load balancers in front, and the grace period. */
import { drainAcceptMsMax, drainTimeoutMs } from '../src/api/drain.ts';
import { durationMs } from '../src/api/scalars.ts';
import type { Finding } from './finding.ts';
import type { Rule, Workload } from './workload.ts';

/** As in plan/pod-template.ts. */
const STOP_SLACK_S = 10;
/** Google's load balancers keep connections to their backends for so long, and that cannot be changed. */
const GOOGLE_IDLE_S = 600;

/** Idle time-out of a load balancer by its annotations, in seconds. */
function idleTimeoutS(annotations: Record<string, string>): number | undefined {
  const set = [
    annotations['service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout'],
    /idle_timeout\.timeout_seconds=([0-9]+)/.exec(
      annotations['alb.ingress.kubernetes.io/load-balancer-attributes'] ?? '',
    )?.[1],
    annotations['nginx.ingress.kubernetes.io/upstream-keepalive-timeout'],
  ].find((text) => text !== undefined && /^[0-9]{1,6}$/.test(text));
  if (set !== undefined) return Number(set);
  const isGoogle = Object.keys(annotations).some((key) => /^cloud\.google\.com\/(neg|backend-config)$/.test(key));
  const isGce = annotations['kubernetes.io/ingress.class'] === 'gce';
  return isGoogle || isGce ? GOOGLE_IDLE_S : undefined;
}

function* keepAlive({ spec, surroundings }: Workload): Generator<Finding> {
  for (const { kind, metadata } of [
    ...surroundings.services.map((service) => ({ ...service, kind: 'Service' })),
    ...surroundings.ingresses.map((ingress) => ({ ...ingress, kind: 'Ingress' })),
  ]) {
    const idleS = idleTimeoutS(metadata?.annotations ?? {});
    if (idleS === undefined || durationMs(spec.keepAlive.idleTimeout) > 1000 * idleS) continue;
    yield {
      code: 'C008',
      level: 'info',
      object: `${kind}/${metadata?.name}`,
      path: 'metadata.annotations',
      what: `the load balancer keeps idle connections for ${idleS} s, and Corelane for ${spec.keepAlive.idleTimeout}`,
      why: 'Corelane may close one just as a request is sent on it, which is a 502',
      wayOut: `Set keepAlive.idleTimeout: ${idleS + 15}s.`,
    };
  }
}

function* gracePeriod({ spec, object }: Workload): Generator<Finding> {
  const own = spec.template.spec?.terminationGracePeriodSeconds;
  const needed = Math.ceil((drainAcceptMsMax(spec.drain) + drainTimeoutMs(spec)) / 1000) + STOP_SLACK_S;
  if (own === undefined || own >= needed) return;
  yield {
    code: 'C008',
    level: 'info',
    object,
    path: 'spec.template.spec.terminationGracePeriodSeconds',
    what: `${own} s are shorter than a drain may take`,
    why: `The pods get ${needed} s; most stop long before`,
    wayOut: 'Nothing to do. drain.timeout makes it shorter, and cuts what takes longer.',
  };
}

export const timesRule: Rule = {
  codes: ['C008'],
  find: (workload) => [...keepAlive(workload), ...gracePeriod(workload)],
};

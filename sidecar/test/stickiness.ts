/** What tests of who stays at which revision read of pods and answers. */
import type { Answer, Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

export const REVISION_COOKIE = 'corelane-rev';
/** A Cookie header that names a revision. */
export const cookie = (revision: string) => `${REVISION_COOKIE}=${revision}`;

/** Of pods of one worker. */
export const SPEC = { workersPerPod: 1, queue: { maxLength: 100, timeout: '30s' } } as const;
/** Of such pods whose clients are told their revision. */
export const ALWAYS = { ...SPEC, rollout: { stickiness: { cookie: 'Always' } } } as const;

/** A metric of the pod itself, by the rest of its name and its label; 0 where it says nothing yet. */
export async function stickyMetric(pod: Pod, what: string, label: string): Promise<number> {
  const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  return Number(new RegExp(`^corelane_sticky_${what}_total\\{\\w+="${label}"\\} (\\d+)$`, 'm').exec(body)?.[1] ?? 0);
}

/** The revision that an answer tells its browser, and what stands beside it. */
export function toldRevision({ headers }: Answer): { revision: string; attributes: string } | undefined {
  for (const line of headers['set-cookie'] ?? []) {
    const [, revision, attributes = ''] = /^corelane-rev=([^;]*); (.*)$/.exec(line) ?? [];
    if (revision !== undefined) return { revision, attributes };
  }
  return undefined;
}

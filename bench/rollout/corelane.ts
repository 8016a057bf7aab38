/** Pods of two revisions of a RenderService, told of a canary by the file that the operator writes. */
import { docker, engine } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import type { LiveCanary } from '../../operator/src/render/live.ts';
import { INSIDE } from '../lib/inside.ts';
import { Notes } from '../lib/notes.ts';
import { HeldAddresses } from './held.ts';
import { drain, type Told, tell } from './pods.ts';
import type { Side } from './sides.ts';
import type { VersionPod, Versions } from './system.ts';

const REVISIONS: Record<Side, string> = { stable: '7f3a9c21d0', canary: '19be04aa3c' };
/** Long enough that nothing is refused on a busy machine: what is compared is where requests go. */
const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { maxLength: 1_000, timeout: '60s' } };
/** How long a share holds without an operator, as it says so. */
const LEASE_SECONDS = 600;

interface Member extends VersionPod {
  pod: Pod;
  /** When it was asked last. */
  fallbacks: number;
}

function canaryAt(share: number): LiveCanary {
  const untilSeconds = share === 0 ? 0 : Math.floor(Date.now() / 1_000) + LEASE_SECONDS;
  const { canary: revision, stable } = REVISIONS;
  return { revision, stable, share: Math.round(share * 10_000), untilSeconds, match: [] };
}

/** Of either side, as far as the pod has decided. */
async function count(member: Member): Promise<void> {
  const { body } = await member.pod.get('/corelane/metrics', { port: PORTS.stats });
  const values = [...body.matchAll(/^corelane_canary_fallbacks_total\{[^}]*\} (\d+)$/gm)];
  member.fallbacks = values.reduce((sum, [, value]) => sum + Number(value), 0);
}

export async function startCorelane(): Promise<Versions> {
  const network = await engine.network();
  const held = new HeldAddresses(network);
  const all: Pod[] = [];
  const members: Member[] = [];
  const living = new Set<Member>();
  let told: Told = {};

  async function start(side: Side): Promise<Member> {
    const pod = await Pod.start(SPEC, { network, revision: REVISIONS[side], workers: false });
    all.push(pod);
    // A pod finds what the others know when it starts.
    await tell(pod, told);
    await pod.startWorkers({ folder: INSIDE });
    await until('its worker is up', () => pod.isUp(0));
    await until('it is ready', () => pod.isReady());
    const notes = new Notes(pod.notesFile);
    const member: Member = {
      ...{
        pod,
        side,
        fallbacks: 0,
        target: { host: await pod.address(), port: PORTS.http },
        notes: () => notes.read(),
      },
      kill: async () => {
        await count(member);
        living.delete(member);
        await docker('rm', '--force', ...pod.workers, pod.nginx, pod.haproxy, pod.holder);
        await held.hold(member.target.host);
      },
      drain: async () => {
        await count(member);
        living.delete(member);
        await drain(pod);
        await held.hold(member.target.host);
      },
    };
    members.push(member);
    living.add(member);
    return member;
  }

  async function tellAll(next: Told): Promise<void> {
    told = next;
    await Promise.all([...living].map(({ pod }) => tell(pod, told)));
  }

  return {
    title: 'Corelane',
    network,
    hasShares: true,
    start,
    share: (share) => tellAll({ canary: canaryAt(share) }),
    fallbacks: async () => {
      await Promise.all([...living].map(count));
      return members.reduce((sum, { fallbacks }) => sum + fallbacks, 0);
    },
    complete: () => tellAll({ resting: REVISIONS.stable }),
    stop: async () => {
      await Promise.all([held.release(), ...all.map((pod) => pod.stop())]);
      await docker('network', 'rm', network);
    },
  };
}

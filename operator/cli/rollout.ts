/** `corelane rollout`: a change of pods, as `kubectl rollout` has it for Deployments. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { API_VERSION, PLURAL } from '../src/api/names.ts';
import { rfc3339 } from '../src/api/scalars.ts';
import { ApiError } from '../src/kube/rest.ts';
import { Cluster } from './cluster.ts';
import type { Command } from './command.ts';
import { secondsOf, wholeOf } from './options.ts';
import { abortion, promotion, retrial, type Writing } from './rollout/canary.ts';
import { listRevisions, managerFromGit, type Resource, readService } from './rollout/service.ts';
import { historyLines, type Outcome, standingOf } from './rollout/told.ts';
import { undoOf } from './rollout/undo.ts';
import { UsageError } from './usage.ts';
import { visible } from './visible.ts';

const LOOK_MS = 500;
/** Of a change that meets another one. */
const TRIES_MAX = 5;
const EXIT_CODES: Record<Outcome, number> = { complete: 0, stalled: 1, rolling: 2, paused: 2 };

const help = `
Usage: corelane rollout status NAME [-w] [--timeout 10m]
       corelane rollout history NAME
       corelane rollout undo NAME [--to-revision N] [--force]
       corelane rollout restart | pause | resume NAME
       corelane rollout promote NAME [--all]
       corelane rollout abort | retry NAME

How a change of the pods of the RenderService NAME goes on, and the way back (docs/rollouts.md).

  status    how it stands; with -w until it is complete, has come to a standstill or is paused
  history   the revisions that there are; those that rest have pods
  undo      writes the spec of the revision before; of that revision pods are still there for rollout.retain.
            Replicas, scaling and live settings stay as they are
  restart   replaces the pods of the present revision one after the other
  pause     holds a change where it is, or before it begins; resume lets it go on

  promote   lets a canary go on to its next step, without waiting for time or for an approval; with --all to the end
  abort     the canary gets nothing any more, and its pods go; retry begins it anew

  -w, --watch          see above
      --timeout TIME   with -w, the longest wait (10m)
      --all            with promote, all steps that are left
      --to-revision N  the revision to go back to, by the number that history tells
      --force          also where Argo CD or Flux keeps the RenderService as a repository says: they take it back
                       at their next look
  -n, --namespace N    namespace (that of the kubeconfig's context)

Goes through the Kubernetes API. Needs "get" on renderservices; "patch" for all that changes something; "list" on
deployments for history, undo and restart, and "patch" for restart.

Exit code: of status 0 when it is complete, 1 when it has come to a standstill, 2 when it goes on or is paused; 64 for
options that cannot be used; else 0, or 1.
`;

const OPTIONS = {
  namespace: { type: 'string', short: 'n' },
  watch: { type: 'boolean', short: 'w', default: false },
  timeout: { type: 'string', default: '10m' },
  'to-revision': { type: 'string' },
  all: { type: 'boolean', default: false },
  force: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parsed>['values'];

function parsed(args: string[]) {
  return parseArgs({ args, allowPositionals: true, options: OPTIONS });
}

type Verb = (cluster: Cluster, name: string, values: Values) => Promise<number>;

const VERBS: Record<string, Verb> = {
  status,
  history,
  undo,
  restart,
  pause: setPaused(true),
  resume: setPaused(false),
  promote: tell(promotion),
  abort: tell(abortion),
  retry: tell(retrial),
};

export const command: Command = {
  summary: 'a change of pods: how far it is, and the way back',
  help,
  async run(args) {
    const { values, positionals } = parsed(args);
    const [verb = '', name, ...rest] = positionals;
    if (!Object.hasOwn(VERBS, verb) || name === undefined || rest.length > 0)
      throw new UsageError(
        `one of ${Object.keys(VERBS).join(', ')} and one name of a RenderService are needed; see corelane rollout --help`,
      );
    const cluster = new Cluster(values.namespace);
    try {
      return await whileItChanges(() => (VERBS[verb] as Verb)(cluster, name, values));
    } finally {
      await cluster.close();
    }
  },
};

/** Reads and decides anew where somebody has changed it in between: with each step of a rollout its status changes. */
async function whileItChanges(work: () => Promise<number>): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const { cause } = error as Error;
      if (!(cause instanceof ApiError && cause.status === 409) || tries === TRIES_MAX) throw error;
      await sleep(tries * 100);
    }
  }
}

async function status(cluster: Cluster, name: string, { watch, timeout }: Values): Promise<number> {
  const endMs = performance.now() + 1000 * secondsOf('timeout', timeout);
  let said = '';
  for (;;) {
    const { outcome, text } = standingOf(await readService(cluster, name));
    const line = visible(`${outcome}: ${text}`);
    if (line !== said) console.log(line);
    said = line;
    if (!watch || outcome !== 'rolling' || performance.now() > endMs) return EXIT_CODES[outcome];
    await sleep(LOOK_MS);
  }
}

async function history(cluster: Cluster, name: string): Promise<number> {
  const revisions = await listRevisions(cluster, await readService(cluster, name));
  for (const line of historyLines(revisions)) console.log(visible(line));
  return 0;
}

async function undo(cluster: Cluster, name: string, values: Values): Promise<number> {
  const given = values['to-revision'];
  const number = given === undefined ? undefined : wholeOf('to-revision', given, { min: 0, max: 1_000_000_000 });
  const resource = await readService(cluster, name);
  const manager = mayWrite(resource, values);
  const { to, spec } = undoOf(resource, await listRevisions(cluster, resource), number);
  if (Object.keys(spec).length === 0) {
    console.log(`nothing to undo: the spec is that of revision ${to.number} (${to.revision})`);
    return 0;
  }
  await write(cluster, resource, { spec });
  const pods = to.replicas > 0 ? `${to.available} of its pods are there` : 'none of its pods is there, they start now';
  console.log(visible(`back to revision ${to.number} (${to.revision}, ${to.image}): ${pods}`));
  console.log(
    `${manager ?? 'Whoever applies your manifest'} brings the change again until it says what it said before: revert it there, too.`,
  );
  return 0;
}

async function restart(cluster: Cluster, name: string): Promise<number> {
  const [current] = await listRevisions(cluster, await readService(cluster, name));
  if (!current) throw new Error('it has no pods yet');
  const annotations = { 'kubectl.kubernetes.io/restartedAt': rfc3339(new Date()) };
  // As kubectl rollout restart does it.
  await cluster.patch('apps/v1', 'deployments', current.deployment, {
    spec: { template: { metadata: { annotations } } },
  });
  console.log(`pods of revision ${current.number} (${current.revision}) are replaced one after the other`);
  return 0;
}

function setPaused(paused: boolean): Verb {
  return async (cluster, name, values) => {
    const resource = await readService(cluster, name);
    mayWrite(resource, values);
    await write(cluster, resource, { spec: { rollout: { paused } } });
    console.log(paused ? 'changes of pods wait; scaling goes on' : 'changes of pods go on');
    return 0;
  };
}

/** Writes a fact about the canary: an annotation, which whoever keeps the spec as a repository says leaves alone. */
function tell(factOf: (resource: Resource, values: Values) => Writing): Verb {
  return async (cluster, name, values) => {
    const resource = await readService(cluster, name);
    const { annotations, text } = factOf(resource, values);
    await write(cluster, resource, { annotations });
    console.log(visible(text));
    return 0;
  };
}

/** Who would take it back, if that is to be. @throws UsageError if it is not */
function mayWrite(resource: Resource, { force }: Values): string | undefined {
  const manager = managerFromGit(resource);
  if (manager === undefined || force) return manager;
  throw new UsageError(
    `"${manager}" keeps this RenderService as a repository says, and would take it back: change it there, or use --force`,
  );
}

async function write(
  cluster: Cluster,
  { metadata }: Resource,
  { annotations, ...spec }: { annotations?: object; spec?: object },
): Promise<void> {
  const { name, resourceVersion } = metadata;
  // The resource version makes a change in between a conflict, and what is to be written is found anew.
  await cluster.patch(API_VERSION, PLURAL, name, {
    metadata: { resourceVersion, ...(annotations && { annotations }) },
    ...spec,
  });
}

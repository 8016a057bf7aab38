/**
 * What names a container elsewhere in the pod template. In the pods the worker is worker-0, worker-1 and so on, and a
 * container that had a name of Corelane's has another one.
 */
import { workerName } from '../src/api/names.ts';
import type { Draft, Said } from './draft.ts';
import { isRecord, type Path } from './manifests.ts';
import { leaves } from './template.ts';

export interface Renamed {
  /** Index of the worker. */
  worker: number;
  /** Its name before. */
  name: string;
  /** How many of it are in a pod. */
  workers: number;
  /** New names of others, by the old ones. */
  renamed: Map<string, string>;
}

const TEMPLATE: Path = ['spec', 'template'];
const CONTAINERS: Path = [...TEMPLATE, 'spec', 'containers'];
const ANNOTATIONS: Path = [...TEMPLATE, 'metadata', 'annotations'];

const info = (what: string, why: string, wayOut = 'Nothing to do.'): Said => ({
  code: 'C016',
  level: 'info',
  what,
  why,
  wayOut,
});

/** Lets fields and annotations that name a container name what it is called in the pods. */
export function followContainers(draft: Draft, containers: Renamed): void {
  followFields(draft, containers);
  const names = new Map([...containers.renamed].map(([old, next]) => [old, [next]]));
  names.set(containers.name, workerNames(containers));
  const moves: Move[] = [];
  for (const [key, value] of annotationsOf(draft)) {
    const move = key.startsWith(APP_ARMOR) ? appArmorMove(draft, key, value, containers) : moveOf(key, value, names);
    if (move) moves.push(move);
    else if (!followList(draft, key, value, names)) sayUnknown(draft, key, names);
  }
  moveAll(draft, moves);
  instrumentAll(draft, containers);
}

/** An annotation that gets other keys. */
interface Move {
  key: string;
  value: string;
  next: string[];
  said: Said;
}

/** The new ones first: metadata without any would be taken out. A new key may be the old one of another container. */
function moveAll(draft: Draft, moves: Move[]): void {
  const all = new Set(moves.flatMap(({ next }) => next));
  for (const { next, value } of moves) for (const key of next) draft.replace([...ANNOTATIONS, key], value);
  for (const { key, said } of moves) {
    if (all.has(key)) draft.say([...ANNOTATIONS, key], said);
    else draft.remove([...ANNOTATIONS, key], said);
  }
}

function workerNames({ workers }: Renamed): string[] {
  return Array.from({ length: workers }, (_unused, index) => workerName(index));
}

function annotationsOf(draft: Draft): [key: string, value: string][] {
  return Object.entries(draft.template().metadata?.annotations ?? {});
}

/** `resourceFieldRef.containerName` of variables and of volumes. */
function followFields(draft: Draft, { worker, name, renamed }: Renamed): void {
  const own = [...CONTAINERS, worker].join('/');
  for (const { path, value } of leaves(draft.template(), TEMPLATE)) {
    if (path.at(-1) !== 'containerName' || path.at(-2) !== 'resourceFieldRef' || typeof value !== 'string') continue;
    const isOwn = path.slice(0, CONTAINERS.length + 1).join('/') === own;
    const next = value === name ? workerName(0) : renamed.get(value);
    if (next === undefined) continue;
    if (isOwn && value === name) {
      draft.remove(path, info('left out', 'It means the container itself, and each worker has a name of its own'));
    } else {
      draft.replace(path, next);
      const why =
        value === name ? `In the pods ${value} is worker-0, worker-1 and so on` : `${value} has that name now`;
      draft.say(path, info(`${value} is now ${next}`, why));
    }
  }
}

/** Keys of annotations that have the name of a container in them, with what stands before and behind it. */
const KEYS = [
  /^((?:ad|admission)\.datadoghq\.com\/)([^./]+)(\..+)$/,
  /^(co\.elastic\.(?:logs|metrics)\.)([^./]+)(\/.+)$/,
  /^(fluentbit\.io\/(?:parser|exclude)(?:_stdout|_stderr)?-)([^/]+)()$/,
];
/** Checks of Datadog ask a container at its port, and a worker has none that can be reached. */
const CHECK = /^ad\.datadoghq\.com\/.*\.(checks|instances)$/;

function moveOf(key: string, value: string, names: Map<string, string[]>): Move | undefined {
  const found = KEYS.map((pattern) => pattern.exec(key)).find((match) => match !== null);
  const [, before = '', name = '', behind = ''] = found ?? [];
  const next = found ? names.get(name) : undefined;
  if (next === undefined) return undefined;
  const what = `${name} is now ${next.join(', ')}`;
  const said: Said = CHECK.test(key)
    ? {
        ...info(what, 'A worker listens on loopback, so a check that asks its port fails'),
        level: 'decide',
        wayOut: 'Read the metrics of the worker runtime at port 8999 (docs/metrics.md), and leave the check out.',
      }
    : info(what, 'It is read by the name of the container', ofWorkers(next));
  return { key, value, next: next.map((one) => `${before}${one}${behind}`), said };
}

function ofWorkers(names: string[]): string {
  return names.length > 1 ? 'Change it together with workersPerPod.' : 'Nothing to do.';
}

/** A value that names containers: all of them, or one where the key speaks of one. @returns whether it does */
function followList(draft: Draft, key: string, value: string, names: Map<string, string[]>): boolean {
  const old = value.split(',').map((item) => item.trim());
  if (!/container/i.test(key) || !old.some((item) => names.has(item))) return false;
  const isList = /containers|container-names/i.test(key);
  const next = old.flatMap((item) => {
    const all = names.get(item) ?? [item];
    return isList ? all : all.slice(0, 1);
  });
  const text = next.join(',');
  draft.replace([...ANNOTATIONS, key], text);
  const said = info(`${value} is now ${text}`, 'It names containers', isList ? ofWorkers(next) : undefined);
  draft.say([...ANNOTATIONS, key], said);
  return true;
}

/** A key that ends in the name of a container, or has it before a dot, as those do that are known. */
function sayUnknown(draft: Draft, key: string, names: Map<string, string[]>): void {
  const [first = ''] = (key.split('/')[1] ?? '').split('.');
  const next = names.get(first);
  if (next === undefined) return;
  draft.say([...ANNOTATIONS, key], {
    code: 'C016',
    level: 'warning',
    what: `it may name container ${first}, which is ${next[0]} in the pods`,
    why: 'What reads it by the name of the container finds none',
    wayOut: 'Write it for each new name, if it means the container.',
  });
}

const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';

/** A profile of AppArmor as the field of a security context. */
function appArmorProfile(value: string): Record<string, string> | undefined {
  if (value === 'runtime/default') return { type: 'RuntimeDefault' };
  if (value === 'unconfined') return { type: 'Unconfined' };
  return value.startsWith('localhost/')
    ? { type: 'Localhost', localhostProfile: value.slice('localhost/'.length) }
    : undefined;
}

/** The API server refuses a pod with such an annotation for a container that is not there. The field names none. */
function appArmorMove(draft: Draft, key: string, value: string, containers: Renamed): Move | undefined {
  const container = key.slice(APP_ARMOR.length);
  const next = containers.renamed.get(container);
  if (container === containers.name)
    return { key, value, next: [], said: writeAppArmor(draft, value, containers.worker) };
  if (next === undefined) return undefined;
  const said = info(`${container} is now ${next}`, 'It is read by the name of the container');
  return { key, value, next: [`${APP_ARMOR}${next}`], said };
}

function writeAppArmor(draft: Draft, value: string, worker: number): Said {
  const context = [...CONTAINERS, worker, 'securityContext'];
  const field = [...context, 'appArmorProfile'];
  const given = draft.get(context);
  const profile = appArmorProfile(value);
  if (profile && (given === undefined || (isRecord(given) && given.appArmorProfile === undefined)))
    draft.replace(field, profile);
  const why = 'By the name of the container it would mean none of the workers';
  if (profile)
    return { ...info('is securityContext.appArmorProfile of the worker now', why), also: [draft.pathOf(field)] };
  return { ...info('left out', why), level: 'decide', wayOut: 'Set securityContext.appArmorProfile of the worker.' };
}

/** OpenTelemetry's operator instruments the first container of a pod unless it is told others. */
function instrumentAll(draft: Draft, containers: Renamed): void {
  if (containers.worker !== 0 || containers.workers < 2) return;
  const all = annotationsOf(draft);
  const injected = all.find(
    ([key, value]) => /^instrumentation\.opentelemetry\.io\/inject-(nodejs|sdk)$/.test(key) && value !== 'false',
  );
  const isTold = all.some(([key]) => /^instrumentation\.opentelemetry\.io\/((nodejs|sdk)-)?container-names$/.test(key));
  if (injected === undefined || isTold) return;
  const path = [...ANNOTATIONS, 'instrumentation.opentelemetry.io/container-names'];
  const names = workerNames(containers);
  draft.replace(path, names.join(','));
  const why = `${injected[0].split('/')[1]} instruments the first container only unless it is told others`;
  draft.say(path, info(`names ${names.join(', ')}`, why, ofWorkers(names)));
}

/**
 * What happens in a soak, and what is to come of it: a sequence from a seed. Computes only. Which pod or which object
 * an action meets is for the cluster to say; what is done to which RenderService in which order is the same for a seed.
 *
 * Kinds come as from a deck of cards, so that even a short run has most of them; a kind that nothing can be done with
 * now, such as `resume` while nothing is paused, waits until something can.
 */
import { Random } from '../../operator/test/support/random.ts';

/** The namespaces of a run. */
export const NAMESPACES = ['soak-1', 'soak-2', 'soak-3'];
/** RenderServices that are never broken, and get requests. Pods of the first one stay: their memory is looked at. */
export const HONEST = {
  steady: { namespace: 'soak-1', name: 'steady' },
  rolled: { namespace: 'soak-2', name: 'rolled' },
} as const;
/** Of the others, in each namespace. A name that was deleted comes again. */
const NAMES = ['one', 'two', 'three'];
export const SERVICES_MAX = 5;
/** Of the others in all; with each go one above its number, in a rollout or at rest. */
export const PODS_MAX = 12;
const REPLICAS_MAX = 3;
const HONEST_REPLICAS = { min: 2, max: 3 };
/** Between two actions. */
const PAUSE_MS = { min: 1_500, max: 6_000 };
/** kubelet starts a container at once that has not ended within ten minutes, and later and later one that has. */
export const API_SERVER_REST_MS = 660_000;

/** How pods can be broken. */
export const BROKEN = ['image missing', 'crash loop', 'never ready'] as const;
export type Broken = (typeof BROKEN)[number];

/** How many there are of each kind in a deck. */
const CARDS = {
  create: 7,
  'create, image missing': 1,
  'create, crash loop': 1,
  'create, never ready': 1,
  'create, refused': 1,
  'create, name taken': 1,
  'name given free': 1,
  'name taken, delete': 1,
  'live setting': 4,
  'change, refused': 1,
  'rolling change': 3,
  'change amid a change': 2,
  'change to image missing': 1,
  'change to crash loop': 1,
  'change to never ready': 1,
  undo: 3,
  mend: 2,
  pause: 2,
  resume: 2,
  scale: 3,
  'write into an owned object': 3,
  'delete an owned object': 3,
  delete: 4,
  'delete amid a change': 2,
  'delete and make again': 1,
  'pod deleted': 1,
  'pod killed': 1,
  'worker killed': 1,
  'HAProxy killed': 1,
  'nginx killed': 1,
  'honest: live setting': 2,
  'honest: rolling change': 2,
  'honest: undo': 1,
  'honest: scale': 1,
  'honest: pod deleted': 1,
  'honest: worker killed': 1,
  'honest: HAProxy killed': 1,
  'leader deleted': 2,
  'operator killed': 1,
  'API server killed': 1,
  'etcd frozen': 1,
  'CoreDNS restarted': 1,
  'node drained': 1,
} as const;
export type Kind = keyof typeof CARDS;
export const KINDS = Object.keys(CARDS) as Kind[];

/** What a status must come to tell; `gone` is all that belonged to the RenderService, too. */
export type Expectation =
  | { is: 'ready' }
  | { is: 'paused' }
  | { is: 'gone' }
  | { is: 'stalled'; reason: 'NotOwned' | 'ProgressDeadlineExceeded' };

export interface Service {
  namespace: string;
  name: string;
  state: 'ready' | 'broken' | 'paused' | 'name taken';
  replicas: number;
  /** Each change of pods is another one. */
  version: number;
  /** Another revision was all there, so `undo` has where to go. */
  hasBefore: boolean;
  /** The action that was the last about it. */
  touched: number;
}

export interface Action {
  number: number;
  kind: Kind;
  /** How long nothing is done before it. */
  pauseMs: number;
  /** The RenderService that it is about, as it is to be afterwards. */
  service?: Service;
  /** What its status must come to tell. */
  expect?: Expectation;
  /** From 0 to below 1: what the cluster has to choose from (pods, objects) is chosen by it. */
  chance: number;
  /** Of a live setting. */
  queueLength?: number;
}

/** Whether an action is about the cluster, and so about all RenderServices. */
export const isOfCluster = ({ kind }: Pick<Action, 'kind'>) => CLUSTER.includes(kind);
const CLUSTER: Kind[] = [
  'leader deleted',
  'operator killed',
  'API server killed',
  'etcd frozen',
  'CoreDNS restarted',
  'node drained',
];
const ENDS_THE_OPERATOR: Kind[] = ['leader deleted', 'operator killed'];
/** After these another operator process may begin, or lead. */
export const OPERATOR_MAY_END: Kind[] = [...ENDS_THE_OPERATOR, 'API server killed', 'etcd frozen'];

/**
 * In how many of the first actions the operator may be ended: a third of what a run comes to, so that one process leads
 * through the rest, and its memory tells something.
 */
export function stormOf(minutes: number): number {
  const actionsPerMinute = 7;
  return Math.round((minutes * actionsPerMinute) / 3);
}

const expectationOf = (state: Service['state']): Expectation => {
  if (state === 'broken') return { is: 'stalled', reason: 'ProgressDeadlineExceeded' };
  if (state === 'name taken') return { is: 'stalled', reason: 'NotOwned' };
  return { is: state };
};

/** What happens, one action after the other, without an end. */
export class Sequence {
  readonly #random: Random;
  readonly #storm: number;
  readonly #services = new Map<string, Service>();
  readonly #rolled: Service;
  #deck: Kind[] = [];
  #number = 0;
  /** The pauses so far: no more time than has passed. */
  #plannedMs = 0;
  #apiServerMs = Number.NEGATIVE_INFINITY;
  #version = 1;

  /** @param storm the number of actions in which the operator may be ended; after it one process is to live on */
  constructor(seed: number, storm: number) {
    this.#random = new Random(seed);
    this.#storm = storm;
    this.#rolled = { ...HONEST.rolled, state: 'ready', replicas: 2, version: 1, hasBefore: false, touched: 0 };
  }

  /** The RenderServices that there are now, without the honest ones. */
  get services(): Service[] {
    return [...this.#services.values()];
  }

  next(): Action {
    const pauseMs = this.#random.whole(PAUSE_MS.min, PAUSE_MS.max);
    this.#number += 1;
    this.#plannedMs += pauseMs;
    for (;;) {
      const found = this.#fromDeck();
      if (found) return { number: this.#number, pauseMs, chance: this.#random.fraction(), ...found };
      this.#deck.push(...this.#shuffled());
    }
  }

  /** The first card with which something can be done; those before it wait. */
  #fromDeck(): Pick<Action, 'kind' | 'service' | 'expect' | 'queueLength'> | undefined {
    for (const [index, kind] of this.#deck.entries()) {
      const done = this.#play(kind);
      if (!done) continue;
      this.#deck.splice(index, 1);
      return { kind, ...done };
    }
    return undefined;
  }

  /** A deck. The first one begins with something to do the others to, and has what belongs into the storm in it. */
  #shuffled(): Kind[] {
    const isStorm = this.#number <= this.#storm;
    const all = KINDS.flatMap((kind) => Array<Kind>(CARDS[kind]).fill(kind));
    const others = this.#mixed(all.filter((kind) => !ENDS_THE_OPERATOR.includes(kind)));
    if (!isStorm) return others;
    const deck: Kind[] = this.#number === 1 ? ['create', 'create', ...others] : others;
    for (const kind of all.filter((one) => ENDS_THE_OPERATOR.includes(one))) {
      deck.splice(this.#random.whole(2, Math.min(deck.length, this.#storm - 1)), 0, kind);
    }
    return deck;
  }

  #mixed(kinds: Kind[]): Kind[] {
    const rest = [...kinds];
    return kinds.map(() => rest.splice(this.#random.whole(0, rest.length - 1), 1)[0] as Kind);
  }

  /** What a kind is done to, or undefined where it cannot be. */
  #play(kind: Kind): Pick<Action, 'service' | 'expect' | 'queueLength'> | undefined {
    if (isOfCluster({ kind })) return this.#playCluster(kind);
    if (kind.startsWith('create')) return this.#playCreate(kind);
    const service = kind.startsWith('honest: ') ? this.#rolled : this.#targetOf(kind);
    if (!service || !this.#change(kind, service)) return undefined;
    service.touched = this.#number;
    const isGone = kind === 'delete' || kind === 'delete amid a change' || kind === 'name taken, delete';
    if (isGone) this.#services.delete(keyOf(service));
    const expect: Expectation = isGone ? { is: 'gone' } : expectationOf(service.state);
    const queueLength = kind.endsWith('live setting') ? { queueLength: this.#random.whole(50, 500) } : {};
    return { service: { ...service }, expect, ...queueLength };
  }

  #playCluster(kind: Kind): object | undefined {
    const isStorm = this.#number <= this.#storm;
    if (ENDS_THE_OPERATOR.includes(kind) && !isStorm) return undefined;
    // Where some pods never become ready the budget lets nobody take the one that is.
    if (kind === 'node drained' && this.services.some(({ state }) => state === 'broken')) return undefined;
    if (kind !== 'API server killed') return {};
    // One that comes back late costs the leader, and the controllers of the cluster, their leases.
    if (this.#plannedMs - this.#apiServerMs < API_SERVER_REST_MS) return undefined;
    this.#apiServerMs = this.#plannedMs;
    return {};
  }

  #playCreate(kind: Kind): Pick<Action, 'service' | 'expect'> | undefined {
    const free = NAMESPACES.flatMap((namespace) => NAMES.map((name) => ({ namespace, name }))).filter(
      (place) => !this.#services.has(keyOf(place)),
    );
    const replicas = this.#random.whole(1, 2);
    if (this.#services.size >= SERVICES_MAX || this.#pods() + replicas + 1 > PODS_MAX) return undefined;
    const place = this.#random.pick(free);
    const isBroken = BROKEN.some((how) => kind.endsWith(how));
    const state = kind === 'create, name taken' ? 'name taken' : isBroken ? 'broken' : 'ready';
    const service: Service = {
      ...{ ...place, state, replicas, version: this.#nextVersion() },
      ...{ hasBefore: false, touched: this.#number },
    };
    // The API server takes no such thing.
    if (kind === 'create, refused') return { service };
    this.#services.set(keyOf(service), service);
    return { service: { ...service }, expect: expectationOf(state) };
  }

  /** Of those that a kind can be done to one of the two that nothing was done to for the longest time. */
  #targetOf(kind: Kind): Service | undefined {
    const able = this.services
      .filter(({ state }) => statesFor(kind).includes(state))
      .filter(({ hasBefore }) => kind !== 'undo' || hasBefore)
      .toSorted((one, other) => one.touched - other.touched);
    return able.length === 0 ? undefined : this.#random.pick(able.slice(0, 2));
  }

  /** Notes what a kind makes of a RenderService; false where it cannot be done now. */
  #change(kind: Kind, service: Service): boolean {
    const base = kind.replace('honest: ', '');
    if (base === 'scale') return this.#scale(service);
    // Of the others one was chosen that has somewhere to go back to.
    if (base === 'undo' && !service.hasBefore) return false;
    // What it comes back from was all there, unless it was broken.
    if (base === 'undo') service.hasBefore = service.state === 'ready';
    else if (LEAVES_A_REVISION.includes(base)) service.hasBefore = true;
    else if (base === 'delete and make again') service.hasBefore = false;
    service.state = stateAfter(base) ?? service.state;
    service.version = this.#nextVersion();
    return true;
  }

  #scale(service: Service): boolean {
    const { min, max } = service === this.#rolled ? HONEST_REPLICAS : { min: 1, max: REPLICAS_MAX };
    const room = service === this.#rolled ? max : PODS_MAX - this.#pods() + service.replicas;
    const others = Array.from({ length: max - min + 1 }, (_unused, index) => min + index).filter(
      (replicas) => replicas !== service.replicas && replicas <= room,
    );
    if (others.length === 0) return false;
    service.replicas = this.#random.pick(others);
    return true;
  }

  #nextVersion(): number {
    this.#version += 1;
    return this.#version;
  }

  #pods(): number {
    return this.services.reduce((sum, { replicas }) => sum + replicas + 1, 0);
  }
}

/** After these the revision of before, which was all there, is another one. */
const LEAVES_A_REVISION = [
  'rolling change',
  'change amid a change',
  'pause',
  'change to image missing',
  'change to crash loop',
  'change to never ready',
];

/** The state that a kind brings about, or undefined where it leaves the one that there is. */
function stateAfter(base: string): Service['state'] | undefined {
  if (base.startsWith('change to ')) return 'broken';
  if (base === 'pause') return 'paused';
  return ['mend', 'undo', 'resume', 'name given free'].includes(base) ? 'ready' : undefined;
}

/** The states in which a kind can be done. */
function statesFor(kind: Kind): Service['state'][] {
  if (kind === 'mend') return ['broken'];
  if (kind === 'undo') return ['broken', 'ready'];
  if (kind === 'resume') return ['paused'];
  if (kind.startsWith('name ')) return ['name taken'];
  if (kind === 'delete') return ['ready', 'broken', 'paused'];
  return ['ready'];
}

/** namespace/name */
export const keyOf = ({ namespace, name }: Pick<Service, 'namespace' | 'name'>) => `${namespace}/${name}`;

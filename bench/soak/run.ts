/** A soak from its beginning to its end. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually, kubectl, SELDOM_MS } from '../../e2e/harness/cluster/cluster.ts';
import { imageNames, installOperator } from '../../e2e/harness/cluster/operator.ts';
import { ROOT } from '../../e2e/harness/cluster/shell.ts';
import { collectionPath, kinds, objectPath } from '../../operator/src/kube/kinds.ts';
import { since } from '../lib/writes.ts';
import { Actions } from './actions.ts';
import { Api, type Metadata } from './api.ts';
import { Cluster } from './cluster.ts';
import { objectsIn } from './leftovers.ts';
import { app, namespace } from './manifests.ts';
import { Memory, operatorPages, operatorWrites } from './memory.ts';
import { linesAbout } from './pages.ts';
import type { Report } from './report.ts';
import { type Action, HONEST, isOfCluster, keyOf, NAMESPACES, Sequence, type Service, stormOf } from './sequence.ts';
import { Traffic } from './traffic.ts';
import { type Done, growthOf, lostOf, type Result, unexplained, worstGrowthOf } from './verdicts.ts';
import { Watch } from './watch.ts';

const PROGRAM = join(ROOT, 'e2e/harness/cluster/blocker.mjs');
/** Figures of the progress lines: each costs a kubectl for each client. */
const TOLD_MS = 60_000;
const NOTHING_LEFT_MS = 180_000;
const QUIET_MS = 60_000;
/** What still goes on by itself is over when nothing was written for so long. */
const CALM_MS = 15_000;
const CALM_MS_MAX = 240_000;
/** The account that pods have, which a controller makes in each namespace. */
const ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts' };

export class Soak {
  readonly #seed: number;
  readonly #minutes: number;
  readonly #sequence: Sequence;
  readonly #api = new Api();
  readonly #watch: Watch;
  readonly #memory: Memory;
  readonly #traffic: Traffic;
  readonly #done: Done[] = [];
  #cluster: Cluster | undefined;
  #beginMs = Date.now();
  /** RenderServices beside the honest ones. */
  #services = () => this.#sequence.services.length;
  #acting: Promise<void> = Promise.resolve();
  #isEnded = false;
  #isRemoved: Promise<void> | undefined;

  constructor(seed: number, minutes: number) {
    this.#seed = seed;
    this.#minutes = minutes;
    this.#sequence = new Sequence(seed, stormOf(minutes));
    this.#watch = new Watch(this.#api, ({ text }) => this.#tell(`WRONG: ${text}`));
    this.#memory = new Memory(this.#api, () => this.#services());
    this.#traffic = new Traffic(seed);
  }

  /**
   * All of it.
   * @throws Error when it could not begin, or its end could not be reached
   */
  async run(): Promise<Omit<Report, 'machine'>> {
    const before = await this.#prepare();
    this.#beginMs = Date.now();
    this.#watch.start();
    this.#memory.start();
    this.#acting = this.#act();
    await this.#acting;
    if (this.#isEnded) throw new Error('the run was ended');
    this.#tell('time is up: all are to come to rest');
    await this.#watch.settled();
    await this.#deleteServices();
    this.#tell('the clients end');
    await this.#traffic.stop();
    const quietWrites = await this.#quietMinute();
    await this.#memory.stop();
    const leftBehind = await this.#deleteHonest(before);
    await this.#watch.stop();
    return this.#reportOf(leftBehind, quietWrites);
  }

  /** Nothing of the run is in the cluster any more; the operator stays, as after a story. */
  async remove(): Promise<void> {
    this.#isRemoved ??= this.#removeAll();
    await this.#isRemoved;
  }

  async #prepare(): Promise<Set<string>> {
    this.#tell('installing the operator, and two RenderServices that stay');
    await installOperator();
    await this.#deleteNamespaces();
    this.#cluster = await Cluster.find(this.#api);
    const program = readFileSync(PROGRAM, 'utf8');
    for (const name of NAMESPACES) {
      await this.#api.create('/api/v1/namespaces', namespace(name));
      await this.#api.create(collectionPath(kinds.configMap, name), app(name, program));
    }
    // What a namespace has by itself comes a moment later.
    await eventually('what each namespace has by itself', 60_000, async () => {
      const accounts = NAMESPACES.map((name) => this.#api.find(objectPath(ACCOUNT, name, 'default')));
      const roots = NAMESPACES.map((name) => this.#api.find(objectPath(kinds.configMap, name, 'kube-root-ca.crt')));
      return (await Promise.all([...accounts, ...roots])).every((one) => one !== undefined) || undefined;
    });
    const before = await objectsIn(this.#api, NAMESPACES, isOfClients);
    const actions = this.#actions();
    for (const place of Object.values(HONEST)) {
      const service: Service = {
        ...{ ...place, state: 'ready', replicas: 2, version: 1 },
        ...{ hasBefore: false, touched: 0 },
      };
      await actions.createHonest(service);
      this.#watch.expect(keyOf(place), { is: 'ready' }, doneOf('create', keyOf(place)));
    }
    for (const { namespace, name } of Object.values(HONEST)) {
      const wait = ['wait', '--for=condition=Ready', '--timeout=180s', `renderservice/${name}`];
      await eventually(`${name} to be Ready`, 240_000, () =>
        kubectl(['-n', namespace, ...wait], { timeoutMs: 200_000 }),
      );
    }
    await this.#traffic.start();
    return before;
  }

  #actions(): Actions {
    return new Actions(this.#api, this.#cluster as Cluster, imageNames().storefront);
  }

  async #act(): Promise<void> {
    const actions = this.#actions();
    const endMs = this.#beginMs + this.#minutes * 60_000;
    let toldMs = 0;
    while (Date.now() < endMs && !this.#isEnded) {
      const action = this.#sequence.next();
      await delay(action.pauseMs);
      await this.#traffic.relieve().catch((error: Error) => this.#watch.find(`clients: ${error.message}`));
      if (Date.now() - toldMs > TOLD_MS) {
        toldMs = Date.now();
        await this.#tellFigures();
      }
      await this.#doOne(actions, action);
    }
  }

  async #doOne(actions: Actions, action: Action): Promise<void> {
    const { number, kind, service, expect } = action;
    const key = service && keyOf(service);
    // What its last action wants first: whoever wants to meet it amid a change does both.
    if (key) await this.#watch.settled(key);
    const more = [service && `v${service.version}`, kind.endsWith('scale') && `${service?.replicas} pods`];
    this.#tell(`#${number} ${kind}${key ? ` ${key} ${more.filter(Boolean).join(', ')}` : ''}`);
    const done = { ...doneOf(kind, key), number };
    this.#done.push(done);
    if (isOfCluster(action)) this.#watch.disturbed();
    try {
      const also = await actions.do(action);
      if (key && expect) this.#watch.expect(key, expect, done, also);
    } catch (error) {
      this.#watch.find(`#${number} ${kind} ${key ?? ''}: ${(error as Error).message.split('\n')[0]}`);
      // Whatever has come of it: what is to be is known.
      if (key && expect) this.#watch.expect(key, expect, done);
    }
    done.endMs = Date.now();
    if (isOfCluster(action)) this.#watch.disturbed();
  }

  async #deleteServices(): Promise<void> {
    const left = this.#sequence.services;
    this.#tell(`deleting the last ${left.length}`);
    for (const { namespace, name, state } of left) {
      await this.#api.delete(objectPath(kinds.renderService, namespace, name));
      if (state === 'name taken') await this.#api.delete(objectPath(kinds.service, namespace, name));
      this.#watch.expect(keyOf({ namespace, name }), { is: 'gone' }, doneOf('delete', keyOf({ namespace, name })));
    }
    await this.#watch.settled();
    this.#services = () => 0;
  }

  /** What is written in a minute in which nothing changes, by what. */
  async #quietMinute(): Promise<Record<string, number>> {
    this.#tell('until nothing goes on any more');
    let last = '';
    await eventually(
      'the operator to have nothing to write any more',
      CALM_MS_MAX,
      async () => {
        const now = JSON.stringify(await operatorWrites(this.#api));
        const isCalm = now === last;
        last = now;
        return isCalm || undefined;
      },
      CALM_MS,
    ).catch((error: Error) => this.#watch.find(error.message));
    this.#tell('a quiet minute');
    const before = await operatorWrites(this.#api);
    await delay(QUIET_MS);
    const after = await operatorWrites(this.#api);
    return since(before, after);
  }

  /** What is left when the last ones have gone, and some time has passed. */
  async #deleteHonest(before: Set<string>): Promise<string[]> {
    this.#tell('deleting the honest ones: nothing may be left');
    for (const { namespace, name } of Object.values(HONEST)) {
      await this.#api.delete(objectPath(kinds.renderService, namespace, name));
      this.#watch.expect(keyOf({ namespace, name }), { is: 'gone' }, doneOf('delete', keyOf({ namespace, name })));
    }
    await this.#watch.settled();
    let left: string[] = [];
    const look = async () => {
      const now = await objectsIn(this.#api, NAMESPACES, isOfClients);
      const pages = [...(await operatorPages(this.#api)).values()];
      left = [
        ...[...now].filter((path) => !before.has(path)),
        ...[...before].filter((path) => !now.has(path)).map((path) => `(missing) ${path}`),
        ...pages.flatMap((page) => linesAbout(page, NAMESPACES)).map((line) => `(metrics) ${line}`),
      ];
      return left.length === 0 || undefined;
    };
    // What is left then is told.
    await eventually('nothing to be left', NOTHING_LEFT_MS, look, SELDOM_MS).catch(() => undefined);
    return left;
  }

  #reportOf(leftBehind: string[], quietWrites: Record<string, number>): Omit<Report, 'machine'> {
    const { rss, heap, proxies, starts } = this.#memory;
    const { visits } = this.#traffic;
    for (const atMs of unexplained([...starts.values()], this.#beginMs, this.#done)) {
      this.#watch.find(`an operator process began at ${new Date(atMs).toISOString()}, and nobody had ended one`);
    }
    const result: Result = {
      seed: this.#seed,
      minutes: this.#minutes,
      actions: this.#done,
      requests: visits.reduce((sum, { timeline }) => sum + timeline.length, 0),
      overlaps: visits.reduce((sum, { overlaps }) => sum + overlaps, 0),
      lost: visits.flatMap(({ client, timeline }) => lostOf(client, timeline, this.#done)),
      leftBehind,
      operatorRss: growthOf(rss),
      operatorHeap: growthOf(heap),
      proxies: Object.fromEntries(Object.entries(proxies).map(([name, samples]) => [name, worstGrowthOf(samples)])),
      quietWrites,
      findings: this.#watch.findings,
    };
    return { result, visits, rss, heap, proxies, beginMs: this.#beginMs, endMs: Date.now() };
  }

  async #tellFigures(): Promise<void> {
    const { requests, failed } = await this.#traffic.counts();
    const rss = this.#memory.rss.at(-1)?.mib.toFixed(0) ?? '-';
    this.#tell(
      `${requests} requests, ${failed} failed; operator ${rss} MiB; ${this.#services()} RenderServices beside the honest`,
    );
  }

  #tell(text: string): void {
    const left = Math.ceil(this.#minutes - (Date.now() - this.#beginMs) / 60_000);
    const time = new Date().toISOString().slice(11, 19);
    process.stderr.write(`[${left > 0 ? `${left} min left` : 'the end'}] ${time} ${text}\n`);
  }

  async #removeAll(): Promise<void> {
    this.#isEnded = true;
    // Who waits for something to settle waits no more.
    await this.#watch.stop();
    await this.#acting.catch(() => undefined);
    await this.#cluster?.restore();
    await this.#memory.stop();
    await this.#deleteNamespaces();
    await this.#api.close();
  }

  async #deleteNamespaces(): Promise<void> {
    // The RenderServices first: what they own goes with them, and their pods drain.
    const remove = ['delete', 'namespace', ...NAMESPACES, '--ignore-not-found', '--timeout=240s'];
    await eventually('the namespaces to go', 300_000, () => kubectl(remove, { timeoutMs: 250_000 }), SELDOM_MS);
  }
}

/** What the clients bring along. */
const isOfClients = ({ name, labels }: Metadata) => labels?.app === 'load-client' || name === 'load-client';

const doneOf = (kind: Done['kind'], target: string | undefined): Done => ({
  ...{ number: 0, kind, beginMs: Date.now(), endMs: Date.now() },
  ...(target !== undefined && { target }),
});

/**
 * Leader election on a Lease, as client-go does it (the library has none): a candidate trusts only its own clock,
 * takes over when it has seen the lease unchanged for its whole duration, and gives up before the others may take over.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { errorLine } from './error-line.ts';
import { collectionPath, kinds, objectPath } from './kinds.ts';
import { ApiError, isNotFound, type Rest } from './rest.ts';
import type { KubeObject } from './types.ts';

/** Times as in client-go's defaults; see its leaderelection package for the reasoning. */
const LEASE_DURATION_MS = 15_000;
/**
 * Of another holder's: whoever wrote a Lease for thirty years blocks nobody, and for one second makes no second leader
 * beside one that lives. A version with times beyond these is not in sight.
 */
const LEASE_DURATION_MS_MAX = 60_000;
/** An int32; one more would be refused, and there would never be a leader again. */
const TRANSITIONS_MAX = 2 ** 31 - 1;
const RENEW_DEADLINE_MS = 10_000;
const RETRY_PERIOD_MS = 2_000;
const EXPIRY_SLACK_MS = 20;
/** What a write may still be under way for when its time is over, so that it ends before another process leads. */
const WRITE_SLACK_MS = 1_000;

interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

type Lease = KubeObject & { spec?: LeaseSpec };

export interface ElectionOptions {
  rest: Rest;
  namespace: string;
  name: string;
  /** Unique per process: the pod's name. */
  identity: string;
  signal: AbortSignal;
  onError: (error: unknown) => void;
}

/** Wall-clock time as a MicroTime: the API refuses the three digits of toISOString. */
function microTime(): string {
  return new Date().toISOString().replace('Z', '000Z');
}

export class LeaderElection {
  readonly #options: ElectionOptions;
  #observed: { record: string; expiresMs: number } | undefined;
  /** When the Lease was last written with success, by this process's clock. */
  #renewedMs = Number.NEGATIVE_INFINITY;
  /** The Lease names another holder. */
  #isTaken = false;
  /** When a try has last ended as it should, whoever leads now. */
  #triedMs = Number.NEGATIVE_INFINITY;
  /** Why the last try that failed has failed. */
  #failure: unknown;

  constructor(options: ElectionOptions) {
    this.#options = options;
  }

  /** Resolves with true as soon as this process is the leader, with false when the signal aborts before. */
  async acquire(): Promise<boolean> {
    while (!this.#options.signal.aborted) {
      if (await this.#tryAcquire()) return true;
      await this.#pause(this.#untilNextTryMs());
    }
    return false;
  }

  /**
   * Whether this process may write: it has renewed the lease so recently that nobody else can have taken it over. After
   * a hang of the machine this is false before any timer has noticed.
   */
  get isCurrent(): boolean {
    return !this.#isTaken && performance.now() - this.#renewedMs < RENEW_DEADLINE_MS;
  }

  /**
   * Why this process can neither lead nor take over, in one line: for as long as a leader may go without a renewal, no
   * try has succeeded. Undefined when it can; that another process leads is no obstacle.
   */
  get obstacle(): string | undefined {
    if (performance.now() - this.#triedMs < RENEW_DEADLINE_MS) return undefined;
    const { namespace, name } = this.#options;
    const why = this.#failure === undefined ? 'no answer yet' : errorLine(this.#failure);
    return `cannot read or write Lease ${namespace}/${name}: ${why}`;
  }

  /**
   * For how long a write that is sent now may take, in whole milliseconds, so that it has ended before anybody else can
   * lead; 0 where none may be sent.
   */
  get writeMs(): number {
    if (!this.isCurrent) return 0;
    return Math.floor(this.#renewedMs + LEASE_DURATION_MS - WRITE_SLACK_MS - performance.now());
  }

  /** Renews until the lease is lost; resolves then, or when the signal aborts. The caller must stop leading at once. */
  async holdUntilLost(): Promise<void> {
    while (!this.#options.signal.aborted) {
      await this.#pause(RETRY_PERIOD_MS);
      if (this.#options.signal.aborted) return;
      if (!this.isCurrent) return;
      await this.#tryAcquire();
      if (!this.isCurrent) return;
    }
  }

  /**
   * Gives the lease up, so that another candidate takes over at its next try instead of after 15 s. This process may
   * write nothing from now on: what is given up may have a new holder before the answer is here.
   */
  async release(): Promise<void> {
    this.#renewedMs = Number.NEGATIVE_INFINITY;
    try {
      const lease = await this.#read();
      if (lease?.spec?.holderIdentity !== this.#options.identity) return;
      await this.#send('PUT', lease, {
        ...lease.spec,
        holderIdentity: '',
        leaseDurationSeconds: 1,
        renewTime: microTime(),
      });
    } catch (error) {
      this.#options.onError(error); // the lease then runs out by itself
    }
  }

  /**
   * Jittered, so that two candidates do not collide at every try; but no later than the end of the lease that was seen.
   */
  #untilNextTryMs(): number {
    const jittered = RETRY_PERIOD_MS * (0.8 + 0.4 * Math.random());
    const leftMs = (this.#observed?.expiresMs ?? 0) - performance.now();
    return leftMs > 0 ? Math.min(jittered, leftMs + EXPIRY_SLACK_MS) : jittered;
  }

  async #tryAcquire(): Promise<boolean> {
    try {
      const leads = await this.#try();
      this.#triedMs = performance.now();
      return leads;
    } catch (error) {
      // 409: another candidate was faster, which is the normal end of a race.
      if (error instanceof ApiError && error.status === 409) this.#triedMs = performance.now();
      else {
        this.#failure = error;
        this.#options.onError(error);
      }
      return false;
    }
  }

  async #try(): Promise<boolean> {
    const lease = await this.#read();
    if (lease === undefined) return await this.#create();
    const { identity } = this.#options;
    const holder = lease.spec?.holderIdentity;
    this.#isTaken = Boolean(holder) && holder !== identity;
    if (holder === identity) {
      const { leaseDurationSeconds, renewTime } = this.#fresh();
      return await this.#write('PUT', lease, { ...lease.spec, leaseDurationSeconds, renewTime });
    }
    if (holder && !this.#hasExpired(lease)) return false;
    return await this.#write('PUT', lease, {
      ...this.#fresh(),
      leaseTransitions: ((lease.spec?.leaseTransitions ?? 0) % TRANSITIONS_MAX) + 1,
    });
  }

  /** Whether the record has stood unchanged for its whole duration, by this process's clock. */
  #hasExpired({ spec }: Lease): boolean {
    const record = JSON.stringify(spec);
    const now = performance.now();
    const writtenMs = (spec?.leaseDurationSeconds ?? 0) * 1000;
    const durationMs = Math.min(Math.max(writtenMs, LEASE_DURATION_MS), LEASE_DURATION_MS_MAX);
    if (this.#observed?.record !== record) this.#observed = { record, expiresMs: now + durationMs };
    return now > this.#observed.expiresMs;
  }

  #fresh(): LeaseSpec {
    const now = microTime();
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: LEASE_DURATION_MS / 1000,
      acquireTime: now,
      renewTime: now,
    };
  }

  async #read(): Promise<Lease | undefined> {
    const { rest, namespace, name } = this.#options;
    try {
      return await rest.request<Lease>('GET', objectPath(kinds.lease, namespace, name), {
        timeoutMs: RENEW_DEADLINE_MS / 2,
      });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #create(): Promise<boolean> {
    const { namespace, name } = this.#options;
    const lease = { apiVersion: kinds.lease.apiVersion, kind: kinds.lease.kind, metadata: { name, namespace } };
    return await this.#write('POST', lease, { ...this.#fresh(), leaseTransitions: 0 });
  }

  /** Writes this process as the holder. */
  async #write(method: 'POST' | 'PUT', lease: Lease, spec: LeaseSpec): Promise<boolean> {
    const startedMs = performance.now(); // the lease runs from the time in it, not from the answer
    await this.#send(method, lease, spec);
    this.#renewedMs = startedMs;
    this.#isTaken = false;
    return true;
  }

  /** The resource version in `lease` makes the API server refuse the write when somebody else was faster. */
  async #send(method: 'POST' | 'PUT', lease: Lease, spec: LeaseSpec): Promise<void> {
    const { rest, namespace, name } = this.#options;
    const path = method === 'POST' ? collectionPath(kinds.lease, namespace) : objectPath(kinds.lease, namespace, name);
    await rest.request(method, path, { body: { ...lease, spec }, timeoutMs: RENEW_DEADLINE_MS / 2 });
  }

  async #pause(durationMs: number): Promise<void> {
    await delay(durationMs, undefined, { signal: this.#options.signal }).catch(() => {});
  }
}

/**
 * Writes of several operators, as the proxies in front of them see them (`FailingApi`), each with the holder of the
 * Lease at its begin and at its end. One process has all the proxies, so the order is that in which things happened.
 */

export interface Write {
  readonly by: string;
  readonly method: string;
  readonly path: string;
  /** Holder of the Lease when the request came. */
  readonly from: string;
  /** Holder when it was answered or given up; undefined until then. */
  to?: string;
}

export class AccessLog {
  /** All but those of the Lease. */
  readonly writes: Write[] = [];
  /** By the last write of the Lease that the API server has accepted. */
  holder = '';
  /** Its resource version. Two proxies may get answers in another order than that of the writes. */
  #version = 0n;

  /** A request of the operator with the identity `by` has come; the result is called at its end. */
  begin(by: string, method: string, path: string): () => void {
    if (method === 'GET' || isLease(path)) return () => {};
    const write: Write = { by, method, path, from: this.holder };
    this.writes.push(write);
    return () => {
      write.to = this.holder;
    };
  }

  /** The API server has accepted a request, and says so with this body. */
  accepted(method: string, path: string, body: Buffer): void {
    if (method === 'GET' || !isLease(path)) return;
    const { metadata, spec } = JSON.parse(body.toString());
    const version = BigInt(metadata.resourceVersion);
    if (version < this.#version) return;
    this.#version = version;
    this.holder = spec.holderIdentity;
  }

  /** Writes that began before their operator had the Lease, or after, or ended when another one had it. */
  get withoutLead(): Write[] {
    return this.writes.filter(({ by, from, to = by }) => from !== by || to !== by);
  }
}

function isLease(path: string): boolean {
  return path.includes('/leases');
}

/** The ends of running renders, earliest first. Typed arrays: a day has millions of them. */
const NEVER = Number.POSITIVE_INFINITY;

export class EndHeap {
  #ends = new Float64Array(64);
  #servers = new Int32Array(64);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The earliest end, or infinity. */
  get next(): number {
    return this.#size > 0 ? (this.#ends[0] as number) : NEVER;
  }

  push(end: number, server: number): void {
    if (this.#size === this.#ends.length) this.#grow();
    let index = this.#size;
    this.#size += 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if ((this.#ends[parent] as number) <= end) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#ends[index] = end;
    this.#servers[index] = server;
  }

  /** Takes the earliest and returns its server. */
  pop(): number {
    const server = this.#servers[0] as number;
    this.#size -= 1;
    const end = this.#ends[this.#size] as number;
    const last = this.#servers[this.#size] as number;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && (this.#ends[child + 1] as number) < (this.#ends[child] as number)) child += 1;
      if ((this.#ends[child] as number) >= end) break;
      this.#move(child, index);
      index = child;
    }
    this.#ends[index] = end;
    this.#servers[index] = last;
    return server;
  }

  #move(from: number, to: number): void {
    this.#ends[to] = this.#ends[from] as number;
    this.#servers[to] = this.#servers[from] as number;
  }

  #grow(): void {
    const ends = new Float64Array(2 * this.#ends.length);
    const servers = new Int32Array(2 * this.#servers.length);
    ends.set(this.#ends);
    servers.set(this.#servers);
    this.#ends = ends;
    this.#servers = servers;
  }
}

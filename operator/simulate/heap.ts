/** What comes of running renders, earliest first. Times in a typed array: a day has millions of them. */
const NEVER = Number.POSITIVE_INFINITY;

export class EndHeap<Item> {
  #ends = new Float64Array(64);
  readonly #items: Item[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The earliest end, or infinity. */
  get next(): number {
    return this.#size > 0 ? (this.#ends[0] as number) : NEVER;
  }

  push(end: number, item: Item): void {
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
    this.#items[index] = item;
  }

  /** Takes the earliest and returns what it belongs to. */
  pop(): Item {
    const item = this.#items[0] as Item;
    this.#size -= 1;
    const end = this.#ends[this.#size] as number;
    const last = this.#items.pop() as Item;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && (this.#ends[child + 1] as number) < (this.#ends[child] as number)) child += 1;
      if ((this.#ends[child] as number) >= end) break;
      this.#move(child, index);
      index = child;
    }
    if (this.#size > 0) {
      this.#ends[index] = end;
      this.#items[index] = last;
    }
    return item;
  }

  #move(from: number, to: number): void {
    this.#ends[to] = this.#ends[from] as number;
    this.#items[to] = this.#items[from] as Item;
  }

  #grow(): void {
    const ends = new Float64Array(2 * this.#ends.length);
    ends.set(this.#ends);
    this.#ends = ends;
  }
}

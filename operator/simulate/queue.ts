/** A ring of the arrival times of those who wait. */
export class Queue {
  #times = new Float64Array(1024);
  #head = 0;
  length = 0;

  push(time: number): void {
    if (this.length === this.#times.length) this.#grow();
    this.#times[(this.#head + this.length) & (this.#times.length - 1)] = time;
    this.length += 1;
  }

  shift(): number {
    const time = this.#times[this.#head] as number;
    this.#head = (this.#head + 1) & (this.#times.length - 1);
    this.length -= 1;
    return time;
  }

  #grow(): void {
    const times = new Float64Array(2 * this.#times.length);
    for (let index = 0; index < this.length; index += 1) {
      times[index] = this.#times[(this.#head + index) & (this.#times.length - 1)] as number;
    }
    this.#times = times;
    this.#head = 0;
  }
}

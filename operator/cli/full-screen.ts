/** The whole terminal, drawn line by line: only what has changed is written, so nothing flickers. */

const ESCAPE = '\u001b';
/** The other screen, no cursor, no line that is broken at the edge; and back. */
const OPEN = `${ESCAPE}[?1049h${ESCAPE}[?25l${ESCAPE}[?7l`;
const CLOSE = `${ESCAPE}[?7h${ESCAPE}[?25h${ESCAPE}[?1049l`;
const TO_END_OF_LINE = `${ESCAPE}[K`;
const TO_END_OF_SCREEN = `${ESCAPE}[J`;

export class FullScreen {
  readonly #stream: NodeJS.WriteStream;
  readonly #onResize: () => void;
  /** What each line has. */
  #drawn: string[] = [];
  #isOpen = false;
  readonly #restore = () => this.close();

  /** @param onResize called when the terminal has another size: all is to be drawn anew */
  constructor(stream: NodeJS.WriteStream, onResize: () => void) {
    this.#stream = stream;
    this.#onResize = () => {
      this.#drawn = [];
      this.#stream.write(`${ESCAPE}[H${TO_END_OF_SCREEN}`);
      onResize();
    };
  }

  get size(): { width: number; height: number } {
    const { columns = 80, rows = 24 } = this.#stream;
    return { width: Math.max(1, columns), height: Math.max(1, rows) };
  }

  open(): void {
    this.#isOpen = true;
    // However this process ends, but for a kill -9: nobody wants a terminal without cursor.
    process.once('exit', this.#restore);
    this.#stream.write(OPEN);
    this.#stream.on('resize', this.#onResize);
  }

  /** Lines that fit; each may have colours and must end them. */
  draw(lines: string[]): void {
    if (!this.#isOpen) return;
    const changes = lines.flatMap((line, index) =>
      line === this.#drawn[index] ? [] : [`${ESCAPE}[${index + 1};1H${line}${TO_END_OF_LINE}`],
    );
    const isShorter = lines.length < this.#drawn.length;
    if (isShorter) changes.push(`${ESCAPE}[${lines.length + 1};1H${TO_END_OF_SCREEN}`);
    this.#drawn = lines;
    if (changes.length > 0) this.#stream.write(changes.join(''));
  }

  /** Gives the terminal back as it was. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.off('exit', this.#restore);
    this.#stream.off('resize', this.#onResize);
    this.#stream.write(CLOSE);
  }
}

/** Lines that scroll, and below them a table that is drawn anew; without a terminal only the lines. */

const ESCAPE = '\u001b';
const RESET = `${ESCAPE}[0m`;
/** Lines above the table that stay in sight. */
const LINES_LEFT = 4;
/** Lines are collected for so long: a program may log a thousand a second, and each would draw the table anew. */
const DRAW_EVERY_MS = 30;

export class Screen {
  readonly isTerminal: boolean;
  readonly #stream: NodeJS.WriteStream;
  #footer: string[] = [];
  #lines: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Lines of the table that are on the screen. */
  #drawn = 0;
  #isClosed = false;

  constructor(stream: NodeJS.WriteStream = process.stdout) {
    this.#stream = stream;
    this.isTerminal = stream.isTTY === true;
    if (this.isTerminal) stream.on('resize', () => this.#drawSoon());
  }

  /** Prints a line, above the table. */
  line(text: string): void {
    const shown = harmless(text);
    if (!this.isTerminal || this.#isClosed) {
      this.#stream.write(`${shown}\n`);
      return;
    }
    this.#lines.push(shown);
    this.#drawSoon();
  }

  /** Puts another table in place of the one below. */
  footer(lines: string[]): void {
    if (this.#isClosed) return;
    this.#footer = lines.map(harmless);
    if (this.isTerminal) this.#drawSoon();
  }

  /** Takes the table away for good; lines may still come. */
  close(): void {
    this.footer([]);
    clearTimeout(this.#timer);
    if (this.isTerminal) this.#draw();
    this.#isClosed = true;
  }

  #drawSoon(): void {
    this.#timer ??= setTimeout(() => this.#draw(), DRAW_EVERY_MS);
  }

  #draw(): void {
    this.#timer = undefined;
    const { rows = 24, columns = 80 } = this.#stream;
    const footer = this.#footer.slice(0, Math.max(0, rows - LINES_LEFT)).map((line) => clipped(line, columns - 1));
    const erase = this.#drawn > 0 ? `${ESCAPE}[${this.#drawn}A` : '';
    const lines = [...this.#lines, ...footer].map((line) => `${line}\n`);
    this.#lines = [];
    this.#drawn = footer.length;
    this.#stream.write(`${erase}\r${ESCAPE}[J${lines.join('')}`);
  }
}

/**
 * Without what moves the cursor or turns the direction of writing; colours stay, and end with the text. A program may
 * log what a stranger has sent it, and names of files and fields are those of whoever has made them.
 */
export function harmless(text: string): string {
  const moving = new RegExp(`${ESCAPE}(?!\\[[0-9;]*m)(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\\u0007]*\\u0007?|.)?`, 'g');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is about
  const acting = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
  const left = text.replace(moving, '').replace(acting, '');
  return left.includes(ESCAPE) && !left.endsWith(RESET) ? `${left}${RESET}` : left;
}

/** At most so many characters; one that is too long loses its colours as well. */
function clipped(text: string, width: number): string {
  const plain = text.replace(new RegExp(`${ESCAPE}\\[[0-9;]*m`, 'g'), '');
  return plain.length <= width ? text : `${plain.slice(0, width - 1)}…`;
}

export function bold(text: string): string {
  return `${ESCAPE}[1m${text}${ESCAPE}[0m`;
}

export function dim(text: string): string {
  return `${ESCAPE}[2m${text}${ESCAPE}[0m`;
}

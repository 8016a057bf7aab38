/** Selectors of Calico, which are texts: `app == 'shop' && tier in { 'web', 'api' } && !has(internal)`. */

type Labels = Record<string, string>;
type Test = (labels: Labels) => boolean;

const TOKEN = /\s*(&&|\|\||[=!]=|[!(){},]|'[^']*'|"[^"]*"|[\w./-]+)/y;
/** More is no selector that somebody has written. */
const LENGTH_MAX = 4_096;
/** Brackets in brackets. */
const DEPTH_MAX = 32;
/** Labels of namespaces and accounts, which a pod does not have itself. */
const NOT_OF_PODS = /^(pcns|pcsa)\.|^projectcalico\.org\//;

/**
 * What a selector takes, as a function of labels.
 * @returns undefined for what is none, and for one about more than labels of pods
 */
export function calicoSelector(text: string): Test | undefined {
  if (text.length > LENGTH_MAX) return undefined;
  try {
    const parser = new Parser(tokensOf(text));
    return parser.whole();
  } catch (error) {
    if (error instanceof UnknownError) return undefined;
    throw error;
  }
}

/** Something that is not understood. */
class UnknownError extends Error {}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  const pattern = new RegExp(TOKEN);
  const end = text.trimEnd().length;
  while (pattern.lastIndex < end) {
    const [, token] = pattern.exec(text) ?? [];
    if (token === undefined) throw new UnknownError();
    tokens.push(token);
  }
  return tokens;
}

/** `||` binds less than `&&`, and that less than `!`. */
class Parser {
  readonly #tokens: string[];
  #at = 0;
  #depth = 0;

  constructor(tokens: string[]) {
    this.#tokens = tokens;
  }

  whole(): Test {
    if (this.#tokens.length === 0) return () => true;
    const test = this.#either();
    if (this.#at < this.#tokens.length) throw new UnknownError();
    return test;
  }

  #either(): Test {
    const tests = [this.#both()];
    while (this.#takes('||')) tests.push(this.#both());
    return (labels) => tests.some((test) => test(labels));
  }

  #both(): Test {
    const tests = [this.#one()];
    while (this.#takes('&&')) tests.push(this.#one());
    return (labels) => tests.every((test) => test(labels));
  }

  #one(): Test {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw new UnknownError();
    const test = this.#inner();
    this.#depth -= 1;
    return test;
  }

  #inner(): Test {
    if (this.#takes('!')) {
      const test = this.#one();
      return (labels) => !test(labels);
    }
    if (this.#takes('(')) {
      const test = this.#either();
      this.#demand(')');
      return test;
    }
    const word = this.#next();
    if (!this.#takes('(')) return this.#comparison(keyOf(word));
    if (word === 'has') {
      const key = keyOf(this.#next());
      this.#demand(')');
      return (labels) => labels[key] !== undefined;
    }
    this.#demand(')');
    // global() means namespaces, of which a policy for all has none.
    if (word !== 'all') throw new UnknownError();
    return () => true;
  }

  #comparison(key: string): Test {
    const operator = this.#next();
    if (operator === 'not') {
      this.#demand('in');
      const values = this.#values();
      return (labels) => !values.includes(labels[key] ?? '') || labels[key] === undefined;
    }
    if (operator === 'in') {
      const values = this.#values();
      return (labels) => labels[key] !== undefined && values.includes(labels[key]);
    }
    const word = operator === 'starts' || operator === 'ends' ? `${operator} ${this.#next()}` : operator;
    const value = textOf(this.#next());
    const holds = Object.hasOwn(COMPARISONS, word) ? COMPARISONS[word] : undefined;
    if (holds === undefined) throw new UnknownError();
    return (labels) => holds(labels[key], value);
  }

  #values(): string[] {
    this.#demand('{');
    const values: string[] = [];
    while (!this.#takes('}')) {
      values.push(textOf(this.#next()));
      this.#takes(',');
    }
    return values;
  }

  #takes(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }

  #next(): string {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new UnknownError();
    this.#at += 1;
    return token;
  }

  #demand(token: string): void {
    if (!this.#takes(token)) throw new UnknownError();
  }
}

/** A label that is not there is unequal to everything. */
const COMPARISONS: Record<string, (label: string | undefined, value: string) => boolean> = {
  '==': (label, value) => label === value,
  '!=': (label, value) => label !== value,
  contains: (label, value) => label?.includes(value) ?? false,
  'starts with': (label, value) => label?.startsWith(value) ?? false,
  'ends with': (label, value) => label?.endsWith(value) ?? false,
};

function keyOf(token: string): string {
  if (!/^[\w./-]+$/.test(token) || NOT_OF_PODS.test(token)) throw new UnknownError();
  return token;
}

function textOf(token: string): string {
  if (!/^['"]/.test(token)) throw new UnknownError();
  return token.slice(1, -1);
}

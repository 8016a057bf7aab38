/**
 * Prometheus' text format, as far as HAProxy's exporter and the worker runtime write it. Pages come from pods, whose
 * authors may be anybody: reading one takes time in proportion to its length, whatever it says.
 */

const NAME = /[a-zA-Z_:][\w:]*/y;
const LABEL_NAME = /^\w+$/;
/** HAProxy's have some 150 characters. */
const LINE_LENGTH_MAX = 1_024;
/** Whoever asks for some of the lines of a name more often than so has all of them read, once. */
const SEARCHES_MAX = 3;

const BRACE = '{'.charCodeAt(0);
const HASH = '#'.charCodeAt(0);

export type Labels = Record<string, string>;

export interface Sample {
  labels: Labels;
  value: number;
}

/** What a page has of one name. */
interface Lines {
  /** Where lines that follow each other begin and end. */
  ranges: { begin: number; end: number }[];
  searches: number;
  samples?: Sample[];
}

/**
 * The samples of one page. Of the 500 lines of a pod some 30 are wanted, and to read one takes ten times as long as to
 * see that it is not.
 */
export class Exposition {
  readonly #text: string;
  readonly #lines = new Map<string, Lines>();

  /** Lines that are no samples are passed over: comments, and what a later version may add. */
  constructor(text: string) {
    this.#text = text;
    let name = '';
    let range: Lines['ranges'][number] | undefined;
    for (let begin = 0, end = 0; begin < text.length; begin = end + 1) {
      end = text.indexOf('\n', begin);
      if (end < 0) end = text.length;
      if (end - begin > LINE_LENGTH_MAX || end === begin) {
        range = undefined;
        continue;
      }
      // Mostly it is one more of the name of the line before. (`startsWith` takes twice as long.)
      const after = begin + name.length;
      if (range && text.charCodeAt(after) === BRACE && text.slice(begin, after) === name) {
        range.end = end;
        continue;
      }
      NAME.lastIndex = begin;
      name = text.charCodeAt(begin) === HASH ? '' : (NAME.exec(text)?.[0] ?? '');
      range = name === '' ? undefined : this.#rangeOf(name, begin, end);
    }
  }

  #rangeOf(name: string, begin: number, end: number): Lines['ranges'][number] {
    const range = { begin, end };
    const known = this.#lines.get(name);
    if (known) known.ranges.push(range);
    else this.#lines.set(name, { ranges: [range], searches: 0 });
    return range;
  }

  /** Samples of that name which have at least these labels. */
  all(name: string, labels: Labels = {}): Sample[] {
    const lines = this.#lines.get(name);
    if (!lines) return [];
    const wanted = Object.entries(labels);
    lines.searches += 1;
    if (wanted.length === 0 || lines.searches > SEARCHES_MAX) lines.samples ??= this.#read(name, lines, []);
    const samples = lines.samples ?? this.#read(name, lines, wanted);
    return samples.filter((sample) => wanted.every(([key, value]) => sample.labels[key] === value));
  }

  /** Sum of their values; 0 when there is none. */
  sum(name: string, labels: Labels = {}): number {
    return this.all(name, labels).reduce((total, { value }) => total + value, 0);
  }

  /** Samples of these lines, without most of those that do not have these labels. */
  #read(name: string, { ranges }: Lines, wanted: [key: string, value: string][]): Sample[] {
    const texts = wanted.map(([key, value]) => `${key}="${value}"`);
    return ranges.flatMap(({ begin, end }) =>
      linesWith(this.#text.slice(begin, end), texts).flatMap((line) => readLine(line, name.length) ?? []),
    );
  }
}

/** Lines of a text that have all of these in them. */
function linesWith(text: string, [first, ...others]: string[]): string[] {
  if (first === undefined) return text.split('\n');
  const found: string[] = [];
  for (let at = text.indexOf(first); at >= 0; ) {
    const next = text.indexOf('\n', at);
    const end = next < 0 ? text.length : next;
    const line = text.slice(text.lastIndexOf('\n', at) + 1, end);
    if (others.every((other) => line.includes(other))) found.push(line);
    at = text.indexOf(first, end);
  }
  return found;
}

/** A line such as `name{label="value"} 1`; undefined for another one. */
function readLine(line: string, nameLength: number): Sample | undefined {
  const hasLabels = line.charCodeAt(nameLength) === BRACE;
  const close = hasLabels ? line.indexOf('}', nameLength) : nameLength - 1;
  const value = line.slice(close + 2);
  if (close < nameLength - 1 || line[close + 1] !== ' ' || value === '' || value.includes(' ')) return undefined;
  return { labels: hasLabels ? readLabels(line.slice(nameLength + 1, close)) : {}, value: Number(value) };
}

/** As far as they can be read. */
function readLabels(text: string): Labels {
  const labels: Labels = {};
  for (let at = 0; at < text.length; ) {
    const equals = text.indexOf('="', at);
    const close = equals < 0 ? -1 : text.indexOf('"', equals + 2);
    const name = text.slice(at, equals);
    if (close < 0 || !LABEL_NAME.test(name) || (close + 1 < text.length && text[close + 1] !== ',')) break;
    labels[name] = text.slice(equals + 2, close);
    at = close + 2;
  }
  return labels;
}

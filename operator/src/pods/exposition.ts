/**
 * Prometheus' text format, as far as HAProxy's exporter and the worker runtime write it. Pages come from pods, whose
 * authors may be anybody: reading one takes time in proportion to its length, whatever it says.
 */

/**
 * A line such as `name{label="value"} 1`. No part can begin with what ends the part before it, so nothing is looked at
 * twice.
 */
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})? ([^ ]+)$/;
const LABEL = /(\w+)="([^"]*)"(?:,|$)/y;
/** HAProxy's have some 150 characters. */
const LINE_LENGTH_MAX = 1_024;

export type Labels = Record<string, string>;

export interface Sample {
  labels: Labels;
  value: number;
}

/** The samples of one page. */
export class Exposition {
  readonly #samples = new Map<string, Sample[]>();

  /** Lines that are no samples are passed over: comments, and what a later version may add. */
  constructor(text: string) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = (line.length <= LINE_LENGTH_MAX && LINE.exec(line)) || [];
      if (name === undefined) continue;
      const sample = { labels: readLabels(labels), value: Number(value) };
      const others = this.#samples.get(name);
      if (others) others.push(sample);
      else this.#samples.set(name, [sample]);
    }
  }

  /** Samples of that name which have at least these labels. */
  all(name: string, labels: Labels = {}): Sample[] {
    const wanted = Object.entries(labels);
    return (this.#samples.get(name) ?? []).filter((sample) =>
      wanted.every(([key, value]) => sample.labels[key] === value),
    );
  }

  /** Sum of their values; 0 when there is none. */
  sum(name: string, labels: Labels = {}): number {
    return this.all(name, labels).reduce((total, { value }) => total + value, 0);
  }
}

/** As far as they can be read. */
function readLabels(text: string): Labels {
  const labels: Labels = {};
  LABEL.lastIndex = 0;
  for (let match = LABEL.exec(text); match; match = LABEL.exec(text)) labels[match[1] as string] = match[2] as string;
  return labels;
}

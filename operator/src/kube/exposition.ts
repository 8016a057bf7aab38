/** Prometheus' text format, as far as HAProxy's exporter and the worker runtime write it. */

/** A line such as `name{label="value"} 1`. */
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})? ([^ ]+)$/;
const LABEL = /(\w+)="([^"]*)"/g;

export type Labels = Record<string, string>;

/** The samples of one page. */
export class Exposition {
  readonly #samples: { name: string; labels: Labels; value: number }[];

  /** Lines that are no samples are passed over: comments, and what a later version may add. */
  constructor(text: string) {
    this.#samples = text.split('\n').flatMap((line) => {
      const [, name, labels = '', value] = LINE.exec(line) ?? [];
      if (name === undefined) return [];
      const pairs = [...labels.matchAll(LABEL)].map(([, key, labelValue]) => [key, labelValue]);
      return [{ name, labels: Object.fromEntries(pairs) as Labels, value: Number(value) }];
    });
  }

  /** Samples of that name which have at least these labels. */
  all(name: string, labels: Labels = {}): { labels: Labels; value: number }[] {
    const wanted = Object.entries(labels);
    return this.#samples.filter(
      (sample) => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value),
    );
  }

  /** Sum of their values; 0 when there is none. */
  sum(name: string, labels: Labels = {}): number {
    return this.all(name, labels).reduce((total, { value }) => total + value, 0);
  }
}

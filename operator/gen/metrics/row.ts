/** A metric as docs/metrics.md lists it; a test holds the pages of a real pod against the rows. */
export interface MetricRow {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
  /** Only on a page with `?detail=1`. */
  detail?: boolean;
  /** For people, in Markdown. */
  meaning: string;
}

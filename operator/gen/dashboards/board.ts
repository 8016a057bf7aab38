/** What a dashboard is, before it is Grafana's JSON: rows of panels, each with its queries. */

/** As Grafana names them. */
type Unit = 's' | 'reqps' | 'percentunit' | 'bytes' | 'short' | 'dateTimeFromNow';

/** A query and what its series are called: `{{label}}` in it is the label's value. */
export interface Query {
  expr: string;
  legend: string;
  /** In a table: of this column, where it is another one than the panel's. */
  unit?: Unit;
}

interface Common {
  title: string;
  /** What it tells, and what that rules out; the "i" of the panel. */
  says: string;
  /** Of the 24 columns. */
  width: number;
  unit: Unit;
  queries: Query[];
  /** With no more than this at its upper edge: shares end at 1. */
  max?: number;
  /** Shown in place of a value that is not there. */
  none?: string;
}

interface Lines extends Common {
  kind: 'lines';
  /** On top of each other: parts of a whole. */
  stacked?: boolean;
}

interface Figure extends Common {
  kind: 'figure';
}

interface Table extends Common {
  kind: 'table';
  /** Labels that are columns, in their order; the queries' values follow. */
  labels: string[];
  /** Where a click on a row leads, with Grafana's `__data.fields.LABEL` for what is in it. */
  link?: { title: string; url: string };
}

interface Words {
  kind: 'words';
  title: string;
  width: number;
  height: number;
  /** In Markdown. */
  text: string;
}

export type QueriedPanel = Lines | Figure | Table;
export type Panel = QueriedPanel | Words;

/** What a row rules out stands in its title. */
export interface Row {
  title?: string;
  panels: Panel[];
}

/** A choice at the head of the dashboard, by a query of labels. */
export interface Variable {
  name: string;
  label: string;
  query: string;
  /** Several, or all of them. */
  several?: boolean;
}

/** Marks on the time axis of all panels. */
export interface Annotation {
  name: string;
  color: string;
  expr: string;
  title: string;
  /** Labels that are shown with it. */
  tags: string;
}

export interface Dashboard {
  /** Stays as it is: it is in people's bookmarks. */
  uid: string;
  title: string;
  description: string;
  variables: Variable[];
  annotations: Annotation[];
  rows: Row[];
}

type Rest<P extends QueriedPanel> = Omit<P, 'kind' | 'title' | 'says' | 'queries' | 'unit' | 'width'> & {
  width?: number;
};

/** Values over time; a third of the width unless told. */
export function lines(title: string, says: string, unit: Unit, queries: Query[], rest: Rest<Lines> = {}): Lines {
  return { kind: 'lines', title, says, unit, queries, width: 8, ...rest };
}

/** The value of now; a sixth of the width unless told. */
export function figure(title: string, says: string, unit: Unit, queries: Query[], rest: Rest<Figure> = {}): Figure {
  return { kind: 'figure', title, says, unit, queries, width: 4, ...rest };
}

/** Values of now, a line for each set of labels. */
export function table(title: string, says: string, unit: Unit, queries: Query[], rest: Rest<Table>): Table {
  return { kind: 'table', title, says, unit, queries, width: 12, ...rest };
}

/** What Grafana takes for the range of a rate: at least four scrapes. */
export const RANGE = '[$__rate_interval]';

/** A quantile of a histogram of the pods. */
export function quantile(q: number, histogram: string, chosen: string, by: string[] = []): string {
  return `histogram_quantile(${q}, sum by (${['le', ...by].join(', ')}) (rate(${histogram}_bucket{${chosen}}${RANGE})))`;
}

/** What is added in a second, in all or by labels. */
export function rate(counter: string, chosen: string, by: string[] = []): string {
  return `sum${by.length > 0 ? ` by (${by.join(', ')})` : ''} (rate(${counter}{${chosen}}${RANGE}))`;
}

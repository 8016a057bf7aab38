/** What a scenario of `make bench-edge` is, and what it gives. */

/** A figure, a word, or nothing where it was not measured. */
export type Value = number | string | null;

/** One line of a scenario's table. */
export interface Row {
  system: string;
  values: { [column: string]: Value };
}

/** What the last line and the table of goals have. */
export interface Figures {
  slots_per_page?: number;
  first_byte_ms_added?: number;
  /** Requests per second over Express's, on the same core. */
  cached_x?: number;
  herd_renders?: number;
  fleet_herd_renders?: number;
  cache_tests_required?: number;
  /** p99 of pages under ten times as many files, over that under one. */
  html_p99_ratio?: number;
  /** p99 of people at three times the load, over that of the same people alone. */
  people_p99_ratio?: number;
  browsers_with_json?: number;
  idle_open?: number;
  idle_kb?: number;
}

export interface Result {
  rows: Row[];
  figures: Figures;
  /** Requests to Corelane that failed although none may, and promises in whole numbers that it did not keep. */
  failed: number;
  /** Fields that this version does not have: what is told is measured without them. */
  missing?: string[];
  /** Why there is nothing, where the scenario itself has failed; that counts as one that failed. */
  broken?: string;
}

export interface Column {
  key: string;
  head: string;
  /** Digits behind the point, 0 unless given. */
  digits?: number;
}

export interface Scenario {
  key: string;
  title: string;
  /** What is done, for the reader of the report. */
  text: string;
  columns: Column[];
  /** The column that is drawn. */
  drawn: string;
  /** About how long it takes. */
  seconds: number;
  /** Whether it needs the Next app, which is built before anything is measured. */
  wantsNext?: boolean;
  run(): Promise<Result>;
}

/** A scenario's part of the report. */
export type Section = Pick<Scenario, 'key' | 'title' | 'text' | 'columns' | 'drawn'> & Result;

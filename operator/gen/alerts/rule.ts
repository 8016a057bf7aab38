/** What a rule of Prometheus is: one alert, or one recorded series. */

export type Severity = 'critical' | 'warning';

/** An alert; its name without `Corelane` is a page of docs/runbooks. */
export interface Alert {
  name: `Corelane${string}`;
  expr: string;
  /** How long it must hold before somebody is told; none: at once. */
  for?: string;
  /** critical wakes somebody: visitors suffer now, or nobody takes care any more. */
  severity: Severity;
  /** Beside severity; they tell apart alerts of one name. */
  labels?: Record<string, string>;
  /** One line for a pager: of what, and how bad. */
  summary: string;
  /** What that means, with figures, in templates of Prometheus. */
  description: string;
}

/** A recorded series, so that fleet queries and long windows read few series. */
export interface Recording {
  record: string;
  expr: string;
}

export interface Group<Rule> {
  name: string;
  rules: Rule[];
}

/** Labels by which all about one RenderService is joined; the operator's series and the pods' targets have them. */
export const SERVICE = 'namespace, renderservice';

/** How alerts name the RenderService that they are about. */
export const OF_SERVICE = '{{ $labels.namespace }}/{{ $labels.renderservice }}';

/** An expression of several lines, without the indentation that it has in the source. */
export function promql(strings: TemplateStringsArray, ...values: string[]): string {
  const text = String.raw({ raw: strings }, ...values).replace(/^\n+|\s+$/g, '');
  const lines = text.split('\n');
  const depth = Math.min(...lines.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  return lines.map((line) => line.slice(depth)).join('\n');
}

/** All queries of a dashboard, as Grafana would ask them, and what Prometheus answers. */

import type { Prometheus, Series } from '../alerts/fleet/prometheus.ts';
import { squeezedText } from '../alerts/fleet/squeeze.ts';

/** Of Grafana's JSON what is asked or drawn. */
export interface Panel {
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig?: {
    defaults: { unit?: string; max?: number; custom?: { stacking?: { mode: string } } };
    overrides: { matcher: { options: string }; properties: { id: string; value: unknown }[] }[];
  };
  options?: { content?: string };
  transformations?: { options: { indexByName?: Record<string, number> } }[];
  targets?: { expr: string; legendFormat: string; instant: boolean }[];
}

export interface Board {
  uid: string;
  title: string;
  templating: { list: { name: string; type: string; definition?: string }[] };
  annotations: { list: { name: string; expr: string }[] };
  panels: Panel[];
}

/** Something that is asked: of a panel, an annotation or a variable. */
export interface Question {
  uid: string;
  what: 'panel' | 'annotation' | 'variable';
  title: string;
  /** What its series are called, or its number. */
  legend: string;
  text: string;
  /** Of now only: a figure, or a table. */
  isOfNow: boolean;
}

export const nameOf = ({ uid, title, legend }: Question) => `${uid}: ${title}: ${legend}`;

/** All that a dashboard asks. */
export function questionsOf({ uid, panels, annotations, templating }: Board): Question[] {
  return [
    ...templating.list
      .filter(({ type }) => type === 'query')
      .map(({ name, definition = '' }) => variable(uid, name, definition)),
    ...annotations.list.map(({ name, expr }) => ({
      ...{ uid, what: 'annotation' as const, title: name, legend: 'annotation', text: expr, isOfNow: true },
    })),
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, legendFormat, instant }) => ({
        ...{ uid, what: 'panel' as const, title, legend: legendFormat, text: expr, isOfNow: instant },
      })),
    ),
  ];
}

const variable = (uid: string, name: string, text: string): Question => ({
  ...{ uid, what: 'variable', title: name, legend: 'variable', text, isOfNow: true },
});

/** What Grafana would put in the place of its names; hours are as short as those of the rules. */
export function asked(text: string, chosen: Record<string, string>, times: number): string {
  const own = squeezedText(text, times);
  return own.replaceAll(/\$(\w+)/g, (all, name) => chosen[name] ?? all);
}

export interface Answer {
  question: Question;
  /** Of a variable: its values, as series without points. */
  series: Series[];
  /** Why there is none. */
  error?: string;
}

/** Asks Prometheus: what a panel shows of the time from one moment to another, and what could be chosen. */
export async function answer(
  prometheus: Prometheus,
  question: Question,
  text: string,
  [fromS, toS]: [number, number],
): Promise<Answer> {
  try {
    if (question.what !== 'variable') return { question, series: await prometheus.range(text, fromS, toS) };
    const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(text) ?? [];
    const values = await prometheus.labelValues(label, selector);
    return { question, series: values.map((value) => ({ labels: { [label]: value }, points: [] })) };
  } catch (error) {
    return { question, series: [], error: (error as Error).message };
  }
}

/** Fewer values than that are no line. */
const POINTS_MIN = 2;

/** Whether somebody would see something. */
function hasData({ question, series }: Answer): boolean {
  if (question.what === 'variable') return series.length > 0;
  return series.some(({ points }) => points.length >= (question.isOfNow ? 1 : POINTS_MIN));
}

/** What is wrong with an answer, or undefined; `mustBeEmpty` says why there is none where there must be none. */
export function faultOf(given: Answer, mustBeEmpty: string | undefined): 'failed' | 'empty' | 'unexpected' | undefined {
  if (given.error !== undefined) return 'failed';
  if (mustBeEmpty !== undefined) return hasData(given) ? 'unexpected' : undefined;
  return hasData(given) ? undefined : 'empty';
}

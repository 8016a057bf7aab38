/** Dashboards as pictures: what Prometheus has answered, drawn about as Grafana would place it. */
import { type BoardChart, board, type Tile, type TileLine } from '../../operator/plots/board.ts';
import type { Mark } from './day.ts';
import type { Answer, Board, Panel } from './queries.ts';

/** A value with its unit, short enough for an axis; bytes as Mi, so that the lines of the grid are round. */
function written(unit: string, value: number): string {
  const digits = (number: number) =>
    Math.abs(number) >= 100 ? number.toFixed(0) : String(Number(number.toPrecision(2)));
  if (unit === 's') return value !== 0 && Math.abs(value) < 1 ? `${digits(value * 1000)} ms` : `${digits(value)} s`;
  if (unit === 'percentunit') return `${digits(value * 100)} %`;
  if (unit === 'reqps') return `${digits(value)}/s`;
  if (unit === 'bytes') return `${digits(value)} Mi`;
  return digits(value);
}

type Labels = Record<string, string>;
/** What stands for a name in its braces. */
const called = (legend: string, labels: Labels) =>
  legend.replaceAll(/\{\{(\w+)\}\}/g, (_all, label) => labels[label] ?? '').trim();
const unitOf = ({ fieldConfig }: Panel) => fieldConfig?.defaults.unit ?? 'short';

function linesOf(answers: Answer[], unit: string): TileLine[] {
  const divisor = unit === 'bytes' ? 2 ** 20 : 1;
  return answers.flatMap(({ question, series }) =>
    series
      .filter(({ points }) => points.length > 0)
      .map(({ labels, points }) => ({
        name: called(question.legend, labels),
        points: points.map(([atS, value]): [number, number] => [atS, value / divisor]),
      })),
  );
}

/** When a table or figure is looked at: the end, or the last moment at which there was something to see. */
function lookedAt(answers: Answer[]): number {
  return Math.max(...answers.flatMap(({ series }) => series.map(({ points }) => points.at(-1)?.[0] ?? 0)));
}

function figure(panel: Panel, answers: Answer[]): Pick<Extract<Tile, { kind: 'figure' }>, 'kind' | 'values'> {
  const values = linesOf(answers, unitOf(panel)).map(({ name, points }) => ({
    name,
    value: written(unitOf(panel), points.at(-1)?.[1] ?? Number.NaN),
  }));
  return { kind: 'figure', values };
}

/** The queries' answers side by side, by their labels. */
function table(
  panel: Panel,
  answers: Answer[],
  toS: number,
): Pick<Extract<Tile, { kind: 'table' }>, 'kind' | 'columns' | 'rows'> {
  const atS = lookedAt(answers);
  const rows = new Map<string, { labels: Labels; values: string[] }>();
  for (const [column, { question, series }] of answers.entries()) {
    const own = panel.fieldConfig?.overrides.find(({ matcher }) => matcher.options === question.legend);
    const unit = String(own?.properties.find(({ id }) => id === 'unit')?.value ?? unitOf(panel));
    for (const { labels, points } of series) {
      const value = points.find(([time]) => time === atS)?.[1];
      if (value === undefined) continue;
      const { __name__: _name, ...shown } = labels;
      const row = rows.get(JSON.stringify(shown)) ?? { labels: shown, values: [] };
      row.values[column] =
        unit === 'dateTimeFromNow' ? `${Math.round(toS - value / 1000)} s ago` : written(unit, value);
      rows.set(JSON.stringify(shown), row);
    }
  }
  const all = [...rows.values()];
  const places = panel.transformations?.map(({ options }) => options.indexByName).find(Boolean) ?? {};
  const labels = Object.keys(all[0]?.labels ?? {}).sort((a, b) => (places[a] ?? 99) - (places[b] ?? 99));
  return {
    kind: 'table',
    columns: [...labels, ...answers.map(({ question }) => question.legend)],
    rows: all.map((row) => [
      ...labels.map((label) => row.labels[label] ?? ''),
      ...answers.map((_answer, column) => row.values[column] ?? ''),
    ]),
  };
}

/** Markdown without its marks. */
function wordsOf(content = ''): string[] {
  return content
    .split('\n')
    .filter((line) => line !== '' && !/^\|[-|]+$/.test(line))
    .map((line) =>
      line
        .replaceAll('*', '')
        .replace(/^\| | \|$/g, '')
        .replace(' | ', ': '),
    );
}

function tileOf(panel: Panel, answers: Answer[], toS: number): Tile {
  const place = { ...panel.gridPos, title: panel.title };
  if (panel.type === 'row') return { ...place, kind: 'heading' };
  if (panel.type === 'text') return { ...place, kind: 'words', words: wordsOf(panel.options?.content) };
  if (panel.type === 'stat') return { ...place, ...figure(panel, answers) };
  if (panel.type === 'table') return { ...place, ...table(panel, answers, toS) };
  const unit = unitOf(panel);
  const stacked = panel.fieldConfig?.defaults.custom?.stacking?.mode === 'normal';
  const none = 'nothing here: see the text';
  return {
    ...place,
    kind: 'lines',
    lines: linesOf(answers, unit),
    written: (value) => written(unit, value),
    stacked,
    none,
  };
}

/** One dashboard, as it was seen from the first mark to the end. */
export function pictureOf(
  { uid, title, panels }: Board,
  answers: Answer[],
  [fromS, toS]: [number, number],
  marks: Mark[],
): string {
  // Two panels may have one title: a figure, and the same over time.
  const ofPanel = ({ title: own, targets = [] }: Panel) =>
    targets.flatMap(({ expr, legendFormat }) => {
      const isIts = ({ question }: Answer) =>
        question.uid === uid && question.title === own && question.legend === legendFormat && question.text === expr;
      return answers.find(isIts) ?? [];
    });
  const chart: BoardChart = {
    ...{ title, fromS, toS, marks },
    tiles: panels.map((panel) => tileOf(panel, ofPanel(panel), toS)),
  };
  return board(chart);
}

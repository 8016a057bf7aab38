/** Figures that the stories measure on the way. They are printed and, on request, written down; no test asserts them. */

export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** What we aim at, as text; empty where there is no aim. */
  goal: string;
}

/** The same figures as JSON and as a Markdown page. */
export function formatFigures(figures: Figure[]): { json: string; markdown: string } {
  const rounded = figures.map((figure) => ({ ...figure, value: Number(figure.value.toPrecision(3)) }));
  const rows = rounded.map(
    ({ name, value, unit, goal }) => `| ${name} | ${value} ${unit} | ${goal && `${goal} ${unit}`} |`,
  );
  return {
    json: `${JSON.stringify(rounded, null, 2)}\n`,
    markdown: [
      '# Figures of the end-to-end run',
      '',
      'Measured by `UPDATE_BENCHMARKS=1 make e2e` on a kind cluster of three nodes that share two cores.',
      '',
      '| what | measured | goal |',
      '|---|---|---|',
      ...rows,
      '',
    ].join('\n'),
  };
}

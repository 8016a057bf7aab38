/** What the stories measure on the way. They are printed and, on request, written down; no test asserts them. */

export interface Measurement {
  name: string;
  value: number;
  unit: string;
  /** What we aim at, as text; empty where there is no aim. */
  goal: string;
}

/** The same measurements as JSON and as a Markdown page. */
export function formatMeasurements(measurements: Measurement[]): { json: string; markdown: string } {
  const rounded = measurements.map((measurement) => ({
    ...measurement,
    value: Number(measurement.value.toPrecision(3)),
  }));
  const rows = rounded.map(
    ({ name, value, unit, goal }) => `| ${name} | ${value} ${unit} | ${goal && `${goal} ${unit}`} |`,
  );
  return {
    json: `${JSON.stringify(rounded, null, 2)}\n`,
    markdown: [
      '# Measurements of the end-to-end run',
      '',
      'Measured by `UPDATE_BENCHMARKS=1 LOAD=e2e make test-load` on a kind cluster of three nodes that share two cores.',
      '',
      '| what | measured | goal |',
      '|---|---|---|',
      ...rows,
      '',
    ].join('\n'),
  };
}

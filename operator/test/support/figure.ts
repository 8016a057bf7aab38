/** Figures of the load tests: printed, and written to docs/benchmarks/load.md by `make test-load`. */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * Notes what a load test has measured.
 * @param what what was measured, as it should stand in the table: "share of workers left to honest clients"
 * @param value rounded here to three digits
 * @param unit as it stands behind the figure: "%", "ms", or nothing
 * @param wanted what the test asserts of it, as text: ">= 90 %"; nothing where it asserts nothing
 */
export function figure(what: string, value: number, unit = '', wanted = ''): void {
  const file = relative('.', expect.getState().testPath ?? '');
  const rounded = Number(value.toPrecision(3));
  console.info(`${file}: ${what}: ${rounded} ${unit}${wanted && ` (wanted: ${wanted})`}`);
  const { CORELANE_FIGURES: notes } = process.env;
  if (notes) appendFileSync(notes, `${JSON.stringify({ file, what, value: rounded, unit, wanted })}\n`);
}

/**
 * Simulates renders that wait, and writes docs/benchmarks/simulate-waiting.{json,md,svg}:
 *   node operator/gen/simulate-waiting.ts
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { waitingStudy } from '../simulate/waiting-study.ts';
import { waitingPage, waitingPlot } from './waiting-figures.ts';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
const study = waitingStudy();
const files = {
  'simulate-waiting.json': `${JSON.stringify(study, null, 2)}\n`,
  'simulate-waiting.md': waitingPage(study),
  'simulate-waiting.svg': waitingPlot(study),
};
for (const [name, content] of Object.entries(files)) writeFileSync(`docs/benchmarks/${name}`, content);

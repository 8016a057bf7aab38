/** The picture of a worker's life in docs/runtime.md, from the table that the supervisor goes by. */
import { createRequire } from 'node:module';

interface Way {
  when?: { words: string };
  to?: string;
  ends?: boolean;
}
type Cells = Record<string, Way[]>;
interface Lifecycle {
  FIRST: { phase: string };
  /** What all phases have in common that have a process. */
  RUNNING: Cells;
  TABLE: Record<string, Cells>;
}

const require = createRequire(import.meta.url);
const LIFECYCLE: Lifecycle = require('../../sidecar/runtime/lifecycle.cjs');
const BEGIN = '<!-- Made by "make generate" from sidecar/runtime/lifecycle.cjs; do not edit. -->\n';
const END = '<!-- End of what is made. -->\n';
const END_OF_LIFE = '[*]';

/** Arrows out of a phase, the events that take the same way on one of them. */
function arrows(from: string, cells: Cells): string[] {
  const labels = new Map<string, string[]>();
  for (const [event, ways] of Object.entries(cells)) {
    for (const { when, to, ends } of ways) {
      const target = ends ? END_OF_LIFE : to;
      if (target === undefined || target === from) continue;
      const label = when ? `${event} [${when.words}]` : event;
      labels.set(target, [...(labels.get(target) ?? []), label]);
    }
  }
  return [...labels].map(([to, all]) => `${from} --> ${to} : ${all.join(', ')}`);
}

/** The table as Mermaid draws it. */
function pictureOf({ FIRST, RUNNING, TABLE }: Lifecycle): string {
  const ownCells = (cells: Cells) => Object.fromEntries(Object.entries(cells).filter(([e, way]) => RUNNING[e] !== way));
  const isRunning = (cells: Cells) => cells.ended === RUNNING.ended;
  const phases = Object.entries(TABLE);
  const inside = phases
    .filter(([, cells]) => isRunning(cells))
    .flatMap(([phase, cells]) => arrows(phase, ownCells(cells)));
  const outside = phases.filter(([, cells]) => !isRunning(cells)).flatMap(([phase, cells]) => arrows(phase, cells));
  const lines = [
    `[*] --> ${FIRST.phase}`,
    'state running {',
    ...inside.map((line) => `  ${line}`),
    '}',
    ...arrows('running', RUNNING),
    ...outside,
  ];
  return ['stateDiagram-v2', ...lines.map((line) => `  ${line}`), ''].join('\n');
}

/** The page with the picture as it is now. */
export function withPicture(page: string): string {
  const [before, rest] = page.split(BEGIN);
  const [, after] = rest?.split(END) ?? [];
  if (after === undefined) throw new Error('docs/runtime.md has no place for the picture of the lifecycle.');
  return `${before}${BEGIN}\n\`\`\`mermaid\n${pictureOf(LIFECYCLE)}\`\`\`\n\n${END}${after}`;
}

/** What a log of `make demo` or `make test` says about its steps. Computes only. */

/** A line, and when it came: seconds after the command began. */
export interface LogLine {
  atS: number;
  text: string;
}

export interface Step {
  title: string;
  fromS: number;
  toS: number;
}

const DONE = /^(?:\s*\d+:\d\d(?:, about +\S+ \S+ left)?: )?(.+?) \.\.\. done in (?:(\d+)m)?(\d+)s$/;
/** What a title says about its usual duration is for those who wait. */
const USUAL = /(?:, about [^,]* on \d+ cores)?(?:, once)?$| \(about [^)]*\)(?:, once)?$/;

/** The steps that are done, in the order of their beginnings. A step is told when it ends; seconds are whole. */
export function stepsOf(lines: LogLine[]): Step[] {
  const steps = lines.flatMap(({ atS, text }) => {
    const [, title, minutes = '0', seconds] = DONE.exec(text) ?? [];
    if (title === undefined) return [];
    return [{ title: title.replace(USUAL, ''), fromS: Math.max(0, atS - 60 * +minutes - Number(seconds)), toS: atS }];
  });
  return [...steps, ...testsOf(lines)].sort((a, b) => a.fromS - b.fromS);
}

/**
 * "Running the api-beside tests" and Jest's own "Time:". The output of one that runs beside another comes when it has
 * ended.
 */
function testsOf(lines: LogLine[]): Step[] {
  const running: string[] = [];
  return lines.flatMap(({ atS, text }) => {
    const [, project] = /Running the ([\w-]+) tests$/.exec(text) ?? [];
    if (project) running.push(`${project} tests`);
    const [, seconds] = /^Time: +([\d.]+) s/.exec(text) ?? [];
    const title = seconds === undefined ? undefined : running.pop();
    return title === undefined ? [] : [{ title, fromS: Math.max(0, atS - Number(seconds)), toS: atS }];
  });
}

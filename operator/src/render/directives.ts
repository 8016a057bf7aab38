/**
 * How a configuration is written down: a list of directives, some of which depend, with their comments between them.
 */

/** First line of each file. */
export const MADE_BY_CORELANE = '# Made by Corelane; changes are overwritten.';

/** Directives in their order. What is not said is false or undefined; an empty string is an empty line. */
export type Lines = string | false | undefined | readonly Lines[];

/** The lines if the condition, a decision of the model, holds. (Their values are looked at in any case.) */
export function when(condition: boolean | undefined, ...lines: Lines[]): Lines {
  return condition && lines;
}

/** Lines about settings that are not there if what they are for is switched off. */
export function given<T>(settings: T | undefined, lines: (settings: T) => Lines): Lines {
  return settings !== undefined && lines(settings);
}

/** One directive of several parts, some of which depend. Keeps long ones readable. */
export function words(...parts: (string | false | undefined)[]): string {
  return parts.filter((part) => part !== false && part !== undefined).join(' ');
}

/** A section of haproxy.cfg: its first line, and what belongs to it. Also what goes on in nginx' next lines. */
export function section(head: string, ...lines: Lines[]): string[] {
  return [head, ...flat(lines).map((line) => (line === '' ? line : `  ${line}`))];
}

/** A block of nginx.conf. */
export function block(head: string, ...lines: Lines[]): string[] {
  return [...section(`${head} {`, lines), '}'];
}

/** Groups with an empty line between them; one that has no lines is left out. */
export function paragraphs(...groups: Lines[]): string[] {
  return groups
    .map(flat)
    .filter((group) => group.length > 0)
    .flatMap((group, index) => (index === 0 ? group : ['', ...group]));
}

/** The file. */
export function text(lines: Lines): string {
  return `${flat(lines).join('\n')}\n`;
}

/**
 * @throws RangeError when a line would be two: what is one directive here must be one in the file (I7).
 */
function flat(lines: Lines): string[] {
  if (typeof lines !== 'string') return lines ? lines.flatMap(flat) : [];
  if (/[\n\r]/.test(lines)) throw new RangeError(`a directive must be one line: ${JSON.stringify(lines)}`);
  return [lines];
}

/**
 * nginx.conf and haproxy.cfg as their parsers take them apart: directives, each a list of words.
 * Comments count: one that a value has begun hides what follows it.
 */

/** A directive of nginx.conf: its depth, then its words; a block's own line ends with `{`. */
export function nginxDirectives(text: string): string[][] {
  const directives: string[][] = [];
  let words: string[] = [];
  let depth = 0;
  const end = (mark: string[]) => {
    if (words.length > 0 || mark.length > 0) directives.push([String(depth), ...words, ...mark]);
    words = [];
  };
  // A comment, a quoted word, a mark, or a bare word (with escapes, and with variables in braces).
  const token =
    /#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[;{}]|(?:\\.|\$\{[^}]*\}|[^\s;{}"'\\])(?:\\.|\$\{[^}]*\}|[^\s;{\\])*|\s+|./gs;
  for (const [found] of text.matchAll(token)) {
    if (/^\s/.test(found)) continue;
    if (found.startsWith('#')) directives.push([String(depth), found]);
    else if (found === ';') end([]);
    else if (found === '{') {
      end(['{']);
      depth += 1;
    } else if (found === '}') {
      end([]);
      depth -= 1;
    } else words.push(found);
  }
  end(words.length > 0 ? ['(unfinished)'] : []);
  return directives;
}

/** The lines of haproxy.cfg that say something, as words. A quote may begin and end inside a word. */
export function haproxyDirectives(text: string): string[][] {
  const lines = text.replace(/\\\n/g, '').split(/[\n\r]/);
  return lines
    .map((line) =>
      [...line.matchAll(/#.*|(?:\\.|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"'\\]|["'\\])+/g)].map(([found]) => found),
    )
    .filter((words) => words.length > 0);
}

/**
 * How two files differ in more than values: the first directive that one has and the other has not, or undefined.
 * A word may differ only where it is one of `values` as a whole, perhaps in quotes.
 */
export function structuralDifference(
  actual: string[][],
  expected: string[][],
  values: Set<string>,
): string | undefined {
  for (let index = 0; index < Math.max(actual.length, expected.length); index += 1) {
    const [one, other] = [actual[index] ?? [], expected[index] ?? []];
    const isValue = (word: string) => values.has(word) || values.has(word.replace(/^"([^"\\]*)"$/, '$1'));
    const same = one.length === other.length && one.every((word, at) => word === other[at] || isValue(word));
    if (!same) return `${JSON.stringify(one.join(' '))} stands where ${JSON.stringify(other.join(' '))} was expected`;
  }
  return undefined;
}

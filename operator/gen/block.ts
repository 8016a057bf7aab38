/** Parts of a page that are made, between two marks: what stands around them is written by hand. */

/** The page with what is between `<!-- NAME: begin ... -->` and `<!-- NAME: end -->` replaced. */
export function withBlock(page: string, name: string, content: string): string {
  const marks = new RegExp(`(<!-- ${name}: begin[^>]*-->\n).*?(<!-- ${name}: end -->)`, 's');
  if (!marks.test(page)) throw new Error(`The page has no place for what is made: <!-- ${name}: begin -->.`);
  return page.replace(marks, (_all, begin, end) => `${begin}${content}\n${end}`);
}

/** A table of Markdown. The first column is text, the others are figures. */
export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  const rule = `|${head.map((_cell, column) => (column === 0 ? '---' : '--:')).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

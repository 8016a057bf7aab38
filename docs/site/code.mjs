// code.mjs: indented code looks like fenced code, which is all that VitePress has a style for; long names of fields can
// be broken behind a dot, or the first column of a table would take the whole page.
const LONG = 20;

/** Plugin of markdown-it. */
export function code(md) {
  md.core.ruler.push('indented-code-is-fenced', ({ tokens }) => {
    for (const token of tokens.filter(({ type }) => type === 'code_block')) {
      Object.assign(token, { type: 'fence', tag: 'code', info: 'sh', markup: '```' });
    }
  });
  const { code_inline: inline } = md.renderer.rules;
  md.renderer.rules.code_inline = (...args) => {
    const [tokens, index] = args;
    const { content } = tokens[index];
    const html = inline(...args);
    const isName = content.length > LONG && !content.includes(' ');
    return isName ? html.replaceAll(/([./])(?=[\w{])(?![^<]*>)/g, '$1<wbr>') : html;
  };
}

/** Style and script of the flame graph's page: the script finds the tree of calls in `root`. */

export const PAGE_STYLE = `
  body { font: 13px system-ui, sans-serif; margin: 16px; color: #222; background: #fff; }
  h1 { font-size: 18px; }
  h2 { font-size: 15px; }
  #told { min-height: 1.4em; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
  #graph { position: relative; overflow: hidden; }
  #graph div { position: absolute; height: 17px; line-height: 16px; overflow: hidden; white-space: nowrap;
    box-sizing: border-box; border-right: 1px solid #fff; padding: 0 3px; font-size: 12px; cursor: pointer; }
  #graph div:hover { outline: 1px solid #000; }
  table { border-collapse: collapse; }
  td, th { padding: 2px 12px 2px 0; text-align: left; }
  td:nth-child(-n+2), th:nth-child(-n+2) { text-align: right; font-variant-numeric: tabular-nums; }
  td:nth-child(n+3) { font-family: ui-monospace, monospace; }
`;

/** Colours: the program is warm, its packages are yellow, Node.js, V8 and Corelane are grey. */
export const PAGE_SCRIPT = `const graph = document.getElementById('graph');
const told = document.getElementById('told');
const ROW_PX = 18;
const parents = new Map();
const note = (frame) => frame.children.forEach((child) => { parents.set(child, frame); note(child); });
note(root);
function shade(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) % 997;
  return sum % 12;
}
function color(frame) {
  if (!frame.at || frame.at.startsWith('node:') || frame.at.startsWith('/corelane/')) return 'hsl(210,12%,' + (78 + shade(frame.name) / 2) + '%)';
  if (frame.at.includes('/node_modules/')) return 'hsl(48,85%,' + (66 + shade(frame.name)) + '%)';
  return 'hsl(' + (8 + shade(frame.name)) + ',85%,' + (66 + shade(frame.at)) + '%)';
}
function box(frame, left, width, row) {
  const element = document.createElement('div');
  const ms = (frame.us / 1000).toFixed(1) + ' ms, ' + (100 * frame.us / root.us).toFixed(1) + ' %';
  element.textContent = frame.name;
  element.title = frame.name + ' ' + frame.at + ' (' + ms + ')';
  element.style.cssText = 'left:' + left + '%;width:' + width + '%;top:' + row * ROW_PX + 'px;background:' + color(frame);
  element.onclick = () => draw(frame);
  element.onmouseenter = () => { told.textContent = element.title; };
  graph.append(element);
}
function draw(focus) {
  graph.replaceChildren();
  const line = [];
  for (let frame = focus; frame; frame = parents.get(frame)) line.unshift(frame);
  line.slice(0, -1).forEach((frame, row) => box(frame, 0, 100, row));
  let rows = line.length;
  const place = (frame, left, width, row) => {
    if (width < 0.05) return;
    rows = Math.max(rows, row + 1);
    box(frame, left, width, row);
    let at = left;
    for (const child of frame.children) {
      const part = width * child.us / frame.us;
      place(child, at, part, row + 1);
      at += part;
    }
  };
  place(focus, 0, 100, line.length - 1);
  graph.style.height = rows * ROW_PX + 'px';
}
draw(root);`;

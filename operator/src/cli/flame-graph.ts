/** A CPU profile as a flame graph: one HTML file that needs nothing else. */

/** What Profiler.stop of the Node.js inspector gives, in part. */
export interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  /** Microseconds from one sample to the next. */
  timeDeltas: number[];
}

/** One box: a function below the one that called it. */
export interface Frame {
  name: string;
  /** File and line, or nothing. */
  at: string;
  /** Microseconds in it and in what it called. */
  us: number;
  children: Frame[];
}

/** Deeper than people can see, and than JSON and the page want to recurse. */
const DEPTH_MAX = 400;

/** The tree of calls with their times; calls that took nothing are left out. */
export function frames(profile: CpuProfile): Frame {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const ownUs = new Map<number, number>();
  for (const [index, id] of profile.samples.entries())
    ownUs.set(id, (ownUs.get(id) ?? 0) + Math.max(0, profile.timeDeltas[index] ?? 0));
  const build = (id: number, depth: number): Frame => {
    const node = nodes.get(id);
    if (!node) throw new Error(`the profile has no node ${id}`);
    const { functionName, url, lineNumber } = node.callFrame;
    const children = depth < DEPTH_MAX ? (node.children ?? []).map((child) => build(child, depth + 1)) : [];
    const us = children.reduce((sum, child) => sum + child.us, ownUs.get(id) ?? 0);
    const shown = children.filter((child) => child.us > 0).sort((one, other) => other.us - one.us);
    return { name: functionName || '(anonymous)', at: url ? `${url}:${lineNumber + 1}` : '', us, children: shown };
  };
  const [root] = profile.nodes;
  if (!root) throw new Error('the profile is empty');
  return build(root.id, 0);
}

/** Text that can stand between tags. */
function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);
}

/** The page. A click on a box makes it as wide as the page; a click on the lowest one goes back. */
export function flameGraph(profile: CpuProfile, title: string): string {
  // `<` could end the script.
  const data = JSON.stringify(frames(profile)).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style>
  body { font: 12px system-ui, sans-serif; margin: 8px; }
  #graph { position: relative; }
  #graph div { position: absolute; height: 17px; overflow: hidden; white-space: nowrap; box-sizing: border-box;
    border-right: 1px solid #fff; padding: 1px 3px; cursor: pointer; }
  #graph div:hover { outline: 1px solid #000; }
</style>
<h1>${escaped(title)}</h1>
<p id="told">Width is time. A click makes a box wide, a click on the first line goes back.</p>
<div id="graph"></div>
<script>
const root = ${data};
const graph = document.getElementById('graph');
const told = document.getElementById('told');
const ROW_PX = 18;
const parents = new Map();
const note = (frame) => frame.children.forEach((child) => { parents.set(child, frame); note(child); });
note(root);
function hue(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) % 997;
  return sum % 50;
}
function box(frame, left, width, row) {
  const element = document.createElement('div');
  const ms = (frame.us / 1000).toFixed(1) + ' ms (' + (100 * frame.us / root.us).toFixed(1) + ' %)';
  element.textContent = frame.name;
  element.title = frame.name + ' ' + frame.at + ' ' + ms;
  element.style.cssText = 'left:' + left + '%;width:' + width + '%;top:' + row * ROW_PX + 'px;background:hsl('
    + hue(frame.at || frame.name) + ',80%,' + (frame.at ? 68 : 85) + '%)';
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
draw(root);
</script>
</html>
`;
}

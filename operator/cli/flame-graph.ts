/** A CPU profile as a flame graph: one HTML file that needs nothing else. */
import { clip } from '../live/text.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from './flame-graph-page.ts';
import { visible } from './visible.ts';

interface CallFrame {
  functionName: string;
  url: string;
  lineNumber: number;
}

/** What Profiler.stop of the Node.js inspector gives, in part. */
export interface CpuProfile {
  nodes: { id: number; callFrame: CallFrame; children?: number[] }[];
  samples: number[];
  /** Microseconds from one sample to the next. */
  timeDeltas: number[];
}

/** One box: a function below the one that called it. */
export interface Frame {
  name: string;
  /** File and line where the function begins, or nothing. */
  at: string;
  /** Microseconds in it and in what it called. */
  us: number;
  children: Frame[];
}

/** A function and the time in itself, without what it called. */
export interface OwnTime {
  name: string;
  at: string;
  us: number;
}

/** Deeper than people can see, and than JSON and the page want to recurse. */
const DEPTH_MAX = 400;
/** Of a name, which a program may have made as long as it likes, or something else than a text. */
const TEXT_LENGTH_MAX = 300;
const HOTTEST = 15;
const HOTTEST_IN_SUMMARY = 3;
/** Not a function: the event loop waits. */
const IDLE = '(idle)';

/** Microseconds in each node itself. */
function ownTimes({ samples, timeDeltas }: CpuProfile): Map<number, number> {
  const ownUs = new Map<number, number>();
  for (const [index, id] of samples.entries())
    ownUs.set(id, (ownUs.get(id) ?? 0) + Math.max(0, timeDeltas[index] ?? 0));
  return ownUs;
}

function placeOf({ functionName, url, lineNumber }: CallFrame): { name: string; at: string } {
  const at = url ? `${clip(String(url), TEXT_LENGTH_MAX).replace(/^file:\/\//, '')}:${Number(lineNumber) + 1}` : '';
  return { name: clip(String(functionName || '(anonymous)'), TEXT_LENGTH_MAX), at };
}

/** The tree of calls with their times; idle time, and calls that took nothing, are left out. */
export function frames(profile: CpuProfile): Frame {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const ownUs = ownTimes(profile);
  const build = (id: number, depth: number): Frame => {
    const node = nodes.get(id);
    if (!node) throw new Error(`the profile has no node ${id}`);
    // Each is below one other. A program that makes its own profile may say otherwise, and 2^400 boxes take their time.
    nodes.delete(id);
    if (node.callFrame.functionName === IDLE) return { name: IDLE, at: '', us: 0, children: [] };
    const children = depth < DEPTH_MAX ? (node.children ?? []).map((child) => build(child, depth + 1)) : [];
    const us = children.reduce((sum, child) => sum + child.us, ownUs.get(id) ?? 0);
    const shown = children.filter((child) => child.us > 0).sort((one, other) => other.us - one.us);
    return { ...placeOf(node.callFrame), us, children: shown };
  };
  const [root] = profile.nodes;
  if (!root) throw new Error('the profile is empty');
  return build(root.id, 0);
}

/** Functions by the time in themselves, wherever they were called from, and the time of the whole profile. */
function hottest(profile: CpuProfile): { functions: OwnTime[]; busyUs: number; totalUs: number } {
  const byPlace = new Map<string, OwnTime>();
  const ownUs = ownTimes(profile);
  let [busyUs, totalUs] = [0, 0];
  for (const { id, callFrame } of profile.nodes) {
    const us = ownUs.get(id) ?? 0;
    totalUs += us;
    if (us === 0 || callFrame.functionName === IDLE) continue;
    busyUs += us;
    const place = placeOf(callFrame);
    const key = `${place.name} ${place.at}`;
    byPlace.set(key, { ...place, us: us + (byPlace.get(key)?.us ?? 0) });
  }
  const functions = [...byPlace.values()].sort((one, other) => other.us - one.us).slice(0, HOTTEST);
  return { functions, busyUs, totalUs };
}

function percent(us: number, ofUs: number): string {
  return `${((100 * us) / Math.max(1, ofUs)).toFixed(1)} %`;
}

/** How busy the event loop was. */
function busy({ busyUs, totalUs }: { busyUs: number; totalUs: number }): string {
  return `busy ${percent(busyUs, totalUs)} of ${(totalUs / 1e6).toFixed(1)} s`;
}

/** Some lines for a terminal. */
export function summary(profile: CpuProfile): string {
  const found = hottest(profile);
  const lines = found.functions
    .slice(0, HOTTEST_IN_SUMMARY)
    .map(({ name, at, us }) => visible(`${percent(us, found.busyUs).padStart(9)}  ${name} ${at}`.trimEnd()));
  return [`${busy(found)}${lines.length > 0 ? '; of that in' : ''}`, ...lines].join('\n');
}

/** Text that can stand between tags. */
function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);
}

/**
 * The page. A click on a box makes it as wide as the page; a click on the first line goes back.
 * @param nonce of a Content-Security-Policy
 */
export function flameGraph(profile: CpuProfile, title: string, nonce?: string): string {
  const own = nonce === undefined ? '' : ` nonce="${escaped(nonce)}"`;
  // `<` could end the script.
  const data = JSON.stringify(frames(profile)).replaceAll('<', '\\u003c');
  const found = hottest(profile);
  const rows = found.functions.map(
    ({ name, at, us }) =>
      `<tr><td>${percent(us, found.busyUs)}<td>${(us / 1000).toFixed(1)} ms<td>${escaped(name)}<td>${escaped(at)}`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style${own}>${PAGE_STYLE}</style>
<h1>${escaped(title)}</h1>
<p>CPU profile: ${busy(found)}. Idle time is left out. Width is time; a click makes a box wide, one on the first line goes back.</p>
<p id="told">&nbsp;</p>
<div id="graph"></div>
<h2>Most time in the function itself</h2>
<table>
<tr><th>of busy time<th>time<th>function<th>where it begins
${rows.join('\n')}
</table>
<script${own}>
const root = ${data};
${PAGE_SCRIPT}
</script>
</html>
`;
}

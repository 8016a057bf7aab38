/** Names a fault, or none, from the output of `corelane explain` alone. Computes only. */

/** In the order of reading; the share of workers without CPU is what tells one from all. */
const NAMES: [name: string, says: RegExp][] = [
  ['endless loop', /^(an event loop stands|\d+ event loops stand|renders get stuck)/],
  ['crash loop', /restarts? in a loop/],
  ['dependency that is dead', /^renders end by time-out, which wait for something/],
  ['dependency that is slow', /^renders take long: .* so they wait for something else/],
  ['pages that have become heavy', /^renders take long: /],
  ['a pod cut off from the others', /know less than half of the others/],
  ['queue full from a burst', /workers? (is|are) busy, .*(waits?|were refused)/],
  ['the program answers 500', /^the program answers 5xx itself/],
];
const STARVED = /^(\d+) of (\d+) workers? gets? too little CPU/;

/** @returns undefined where it says that nothing is wrong, and `?` for words that name nothing */
export function nameOf(lines: string[]): string | undefined {
  const now = (lines.find((line) => line.startsWith('Now: ')) ?? '').slice('Now: '.length);
  if (now.startsWith('nothing limits it')) return undefined;
  const starved = STARVED.exec(now);
  if (starved) return 2 * Number(starved[1]) < Number(starved[2]) ? 'one slow worker' : 'CPU throttled';
  return NAMES.find(([, says]) => says.test(now))?.[0] ?? '?';
}

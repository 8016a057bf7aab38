/**
 * Worlds in which pods are missing or do not run, and what `Ready` says of each: the reason, and the way out.
 * docs/why-no-pods.md is made of them (UPDATE_GOLDEN=1). The refusals are the API server's own; there is no scheduler
 * and no kubelet here, so the tests say in their place what those said on a node (e2e/stories/why-no-pods.load.test.ts
 * asks them).
 *
 * A load test: an operator for each of two dozen worlds takes a minute; why-no-pods.test.ts has some of them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { endWorld, GOLDEN, rowOf, WORLDS } from './why-no-pods.ts';

const rows: string[] = [];

afterEach(endWorld);

test.each(WORLDS.map((one, index) => ({ ...one, index })))('$what', async ({ index, ...one }) => {
  rows.push(await rowOf(one, `why-no-pods-${index}`));
  if (!process.env.UPDATE_GOLDEN) expect(readFileSync(GOLDEN, 'utf8')).toContain(`${rows.at(-1)}\n`);
});

test('docs/why-no-pods.md has nothing else', () => {
  const page = `# Why are there no pods?

\`kubectl describe rsvc NAME\` tells: the message of the condition \`Ready\` has the reason, in the words of whoever says so, and the way out. Mistakes that the API server
refuses at once are in [bad-resources.md](bad-resources.md). This page is made by a test, from these worlds; each message begins with how many pods there are.

| world | what Ready says |
|---|---|
${rows.join('\n')}

A PodDisruptionBudget that allows no eviction is told there, too, also while all pods are ready: \`kubectl drain\` would wait without a word.
`;
  if (process.env.UPDATE_GOLDEN) writeFileSync(GOLDEN, page);
  else expect(readFileSync(GOLDEN, 'utf8')).toBe(page);
});

/**
 * That the list of breakages keeps up with what it breaks: `make test-mutants` runs for half an hour, and not in CI.
 */
import { mutants } from './mutants/mutants.ts';
import { changesNothing } from './mutants/originals.ts';

test('every mutant changes something', () => {
  expect(mutants.length).toBeGreaterThan(0);
  expect(mutants.filter(changesNothing).map(({ name }) => name)).toEqual([]);
});

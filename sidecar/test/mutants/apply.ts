/** Before each test file: every pod gets the deliberate breakage that run.ts has chosen. */
import { Pod } from '../../../e2e/harness/engine/pod.ts';
import { CURRENT_MUTANT, mutated } from './mutants.ts';

const mutant = CURRENT_MUTANT;
if (mutant) Pod.editAll = (file, text) => mutated(mutant, file, text);

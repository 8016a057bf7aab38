import { jest } from '@jest/globals';

/**
 * The limit of a test on something that runs. Tests wait for conditions, with limits of their own that say what was
 * missing; Jest's says nothing, and its default (5 s) is shorter than a busy machine may need for one kubectl. So it is
 * the last resort only, longer than what a test waits for, and nothing asserts speed by it.
 */
jest.setTimeout(300_000);

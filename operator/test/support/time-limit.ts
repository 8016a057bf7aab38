import { jest } from '@jest/globals';

/** Machines that build at the same time are slow, and nothing in the api project asserts speed by this limit. */
jest.setTimeout(120_000);

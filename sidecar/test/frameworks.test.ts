/** The two frameworks of most apps; `make test-frameworks` has all others (frameworks/more.test.ts). */
import { jest } from '@jest/globals';
import { testFrameworks } from './frameworks/suite.ts';

jest.setTimeout(120_000);

const source = '/app/work.mjs';
testFrameworks('1s', {
  Express: { app: 'express', command: ['node', '/app/server.js'], source },
  Fastify: { app: 'fastify', command: ['node', '/app/server.js'], source },
});

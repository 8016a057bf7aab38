/** The two frameworks of most apps; `make test-frameworks` has all others (frameworks/more.test.ts). */
import { testFrameworks } from './frameworks/suite.ts';

const source = '/app/work.mjs';
testFrameworks('1s', {
  Express: { app: 'express', command: ['node', '/app/server.js'], source, tag: /^W\/"4-/ },
  Fastify: { app: 'fastify', command: ['node', '/app/server.js'], source, tag: /^W\/"[\w-]{32}"$/ },
});

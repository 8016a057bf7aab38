/**
 * The two frameworks of most apps; `make test-frameworks` has all others (frameworks/examples.test.ts). Here because a
 * worker counts as stuck after 1 s.
 */
import { application } from './frameworks/application.ts';
import { testFrameworks } from './frameworks/suite.ts';

const app = (name: string) => async () => ({
  folder: await application(name),
  command: ['node', '/app/server.js'],
});
const source = '/app/work.mjs';
testFrameworks('1s', {
  Express: { worker: app('express'), source, tag: /^W\/"4-/ },
  Fastify: { worker: app('fastify'), source, tag: /^W\/"[\w-]{32}"$/ },
});

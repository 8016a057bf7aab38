/**
 * Without a framework, and with those that are installed and built first, which takes minutes: `make test-frameworks`.
 */
import { jest } from '@jest/globals';
import type { Call } from '../../../e2e/harness/engine/pod.ts';
import { testFrameworks } from './suite.ts';

jest.setTimeout(900_000);

const source = '/app/work.mjs';
const hypernova = {
  app: 'hypernova',
  command: ['node', '/app/server.js'],
  source,
  lacks: 'HEAD and streams',
  ask(page: string): [string, Call] {
    const headers = { 'Content-Type': 'application/json' };
    return ['/batch', { method: 'POST', headers, body: JSON.stringify({ one: { name: page, data: {} } }) }];
  },
} as const;

testFrameworks('3s', {
  'node:http, CommonJS': { app: 'plain', command: ['node', '/app/server.cjs'], source },
  'node:http, ES module': { app: 'plain', command: ['node', '/app/server.mjs'], source },
  Hypernova: hypernova,
  'Hypernova, its own cluster': { ...hypernova, env: { CLUSTER: '1' } },
  Next: {
    app: 'next',
    command: ['node', '/app/.next/standalone/server.js'],
    source: '/app/.next/standalone/work.mjs',
    hasShell: true,
  },
  Astro: { app: 'astro', command: ['node', '/app/dist/server/entry.mjs'], source },
  Nuxt: { app: 'nuxt', command: ['node', '/app/.output/server/index.mjs'], source },
});

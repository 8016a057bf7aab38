/** Without a framework, and Hypernova with its own cluster. */
import { jest } from '@jest/globals';
import { batch, exampleWorker } from '../../../e2e/harness/engine/examples.ts';
import { application } from './application.ts';
import { testFrameworks } from './suite.ts';

jest.setTimeout(900_000);

const source = '/app/work.mjs';
const plain = (file: string) => async () => ({ folder: await application('plain'), command: ['node', `/app/${file}`] });

testFrameworks('3s', {
  'node:http, CommonJS': { worker: plain('server.cjs'), source },
  'node:http, ES module': { worker: plain('server.mjs'), source },
  'Hypernova, its own cluster': {
    worker: () => exampleWorker('hypernova', { CLUSTER: '1' }),
    ask: batch,
    lacks: 'HEAD and streams',
    source,
  },
});

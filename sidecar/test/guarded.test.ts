/**
 * Connections to workers are kept only where the runtime sees to the length of responses. Whatever else serves may send
 * more than it has announced, and the next client's answer is its own all the same (I5).
 */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { expectOwnAnswers, start } from './guarded.ts';

let pod: Pod;
afterEach(() => pod?.stop());

test.each([['a server without node:http', ['node', '/app/plain.cjs']]])(
  '%s: what it sends beyond its Content-Length is never the answer to the next request',
  async (_name, command) => {
    pod = await start({ command });
    await expectOwnAnswers(pod);
  },
);

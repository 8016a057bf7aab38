/** Heads that reach the runtime port: who is meant, and that no head keeps the supervisor busy. */
import { createRequire } from 'node:module';
import { runInNewContext } from 'node:vm';

const { headOf } = createRequire(import.meta.url)('../../runtime/head.cjs');
const isMeant = (...headers: string[]): boolean =>
  headOf(`GET /heap HTTP/1.1\r\n${headers.join('\r\n')}`, false).isMeant;

test.each([
  [['Host: 127.0.0.1:9102', 'X-Corelane-Runtime: true'], true],
  [['host:worker', 'x-corelane-runtime:\t true \t'], true],
  [['Host: localhost', 'X-Corelane-Runtime: true HTTP/1.1'], false],
  [['Host: localhost', 'X-Corelane-Runtime: true', 'A: HTTP/1.1  \t'], false],
  [['Host: evil.example', 'X-Corelane-Runtime: true'], false],
  [['Host: localhost', 'X-Corelane-Runtime : true'], false],
])('%j: %j', (headers, expected) => {
  expect(isMeant(...headers)).toBe(expected);
});

/** Milliseconds, and with an expression that backtracks a second each; they come again and again. */
test.each([
  ['blanks before a letter', `A: x${' '.repeat(200_000)}y`],
  ['blanks behind what looks like an end', `A: HTTP/1${' '.repeat(200_000)}x`],
  ['many ends', `A: ${'HTTP/1'.repeat(40_000)}x`],
])('%s are read once', (_what, line) => {
  expect(runInNewContext('work()', { work: () => isMeant(line) }, { timeout: 5_000 })).toBe(false);
});

/**
 * The turn of a worker to be the one of its pod that is replaced: whoever else wants it must neither get it nor take it
 * away.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../operator/test/support/free-ports.ts';

interface Turn {
  takeTurn(): Promise<boolean>;
  endTurn(): void;
}
const runtime = (file: string) =>
  createRequire(import.meta.url)(fileURLToPath(new URL(`../runtime/${file}`, import.meta.url)));

test('two reasons to replace a worker at the same time: one turn, which ends', async () => {
  const [port = 0] = await freePorts(1);
  process.env.CORELANE_RUNTIME_PORT = String(port);
  const { takeTurn, endTurn }: Turn = runtime('turn.cjs');
  expect([await takeTurn(), await takeTurn()]).toEqual([true, false]);
  endTurn();
  expect(await takeTurn()).toBe(true);
  endTurn();
});

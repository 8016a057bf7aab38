/**
 * The turn of a worker to be the one of its pod that is replaced: whoever else wants it must neither get it nor take it
 * away.
 */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../operator/test/support/free-ports.ts';

interface Turn {
  takeTurn(): Promise<boolean>;
  endTurn(): void;
}
const runtime = (file: string) =>
  createRequire(import.meta.url)(fileURLToPath(new URL(`../runtime/${file}`, import.meta.url)));

beforeAll(async () => {
  const [port = 0] = await freePorts(1);
  process.env.CORELANE_RUNTIME_PORT = String(port);
});

test('two reasons to replace a worker at the same time: one turn, which ends', async () => {
  const { takeTurn, endTurn }: Turn = runtime('turn.cjs');
  expect([await takeTurn(), await takeTurn()]).toEqual([true, false]);
  endTurn();
  expect(await takeTurn()).toBe(true);
  endTurn();
});

test('a worker that cannot end what it has within its turn takes requests again', async () => {
  const { news, state } = runtime('state.cjs');
  const { endTurn }: Turn = runtime('turn.cjs');
  // A render of it was given up, and beside that one a handler goes on.
  const server = { pid: 0, overdue: true, idleBeats: 0 };
  state.servers.set({}, server);
  state.life = { ...state.life, phase: 'up', cause: 'abandoned' };
  const isDraining = once(news, 'phase');
  const replaced = runtime('abandoned.cjs').replace(server);
  await isDraining;
  expect(state.life.phase).toBe('draining');
  // As after 60 s.
  endTurn();
  await replaced;
  expect(state.life).toMatchObject({ phase: 'up', cause: undefined });
});

/**
 * A stuck server that dies by itself, while its stack is being taken, below a launcher that lives on. Here because a
 * server counts as stuck after 1.5 s, and a launcher has 10 s for the next one.
 */
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { get, Program } from './program.ts';

const app = (name: string) => fileURLToPath(new URL(`apps/${name}`, import.meta.url));

let program: Program;
beforeEach(() => {
  program = new Program();
});
afterEach(() => program.stop());

/**
 * Starts a launcher, lets its server get stuck in a native function, of which no stack can be taken, and ends that
 * server.
 */
async function stuckServerDies(launcher: string, env: Record<string, string> = {}): Promise<number> {
  await program.start(process.execPath, [app(launcher)], env);
  const server = await program.next(0);
  get(program.port, '/?block=60000').catch(() => 'lost');
  await until('it is stuck', async () => (await program.health()).body === 'stalled\n');
  process.kill(server, 'SIGKILL');
  return server;
}

/** Events of the supervisor's log, with the reason where there is one. */
function logged(): string[] {
  const lines = program.output.split('\n').filter((line) => line.includes('"corelane":"supervisor"'));
  return lines.map((line) => JSON.parse(line)).map(({ event, reason = '' }) => `${event} ${reason}`.trim());
}

test.each(['respawn.cjs', 'cluster.cjs'])('the next server of its launcher takes requests: %s', async (launcher) => {
  const first = await stuckServerDies(launcher);
  await program.next(first);
  expect((await get(program.port, '/')).status).toBe(200);
  // It is watched as the one before.
  const second = program.events('up').at(-1)?.pid ?? 0;
  get(program.port, '/?loop=1').catch(() => 'lost');
  await until('another one is up', () => program.events('up').at(-1)?.pid !== second);
  await until('it serves again', async () => (await program.health()).status === 200);
  expect(logged().filter((line) => /^(kill|restart)/.test(line))).toEqual(['kill stalled', 'restart stalled']);
});

test('a launcher that starts no other one has 10 s, then all is started again', async () => {
  const first = await stuckServerDies('respawn.cjs', { STAYS: '1' });
  await program.next(first);
  expect((await get(program.port, '/')).status).toBe(200);
  expect(logged()).toContain(`kill the server process ${first} has ended, its launcher has not`);
});

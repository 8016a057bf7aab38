/** HAProxy's agent check: what a supervisor answers, and that news ends the wait of a question. */
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { ask, askUntilOneWaits } from './agent.ts';
import { Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));

let program: Program;
beforeEach(() => {
  // The watchdog is not what this is about.
  program = new Program(30_000);
});
afterEach(() => program.stop());

const start = (bounds?: string) =>
  program.start(process.execPath, [WORKER], bounds === undefined ? {} : { CORELANE_CONCURRENCY: bounds });

/**
 * Kills the worker while a question waits. Had the question waited for its second the next worker would be up, so
 * "down" is told of the death.
 */
const toldOfDeath = (words?: string) =>
  until('a question that waits is told of the death', async () => {
    const waiting = await askUntilOneWaits(program, words);
    const pid = lastUp();
    process.kill(pid, 'SIGKILL');
    const { text } = await waiting.answer;
    if (text.includes('down')) return { told: text, pid };
    // On a busy machine its second may be over before the worker dies.
    await until('another one is up', () => lastUp() !== pid);
    return undefined;
  });
const lastUp = () => program.events('up').at(-1)?.pid ?? 0;

test('it is answered when the worker dies, and again when the next one is up; without news a second later all the same', async () => {
  await start();
  expect((await (await askUntilOneWaits(program)).answer).text).toBe('up');

  const { told, pid } = await toldOfDeath();
  expect(told).toMatch(/^down #(starting|waiting)$/);
  await until('it is up again', async () => (await ask(program).answer).text === 'up');
  expect(lastUp()).not.toBe(pid);
});

test('with concurrency: Auto each answer has the number of places, before any #, in one line', async () => {
  await start('2-4');
  expect((await ask(program, 'corelane-agent 2').answer).text).toBe('up maxconn:2');
  const { told } = await toldOfDeath('corelane-agent 2');
  expect(told).toMatch(/^maxconn:2 down #(starting|waiting)$/);
  // Of another question it is how many requests go on without a slot, and one.
  await until('it is up again', async () => (await ask(program, 'corelane-alive').answer).text === 'up maxconn:1');
});

test('with concurrency: Auto a worker that is down has the places of its open responses all the same', async () => {
  await program.start(process.execPath, [WORKER], { CORELANE_CONCURRENCY: '2-2', CORELANE_WITHOUT_SLOT_MAX: '4' });
  const send = (path: string) =>
    http
      .get({ host: '127.0.0.1', port: program.port, path, agent: false }, (response) => {
        response.on('error', () => {}); // its worker has ended
        response.resume();
      })
      .on('error', () => {}); // it has gone
  const answer = async () => (await ask(program, 'corelane-agent').answer).text;
  send('/?id=download&length=100&never=1');
  await until('its slot is back', async () => (await answer()) === 'up maxconn:3');
  for (const id of ['left-0', 'left-1']) {
    const left = send(`/?hold=1&id=${id}`);
    await until(`${id} has begun`, () => program.events('begin').find((event) => event.id === id));
    left.destroy();
  }
  await until('all slots are taken', async () => (await answer()) === 'maxconn:3 down #busy');
});

test.each(['0-4', '5-4', '1-65', '1', 'x', '1-'])(
  'bounds that are none (%s): HAProxy says how many',
  async (bounds) => {
    await start(bounds);
    expect((await ask(program).answer).text).toBe('up');
  },
);

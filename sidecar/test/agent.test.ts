/** HAProxy's agent check: a question that has no news to tell waits for some. */
import { writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));
const PLAIN = fileURLToPath(new URL('apps/plain.cjs', import.meta.url));

let program: Program;
beforeEach(async () => {
  program = new Program();
  await program.start(process.execPath, [WORKER]);
});
afterEach(() => program.stop());

interface Question {
  socket: net.Socket;
  answer: Promise<{ text: string; elapsedMs: number }>;
  isAnswered: boolean;
}

/** As HAProxy does. */
function ask(words = 'corelane-agent 1', { runtimePort } = program): Question {
  const askedAt = performance.now();
  const socket = net.connect(runtimePort, '127.0.0.1', () => socket.write(`${words}\n`));
  const question: Question = {
    socket,
    isAnswered: false,
    answer: new Promise((resolve, reject) => {
      let text = '';
      socket.on('data', (chunk) => (text += chunk));
      socket.on('error', reject);
      socket.on('close', () => {
        question.isAnswered = true;
        resolve({ text: text.trim(), elapsedMs: performance.now() - askedAt });
      });
    }),
  };
  return question;
}

/** A question that waits. The one before it has told what there is. */
async function askUntilOneWaits(): Promise<Question> {
  return until('a question waits', async () => {
    await ask().answer;
    const question = ask();
    await new Promise((resolve) => setTimeout(resolve, 200));
    return question.isAnswered ? undefined : question;
  });
}

test('it is answered when the worker dies, and again when the next one is up; without news a second later all the same', async () => {
  const waited = await (await askUntilOneWaits()).answer;
  expect(waited.text).toBe('up');

  const waiting = await askUntilOneWaits();
  const pid = await program.next(0);
  process.kill(pid, 'SIGKILL');
  const told = await waiting.answer;
  expect(told.text).toMatch(/^down #(starting|waiting)$/);
  expect(told.elapsedMs).toBeLessThan(waited.elapsedMs);
  await until('it is up again', async () => (await ask().answer).text === 'up');
  expect(await program.next(pid)).not.toBe(pid);
});

test('with concurrency: Auto each answer has the number of places, before any #, in one line', async () => {
  const auto = new Program();
  try {
    await auto.start(process.execPath, [WORKER], { CORELANE_CONCURRENCY: '2-4' });
    expect((await ask('corelane-agent 2', auto).answer).text).toBe('up maxconn:2');
    process.kill(await auto.next(0), 'SIGKILL');
    const said = await until('it is down', async () => {
      const { text } = await ask('corelane-agent 2', auto).answer;
      return text.includes('down') && text;
    });
    expect(said).toMatch(/^maxconn:2 down #(starting|waiting)$/);
    // Other questions are not about places.
    await until('it is up again', async () => (await ask('corelane-alive', auto).answer).text === 'up');
  } finally {
    auto.stop();
  }
});

test.each(['0-4', '5-4', '1-65', '1', 'x', '1-'])(
  'bounds that are none (%s): HAProxy says how many',
  async (bounds) => {
    const auto = new Program();
    try {
      await auto.start(process.execPath, [WORKER], { CORELANE_CONCURRENCY: bounds });
      expect((await ask('corelane-agent 1', auto).answer).text).toBe('up');
    } finally {
      auto.stop();
    }
  },
);

test('a HAProxy that has just begun does not wait', async () => {
  const waited = await (await askUntilOneWaits()).answer;
  const left = await askUntilOneWaits();
  left.socket.destroy();
  await left.answer;
  await until('one does not wait', async () => (await ask().answer).elapsedMs < waited.elapsedMs / 2);
});

test('a worker that is no longer guarded is not up before HAProxy has been told so, 0.5 s at most', async () => {
  const plain = new Program();
  try {
    await plain.start(process.execPath, [PLAIN], { HTTP_FIRST: '1' });
    const guard = async () => (await ask('corelane-guarded', plain).answer).text;
    await until('it is guarded', async () => (await guard()) === 'up');
    writeFileSync(join(plain.folder, 'events.plain'), '');
    const [first] = plain.events('up');
    process.kill(first?.pid ?? 0, 'SIGKILL');
    // Nobody asks.
    const pid = await plain.next(first?.pid ?? 0);
    const upAt = performance.timeOrigin + performance.now();
    expect(upAt - (plain.events('up').at(-1)?.at ?? upAt)).toBeGreaterThan(300);
    expect(await guard()).toBe('down #unguarded');
    process.kill(pid, 'SIGKILL');
    await until('it is up again', async () => (await ask('corelane-agent 1', plain).answer).text === 'up');
    expect(await guard()).toBe('down #unguarded');
  } finally {
    await plain.stop();
  }
});

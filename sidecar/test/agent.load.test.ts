/**
 * HAProxy's agent check: how long a question waits. A load test: it compares times, also of two processes.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { ask, askUntilOneWaits } from './agent.ts';
import { Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));
const PLAIN = fileURLToPath(new URL('apps/plain.cjs', import.meta.url));

let program: Program;
beforeEach(() => {
  program = new Program();
});
afterEach(() => program.stop());

test('the death of a worker is told sooner than that there is no news', async () => {
  await program.start(process.execPath, [WORKER]);
  const waited = await (await askUntilOneWaits(program)).answer;
  expect(waited.text).toBe('up');
  const waiting = await askUntilOneWaits(program);
  process.kill(await program.next(0), 'SIGKILL');
  const told = await waiting.answer;
  expect(told.text).toMatch(/^down #(starting|waiting)$/);
  figure('response time of an agent check without news', waited.elapsedMs, 'ms');
  figure('response time of an agent check when the worker dies', told.elapsedMs, 'ms', '< without news');
  expect(told.elapsedMs).toBeLessThan(waited.elapsedMs);
});

test('a HAProxy that has just begun does not wait', async () => {
  await program.start(process.execPath, [WORKER]);
  const waited = await (await askUntilOneWaits(program)).answer;
  const left = await askUntilOneWaits(program);
  left.socket.destroy();
  await left.answer;
  await until('one does not wait', async () => (await ask(program).answer).elapsedMs < waited.elapsedMs / 2);
});

test('a worker that is no longer guarded is not up before HAProxy has been told so, 0.5 s at most', async () => {
  await program.start(process.execPath, [PLAIN], { HTTP_FIRST: '1' });
  const guard = async () => (await ask(program, 'corelane-guarded').answer).text;
  await until('it is guarded', async () => (await guard()) === 'up');
  writeFileSync(join(program.folder, 'events.plain'), '');
  const [first] = program.events('up');
  process.kill(first?.pid ?? 0, 'SIGKILL');
  // Nobody asks.
  const pid = await program.next(first?.pid ?? 0);
  const upAt = performance.timeOrigin + performance.now();
  const heldMs = upAt - (program.events('up').at(-1)?.at ?? upAt);
  figure('time that an unguarded worker waits before it is up', heldMs, 'ms', '> 300 ms');
  expect(heldMs).toBeGreaterThan(300);
  expect(await guard()).toBe('down #unguarded');
  process.kill(pid, 'SIGKILL');
  await until('it is up again', async () => (await ask(program, 'corelane-agent 1').answer).text === 'up');
  expect(await guard()).toBe('down #unguarded');
});

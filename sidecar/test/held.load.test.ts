/** More of what holds a render. Here because a worker counts as stuck after 1.5 s, and V8 fills a heap. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../e2e/harness/engine/pod.ts';
import { expectHeld, HOLDS } from './held.ts';
import { get, Program } from './program.ts';

let program: Program;
beforeEach(() => {
  program = new Program();
});
afterEach(() => program.stop());

test('a heap snapshot that V8 makes by itself holds a render: it is not stuck', () =>
  expectHeld(program, '/open', 'a heap snapshot', 'a.heapsnapshot'));

test('somebody else who has paused the program holds a render: it is not stuck', () =>
  expectHeld(program, '/pause', 'a debugger'));

/** A worker may stand still for 1,500 ms. */
async function passed(ms: number): Promise<void> {
  const since = performance.now();
  await until(`${ms} ms are over`, () => performance.now() - since > ms);
}

test('a program that has opened the inspector and waits for a debugger is not stuck', async () => {
  await program.start(process.execPath, [HOLDS]);
  const first = (await get(program.port, '/')).body;
  const answer = get(program.port, '/debug');
  const url = await until('it waits', () => /ws:\S+/.exec(program.output)?.[0]);
  await passed(3_000);
  const debug = new WebSocket(url);
  debug.onopen = () => debug.send(JSON.stringify({ id: 1, method: 'Runtime.runIfWaitingForDebugger' }));
  expect((await answer).body).toBe(first);
  debug.close();
  expect(program.output).not.toMatch(/"event":"(held|stalled|kill|restart)"/);
});

test('a program that has closed the inspector and does not return is stuck', async () => {
  await program.start(process.execPath, [HOLDS]);
  expect((await get(program.port, '/')).status).toBe(200);
  get(program.port, '/closed').catch(() => {}); // its process is killed
  await until('it is killed', () => program.output.includes('"reason":"stalled"'));
});

test('a pause of the whole container: nobody was stuck', async () => {
  await program.start(process.execPath, [HOLDS]);
  const worker = Number((await get(program.port, '/')).body);
  const supervisor = program.process?.pid ?? 0;
  for (const pid of [worker, supervisor]) process.kill(pid, 'SIGSTOP');
  try {
    await passed(3_000);
    process.kill(supervisor, 'SIGCONT');
    // So that the supervisor looks before it hears of the worker.
    await passed(500);
  } finally {
    for (const pid of [supervisor, worker]) process.kill(pid, 'SIGCONT');
  }
  expect((await get(program.port, '/')).body).toBe(String(worker));
  await passed(3_000);
  expect(program.output).not.toMatch(/"event":"(held|stalled|kill|restart)"/);
});

test('--heapsnapshot-near-heap-limit: the snapshot is whole', async () => {
  const options = ['--heapsnapshot-near-heap-limit=1', '--max-old-space-size=40', `--diagnostic-dir=${program.folder}`];
  await program.start(process.execPath, [...options, HOLDS]);
  get(program.port, '/leak').catch(() => 'lost');
  await until(`it has run out of memory; ${program.output}`, () => program.output.includes('"event":"restart"'));
  expect(program.output).toMatch(/"event":"restart","reason":"signal","code":null,"signal":"SIGABRT"/);
  expect(program.output).not.toContain('"event":"kill"');
  const [snapshot = ''] = readdirSync(program.folder).filter((name) => name.endsWith('.heapsnapshot'));
  expect(Object.keys(JSON.parse(readFileSync(join(program.folder, snapshot), 'utf8')))).toContain('snapshot');
});

/** What holds a process from outside of its program, as /proc shows it, and that the watchdog waits for it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expectHeld } from './held.ts';
import { Program, RUNTIME } from './program.ts';

interface Processes {
  holderOf(pid: number): string | undefined;
}

const { holderOf }: Processes = createRequire(import.meta.url)(join(dirname(RUNTIME), 'processes.cjs'));
/** The number of ptrace(2). */
const PTRACE = process.arch === 'arm64' ? 117 : 101;
/** Starts a process that asks to be traced (PTRACE_TRACEME is 0) and stops; says its number. */
const TRACER = `
  my $traced = fork;
  if (!$traced) { syscall(0 + $ARGV[0], 0, 0, 0, 0); kill STOP => $$; exit }
  waitpid $traced, 2;
  $| = 1;
  print $traced;
  sleep 60;
`;

describe('a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-held-'));
  let child: ChildProcess | undefined;
  afterEach(() => child?.kill('SIGKILL'));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** One that has opened a file. */
  async function holding(name: string, flags: string): Promise<number> {
    const file = join(folder, name);
    writeFileSync(file, '');
    const script = `require('node:fs').openSync(process.argv[1], '${flags}'); console.log('open'); setInterval(() => {}, 60_000)`;
    child = spawn(process.execPath, ['-e', script, file], { env: { ...process.env, NODE_OPTIONS: '' } });
    await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
    return child.pid ?? 0;
  }

  test.each([
    ['a.heapsnapshot', 'w', 'a heap snapshot'],
    ['b.heapsnapshot', 'a+', 'a heap snapshot'],
    // It is being sent somewhere.
    ['a.heapsnapshot', 'r', undefined],
    ['heapsnapshot', 'w', undefined],
  ])('that has opened %s (%s) is held by %s', async (name, flags, by) => {
    const pid = await holding(name, flags);
    expect(holderOf(pid)).toBe(by);
  });

  test('that a debugger has stopped is held by it', async () => {
    child = spawn('perl', ['-e', TRACER, String(PTRACE)]);
    const [traced] = await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
    const found = holderOf(Number(traced));
    process.kill(Number(traced), 'SIGKILL');
    expect(found).toBe('a debugger');
  });

  test('that has ended is held by nothing', () => {
    expect(holderOf(0)).toBeUndefined();
  });
});

test.each([
  ['v8.writeHeapSnapshot', '/write', 'dump'],
  ['a Session of the inspector', '/session', ''],
])('%s holds a render: it is not stuck', async (_what, path, file) => {
  // Longer than a worker can be without CPU.
  const program = new Program(4_000);
  try {
    await expectHeld(program, path, 'a heap snapshot', file);
  } finally {
    await program.stop();
  }
});

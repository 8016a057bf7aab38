/**
 * The notes of what a server process has begun, in the shared memory of this machine, with processes that really end.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jest } from '@jest/globals';
import { CURRENT_MUTANT, mutated } from './mutants/mutants.ts';

interface Supervisor {
  port: number;
  token: string;
}
interface Begun {
  RequestJournal: new (supervisor: Supervisor) => { begin(id?: string): number; end(place: number): void };
  expectJournalOf(supervisor: Supervisor, pid: number | undefined): void;
  sweep(supervisor: Supervisor): void;
  wasBegun(
    supervisor: Supervisor,
    id: string,
    ageMs: number,
    refuse?: (pid: number) => Promise<boolean>,
  ): Promise<string>;
}

/** No port, so that nobody else has it. */
const PORT = 90_000 + (process.pid % 10_000);
const FOLDER = '/dev/shm';
const files = () => readdirSync(FOLDER).filter((name) => name.includes(`-${PORT}-`));

const runtime = mkdtempSync(join(tmpdir(), 'corelane-begun-'));
const source = join(runtime, 'request-journal.cjs');
let supervisor: Supervisor;
let begun: Begun;
let count = 0;

beforeAll(() => {
  cpSync(fileURLToPath(new URL('../runtime', import.meta.url)), runtime, { recursive: true });
  if (CURRENT_MUTANT)
    writeFileSync(source, mutated(CURRENT_MUTANT, 'request-journal.cjs', readFileSync(source, 'utf8')));
});
/** A new supervisor: files of another one go at once. */
beforeEach(() => {
  jest.resetModules();
  begun = createRequire(import.meta.url)(source);
  count += 1;
  supervisor = { port: PORT, token: `token-${count}` };
  begun.sweep(supervisor);
});
afterAll(() => {
  begun.sweep({ port: PORT, token: 'none' });
  rmSync(runtime, { recursive: true });
});

/** Lets a process that is ended by SIGKILL do something with its `notes`; the supervisor knows of it. */
function server(script: string, makesNotes = true): number {
  const notes = `const notes = new (require(${JSON.stringify(source)}).RequestJournal)(${JSON.stringify(supervisor)});`;
  const end = 'require("node:fs").writeSync(1, String(process.pid)); process.kill(process.pid, "SIGKILL");';
  const shell = `"$0" -e '${makesNotes ? notes : ''}${script};${end}' || :`;
  const pid = Number(execFileSync('sh', ['-c', shell, process.execPath], { stdio: ['ignore', 'pipe', 'ignore'] }));
  begun.expectJournalOf(supervisor, pid);
  return pid;
}

const was = (id: string, ageMs = 0) => begun.wasBegun(supervisor, id, ageMs);

test('what a process has begun is known when it has been killed, and what it has not', async () => {
  server('notes.begin("one.1"); notes.end(notes.begin("two"))');
  expect([await was('one.1'), await was('two'), await was('one'), await was('three')]).toEqual([
    'yes',
    'yes',
    'no',
    'no',
  ]);
});

test('unknown: no server has been there; none of this time; no id; no age', async () => {
  expect(await was('a')).toBe('unknown');
  server('');
  expect(await was('a')).toBe('no');
  // Longer ago than there has been a supervisor.
  expect(await was('a', 1_000 * (process.uptime() + 1))).toBe('unknown');
  expect(await was('a', Number.NaN)).toBe('unknown');
  expect(await was('')).toBe('unknown');
});

test('unknown: a server is still there, and may have the request in its socket', async () => {
  server('');
  new begun.RequestJournal(supervisor);
  begun.expectJournalOf(supervisor, process.pid);
  expect(await was('a')).toBe('unknown');
});

test('a server that lives: what it has not begun it must promise never to begin', async () => {
  const asked: number[] = [];
  const promise = async (pid: number) => asked.push(pid) > 0;
  const notes = new begun.RequestJournal(supervisor);
  begun.expectJournalOf(supervisor, process.pid);
  notes.begin('noted');
  const asks = (id: string, refuse = promise) => begun.wasBegun(supervisor, id, 0, refuse);
  expect([await asks('noted'), await asks('a'), await asks('a', async () => false)]).toEqual(['yes', 'no', 'unknown']);
  // A promise is made for what needs one only: there are so many.
  expect(asked).toEqual([process.pid]);
  // It may have come to its parent, which would hand it on.
  begun.expectJournalOf(supervisor, process.ppid);
  expect(await asks('a')).toBe('unknown');
  expect(asked).toHaveLength(1);
});

test('a server that lives and may begin it while it promises: the note counts', async () => {
  const notes = new begun.RequestJournal(supervisor);
  begun.expectJournalOf(supervisor, process.pid);
  const answer = await begun.wasBegun(supervisor, 'late', 0, async () => notes.begin('late') >= 0);
  expect(answer).toBe('yes');
});

test('a server that cannot promise any more, because it is being killed: when it has ended, its notes count', async () => {
  // The supervisor sees a process that is there for longer than one that ends usually is.
  const pid = spawn('sleep', ['60'], { stdio: 'ignore' }).pid ?? 0;
  const name = `corelane-begun-${hostname()}-${PORT}-${supervisor.token}-${pid}-0-0`;
  writeFileSync(join(FOLDER, name), '\n'.repeat(1_024 * 129));
  begun.expectJournalOf(supervisor, pid);
  const answer = begun.wasBegun(supervisor, 'unbegun', 0, async () => {
    process.kill(pid, 'SIGKILL');
    return false;
  });
  expect(await answer).toBe('no');
});

test('unknown: one of several servers has no notes, or nobody knows which one it was', async () => {
  server('notes.begin("of-first")');
  server('', false);
  expect([await was('of-first'), await was('of-none')]).toEqual(['yes', 'unknown']);
});

test('unknown: a server that cannot be watched', async () => {
  server('');
  begun.expectJournalOf(supervisor, undefined);
  expect(await was('a')).toBe('unknown');
});

test('unknown: notes that are not whole, or are no longer there', async () => {
  server('notes.begin("noted")');
  const [file = ''] = files();
  renameSync(join(FOLDER, file), join(FOLDER, `hidden-${file}`));
  expect(await was('a')).toBe('unknown');
  renameSync(join(FOLDER, `hidden-${file}`), join(FOLDER, file));
  expect(await was('a')).toBe('no');
  truncateSync(join(FOLDER, file), 1_000);
  expect([await was('a'), await was('noted')]).toEqual(['unknown', 'yes']);
});

test('who has ended is remembered for a while, who has not for as long as it takes', async () => {
  server('notes.begin("long"); for (let n = 0; n < 1000; n += 1) notes.end(notes.begin("short-" + n))');
  expect([await was('long'), await was('short-999'), await was('short-800'), await was('other')]).toEqual([
    ...['yes', 'yes', 'yes', 'no'],
  ]);
});

test('who has not ended keeps his place, however many come and go beside him', async () => {
  const beside = 'for (let n = 0; n < 3000; n += 1) notes.end(notes.begin("short-" + n))';
  server(`const first = notes.begin("first"); notes.begin("one"); notes.end(first); notes.begin("other"); ${beside}`);
  expect([await was('one'), await was('other'), await was('short-2999'), await was('short-2000')]).toEqual(
    Array(4).fill('yes'),
  );
  // With concurrency: 1000 there are 24 other places.
  server(
    `for (let n = 0; n < 1000; n += 1) notes.begin("busy-" + n); notes.end(notes.begin("done")); ${beside.replace('3000', '23')}`,
  );
  expect([await was('busy-0'), await was('busy-999'), await was('done')]).toEqual(Array(3).fill('yes'));
});

test('more at a time than there are places: unknown from then on', async () => {
  server('for (let n = 0; n < 1024; n += 1) notes.begin("busy-" + n)');
  expect(await was('other')).toBe('no');
  server('for (let n = 0; n < 1025; n += 1) notes.begin("busy-" + n)');
  expect(await was('other')).toBe('unknown');
});

test('a request without an id could be any one, for as long as it takes', async () => {
  server('notes.end(notes.begin(undefined)); notes.end(notes.begin("x".repeat(129)))');
  expect(await was('a')).toBe('no');
  server('notes.begin(undefined)');
  expect(await was('a')).toBe('unknown');
});

test('notes of a process that has just ended are kept, those of an earlier supervisor are not', async () => {
  server('notes.begin("kept")');
  begun.sweep(supervisor);
  expect([await was('kept'), files().length]).toEqual(['yes', 1]);
  begun.sweep({ ...supervisor, token: 'next' });
  expect(files()).toEqual([]);
});

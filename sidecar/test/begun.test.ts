/** The notes of what a server process has begun, in the shared memory of this machine. */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';

interface Supervisor {
  port: number;
  token: string;
}
const { BegunNotes, expectNotesOf, sweep, wasBegun } = createRequire(import.meta.url)('../runtime/begun.cjs') as {
  BegunNotes: new (supervisor: Supervisor) => { begin(id?: string): number; end(place: number): void };
  expectNotesOf(pid: number): void;
  sweep(supervisor: Supervisor): void;
  wasBegun(supervisor: Supervisor, id: string, ageMs: number): string;
};

/** No port, so that nobody else has it. */
const PORT = 90_000 + (process.pid % 10_000);
let supervisor: Supervisor;
let count = 0;
beforeEach(() => {
  count += 1;
  supervisor = { port: PORT, token: `token-${count}` };
});
// Files of another supervisor go at once.
afterAll(() => sweep({ port: PORT, token: 'none' }));

const files = () => readdirSync('/dev/shm').filter((name) => name.includes(`-${PORT}-`));

test('no server has been there, or it has no notes: unknown', () => {
  new BegunNotes(supervisor);
  expect(wasBegun(supervisor, 'a', 0)).toBe('unknown');
  expectNotesOf(process.pid);
  expect(wasBegun(supervisor, 'a', 0)).toBe('no');
  expect(wasBegun({ ...supervisor, token: 'without' }, 'a', 0)).toBe('unknown');
});

test('who has ended is remembered for a while, who has not for as long as it takes', () => {
  const notes = new BegunNotes(supervisor);
  notes.begin('long');
  for (let n = 0; n < 1_000; n += 1) notes.end(notes.begin(`short-${n}`));
  expect(wasBegun(supervisor, 'long', 0)).toBe('yes');
  expect(wasBegun(supervisor, 'short-999', 0)).toBe('yes');
  expect(wasBegun(supervisor, 'short-800', 0)).toBe('yes');
  expect(wasBegun(supervisor, 'other', 0)).toBe('no');
});

test('more at a time than there are places: unknown from then on', () => {
  const notes = new BegunNotes(supervisor);
  for (let n = 0; n < 256; n += 1) notes.begin(`busy-${n}`);
  expect(wasBegun(supervisor, 'other', 0)).toBe('no');
  notes.begin('one-more');
  expect(wasBegun(supervisor, 'one-more', 0)).toBe('unknown');
  expect(wasBegun(supervisor, 'other', 0)).toBe('unknown');
});

test('a request without an id is not noted, and nobody asks for it', () => {
  const notes = new BegunNotes(supervisor);
  expect([notes.begin(undefined), notes.begin('x'.repeat(129))]).toEqual([-1, -1]);
  expect(wasBegun(supervisor, '', 0)).toBe('unknown');
  expect(wasBegun(supervisor, 'other', 0)).toBe('no');
});

test('the notes of a process that has just ended are kept, those of an earlier supervisor are not', () => {
  sweep({ port: PORT, token: 'none' });
  expect(files()).toEqual([]);
  new BegunNotes(supervisor).begin('kept');
  sweep(supervisor);
  expect(wasBegun(supervisor, 'kept', 0)).toBe('yes');
  sweep({ ...supervisor, token: 'next' });
  expect(files()).toEqual([]);
});

test('one of several processes has none: unknown, but for what another one has begun', () => {
  new BegunNotes(supervisor).begin('of-first');
  expectNotesOf(process.pid + 1);
  expect(['of-first', 'of-none'].map((id) => wasBegun(supervisor, id, 0))).toEqual(['yes', 'unknown']);
});

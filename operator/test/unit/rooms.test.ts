/**
 * The rooms of the house: the table in CONTRIBUTING.md says which folder may import which. Written here instead of by a
 * package: those that could do it (knip, dependency-cruiser) bring forty packages and more, or need the JavaScript API
 * that TypeScript 7 does not have.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** The section of the table. */
const [, section = ''] = /^## Folders$(.*?)^## /ms.exec(read('CONTRIBUTING.md')) ?? [];
/** Room, what it is for, what it may import. */
const rooms = new Map(
  [...section.matchAll(/^\| `([^`|]+)` \| [^|]+ \| ?([^|]*)\|$/gm)].map(([, room, may]) => [
    room as string,
    [...(may as string).matchAll(/`([^`]+)`/g)].map(([, name]) => name as string),
  ]),
);
const files = globSync('{operator,sidecar,e2e,bench,examples,.ci}/**/*.{ts,tsx,mjs,cjs}', {
  cwd: root,
  exclude: (path) => /node_modules|(^|\/)dist(\/|$)/.test(path),
}).sort();
const texts = new Map(files.map((file) => [file, read(file)]));

/** The innermost room of a path. */
function roomOf(path: string): string | undefined {
  return [...rooms.keys()].filter((room) => path.startsWith(`${room}/`)).sort((a, b) => b.length - a.length)[0];
}

function importsOf(file: string): string[] {
  const found = (texts.get(file) ?? '').matchAll(
    /(?:\bfrom|\bimport|\brequire|\bnew URL)\s*\(?\s*'(\.{1,2}\/[^']+\.[cm]?[jt]sx?)'/g,
  );
  return [...found].map(([, path]) => normalize(join(dirname(file), path as string)));
}

test('the table has rooms, each is there, and each may only import rooms', () => {
  expect(rooms.size).toBeGreaterThan(15);
  for (const [room, may] of rooms) {
    expect([room, existsSync(join(root, room))]).toEqual([room, true]);
    for (const other of may) expect(rooms.has(other) ? other : `${room}: no room ${other}`).toBe(other);
  }
});

test('every file is in a room', () => {
  expect(files.filter((file) => roomOf(file) === undefined)).toEqual([]);
});

test('nothing is imported that the table does not allow', () => {
  const wrong = files.flatMap((file) => {
    const room = roomOf(file) as string;
    return importsOf(file)
      .map((target) => ({ target, of: roomOf(target) }))
      .filter(({ of }) => of !== undefined && of !== room && !rooms.get(room)?.includes(of))
      .map(({ target }) => `${file} imports ${target}`);
  });
  expect(wrong).toEqual([]);
});

test('the table allows nothing that nobody needs', () => {
  const needed = new Set(files.flatMap((file) => importsOf(file).map((target) => `${roomOf(file)} ${roomOf(target)}`)));
  const idle = [...rooms]
    .flatMap(([room, may]) => may.map((other) => `${room} ${other}`))
    .filter((pair) => !needed.has(pair));
  expect(idle).toEqual([]);
});

test('no value is exported for nobody', () => {
  const words = new Map(files.map((file) => [file, new Set((texts.get(file) ?? '').match(/\w+/g))]));
  const importers = new Map<string, string[]>();
  for (const file of files)
    for (const target of new Set(importsOf(file))) importers.set(target, [...(importers.get(target) ?? []), file]);
  const dead = files
    // Of an example its framework reads what it exports.
    .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts') && !file.startsWith('examples/'))
    .flatMap((file) => {
      const names = (texts.get(file) ?? '').matchAll(/^export (?:const|function\*?|async function\*?|class) (\w+)/gm);
      const others = (importers.get(file) ?? []).filter((other) => other !== file);
      return [...names]
        .map(([, name]) => name as string)
        .filter((name) => !others.some((other) => words.get(other)?.has(name)))
        .map((name) => `${file} ${name}`);
    });
  expect(dead).toEqual([]);
});

/** Opening the page: its address must not stand where everybody on the machine can read it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openSecretly } from '../../../cli/dashboard/open-page.ts';
import { until } from '../../../local/http.ts';

const ADDRESS = 'http://127.0.0.1:41000/k3y/';
const { PATH } = process.env;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-open-'));
});
afterEach(() => {
  process.env.PATH = PATH;
  rmSync(folder, { recursive: true });
});

test('the browser is given a file that leads there, which nobody else can read; it is removed at the end', async () => {
  for (const name of ['open', 'xdg-open'])
    writeFileSync(join(folder, name), `#!/bin/sh\necho "$@" >${folder}/part && mv ${folder}/part ${folder}/given\n`, {
      mode: 0o755,
    });
  process.env.PATH = `${folder}${delimiter}${PATH}`;
  const forget = openSecretly(ADDRESS, () => {});
  const given = await until(
    'it was called',
    () => existsSync(join(folder, 'given')) && readFileSync(join(folder, 'given'), 'utf8'),
  );
  expect(given).not.toContain('k3y');
  const file = fileURLToPath(String(given).trim());
  expect(readFileSync(file, 'utf8')).toContain(`content="0; url=${ADDRESS}"`);
  expect(statSync(file).mode & 0o077).toBe(0);
  expect(statSync(dirname(file)).mode & 0o077).toBe(0);
  forget();
  expect(existsSync(dirname(file))).toBe(false);
});

test('without a program that opens it, that is said', async () => {
  process.env.PATH = folder;
  let isSaid = false;
  const forget = openSecretly(ADDRESS, () => {
    isSaid = true;
  });
  await until('it is said', () => isSaid);
  forget();
});

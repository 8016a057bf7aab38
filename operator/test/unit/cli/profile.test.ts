/** The files that `corelane profile` writes. */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileName, writeProfile } from '../../../cli/profile.ts';
import { replaceFileBy } from '../../../cli/replace-file.ts';
import { cpuProfile } from '../dashboard/sources.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-profile-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([
  ['shop-7f9c-0', 'shop-7f9c-0-worker-3'],
  ['../../etc/cron.d/shop', 'etc-cron.d-shop-worker-3'],
  ['/etc/shop', 'etc-shop-worker-3'],
  ['-rf\u001b[2J', 'rf-2J-worker-3'],
])('whatever a pod is called (%j), its file lies in this folder', (pod, name) => {
  expect(fileName(pod, 'worker-3')).toBe(name);
});

test('what others have put there under that name leads nowhere, and they read nothing', async () => {
  const target = join(folder, 'mine');
  writeFileSync(target, 'mine');
  const output = join(folder, 'shop-0-worker-0');
  for (const ending of ['html', 'cpuprofile', 'heapsnapshot']) symlinkSync(target, `${output}.${ending}`);
  writeProfile(cpuProfile('render'), output, 'worker-0 of shop-0');
  await replaceFileBy(`${output}.heapsnapshot`, async (fresh) => writeFileSync(fresh, 'heap'));
  expect(['mine', 'shop-0-worker-0.heapsnapshot'].map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual([
    'mine',
    'heap',
  ]);
  expect(readFileSync(`${output}.html`, 'utf8')).toContain('worker-0 of shop-0');
  // Nor do other users of the machine read what a program in production has in memory.
  const modes = ['html', 'cpuprofile', 'heapsnapshot'].map((ending) => statSync(`${output}.${ending}`).mode & 0o077);
  expect(modes).toEqual([0, 0, 0]);
});

test('half of a heap snapshot is not left', async () => {
  const file = join(folder, 'a.heapsnapshot');
  const fails = async (fresh: string) => {
    writeFileSync(fresh, 'half');
    throw new Error('broke off');
  };
  await expect(replaceFileBy(file, fails)).rejects.toThrow('broke off');
  expect([existsSync(file), readdirSync(folder)]).toEqual([false, []]);
});

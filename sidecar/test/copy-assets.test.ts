/** The program that copies assets in the user's image: what it finds there, what it leaves out, when it gives up. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { APP_FILES, AppFiles, BUILT } from '../../e2e/harness/engine/app-files.ts';
import { docker, engine, prepare, RESTRICTED, SIDECAR_IMAGE } from '../../e2e/harness/engine/docker.ts';

/** Nothing but files: no shell, no C library, no Node.js. */
const BARE_IMAGE = 'corelane.local/test-bare-image:1';
const ROOT = 0;
const ENOUGH = 1024 ** 2;

let program: string;
let target: string;
let files: AppFiles;
beforeAll(async () => {
  await prepare();
  program = mkdtempSync(join(tmpdir(), 'corelane-program-'));
  const copy = ['cp', '/usr/share/corelane/runtime/copy-assets', '/corelane'];
  await docker(
    'run',
    '--rm',
    '--user',
    '0',
    '--entrypoint',
    '',
    '--volume',
    `${program}:/corelane`,
    SIDECAR_IMAGE,
    ...copy,
  );
  execFileSync('chmod', ['-R', 'a+rX', program]);
});
beforeEach(() => {
  target = mkdtempSync(join(tmpdir(), 'corelane-target-'));
  execFileSync('chmod', ['0777', target]);
});
afterEach(() => {
  files?.remove();
  rmSync(target, { recursive: true, force: true });
});
afterAll(() => rmSync(program, { recursive: true, force: true }));

/** As the plan has it, in an image of which nothing is needed; gives what the program says. */
async function copy(from: string, { bytesMax = ENOUGH, image = SIDECAR_IMAGE, to = '/to/0/x' } = {}): Promise<string> {
  const mounts = ['--volume', `${program}:/corelane:ro`, '--volume', `${target}:/to`, ...files.options];
  const options = [...RESTRICTED, '--user', '10001:10001', '--workdir', APP_FILES, '--network', 'none', ...mounts];
  return engine.runToEnd(...options, '--entrypoint', '/corelane/copy-assets', image, String(bytesMax), to, from);
}

test('files, folders and times come over, whoever owns them', async () => {
  files = new AppFiles({ 'static/a/b/c.js': 'text', 'static/[x] y/ä.css': '', 'other/d.js': 'no' });
  expect(await copy(`${APP_FILES}/static`)).toBe('corelane-assets: 2 files, 20 KiB of the disk');
  expect(readdirSync(join(target, '0/x'), { recursive: true }).sort()).toEqual(
    ['[x] y', '[x] y/ä.css', 'a', 'a/b', 'a/b/c.js'].sort(),
  );
  const { mtimeMs, mode } = statSync(join(target, '0/x/a/b/c.js'));
  expect([mtimeMs, mode & 0o777]).toEqual([BUILT.getTime(), 0o644]);
});

test('it runs in an image that has nothing else', async () => {
  files = new AppFiles({ 'static/a.js': 'text' });
  execFileSync('sh', ['-c', `tar -C ${files.folder} -c . | ${engine.command} import - ${BARE_IMAGE}`]);
  try {
    expect(await copy('static', { image: BARE_IMAGE })).toBe('corelane-assets: 1 files, 8 KiB of the disk');
  } finally {
    await docker('image', 'rm', BARE_IMAGE);
  }
});

test('once more over what is there, as when the sandbox of the pod was made anew', async () => {
  files = new AppFiles({ 'static/a.js': 'first' });
  await copy('static');
  files.write('static/a.js', 'second');
  await copy('static');
  expect(readFileSync(join(target, '0/x/a.js'), 'utf8')).toBe('second');
});

test('links: below the folder they are files, others are left out and named', async () => {
  files = new AppFiles({
    'real/app.js': 'text',
    'real/folder/in.js': 'text',
    'real/link.js': '-> app.js',
    'real/linked': '-> folder',
    'real/absolute.js': `-> ${APP_FILES}/real/app.js`,
    'real/passwd': '-> /etc/passwd',
    'real/up': '-> ..',
    'real/self': '-> .',
    'real/folder/loop': '-> ../../real',
    'real/gone': '-> nowhere',
    'real-beside/secret': 'x',
    'real/beside': '-> ../real-beside/secret',
    static: '-> real',
  });
  const said = await copy('static');
  expect(said).toContain('5 files');
  for (const name of ['passwd', 'up', 'gone', 'beside'])
    expect(said).toContain(`real/${name} is a link that leads out`);
  for (const name of ['self', 'folder/loop'])
    expect(said).toContain(`real/${name} is a link to a folder that it is in`);
  const found = readdirSync(join(target, '0/x'), { recursive: true, withFileTypes: true });
  expect(found.filter((entry) => entry.isSymbolicLink())).toEqual([]);
  expect(readdirSync(join(target, '0/x')).sort()).toEqual(['absolute.js', 'app.js', 'folder', 'link.js', 'linked']);
});

test('a part that may have any name, if one folder fits', async () => {
  files = new AppFiles({ 'dist/shop/browser/main.js': 'text', 'dist/shop/server/main.js': '', 'dist/stats.json': '' });
  await copy('dist/*/browser');
  expect(readdirSync(join(target, '0/x'))).toEqual(['main.js']);
  files.write('dist/admin/browser/main.js', '');
  await expect(copy('dist/*/browser')).rejects.toThrow(
    /from "dist\/\*\/browser" could be "dist\/(shop|admin)\/browser" or "dist\/(admin|shop)\/browser": name one/,
  );
});

describe('a folder that may be in another one', () => {
  const BUILD = '.next/static';
  test('it is that of the only application of a monorepo', async () => {
    files = new AppFiles({
      [`apps/web/${BUILD}/a.js`]: 'text',
      [`node_modules/some-package/${BUILD}/b.js`]: '',
      [`.cache/c/${BUILD}/c.js`]: '',
      [`apps/web/deeper/${BUILD}/d.js`]: '',
      linked: '-> apps/web',
    });
    await copy(`**/${BUILD}`);
    expect(readdirSync(join(target, '0/x'))).toEqual(['a.js']);
    await expect(copy(BUILD)).rejects.toThrow(/from "\.next\/static" is no folder of the image/);
  });

  test('of two applications it is neither', async () => {
    files = new AppFiles({ [`apps/web/${BUILD}/a.js`]: '', [`docs/${BUILD}/b.js`]: '' });
    await expect(copy(`**/${BUILD}`)).rejects.toThrow(
      /from "\.next\/static" could be "(apps\/web|docs)\/\.next\/static" or "(apps\/web|docs)\/\.next\/static": name one/,
    );
  });

  test('one that is there comes first, and may have a part of any name', async () => {
    files = new AppFiles({ [`${BUILD}/a.js`]: '', [`apps/web/${BUILD}/b.js`]: '' });
    await copy(`**/${BUILD}`);
    expect(readdirSync(join(target, '0/x'))).toEqual(['a.js']);
    await copy('**/*/web/.next/static', { to: '/to/1/x' });
    expect(readdirSync(join(target, '1/x'))).toEqual(['b.js']);
  });

  test('none is said as one that is looked for in one place', async () => {
    files = new AppFiles({ 'static/a.js': '' });
    await expect(copy(`**/${BUILD}`)).rejects.toThrow(
      /from "\.next\/static" is no folder of the image \(looked in \/srv\/app\)/,
    );
  });
});

test.each([
  ['nothing is there', '.next/static', /from "\.next\/static" is no folder of the image \(looked in \/srv\/app\)/],
  ['the same, absolute', '/app/.next/static', /from "\/app\/\.next\/static" is no folder of the image\. docs/],
  ['it is a file', 'static/a.js', /from "static\/a\.js" is no folder/],
  ['none fits', 'dist/*/browser', /from "dist\/\*\/browser" is no folder/],
])('gives up: %s', async (_what, from, message) => {
  files = new AppFiles({ 'static/a.js': 'text' });
  await expect(copy(from)).rejects.toThrow(message);
  expect(readdirSync(target)).toEqual([]);
});

test('gives up: more than there is room for', async () => {
  files = new AppFiles({ 'static/a.js': Buffer.alloc(600), 'static/b.js': Buffer.alloc(600) });
  // As kubelet counts: a folder and each file take a block at least.
  await copy('static', { bytesMax: 3 * 4096 });
  await expect(copy('static', { bytesMax: 3 * 4096 - 1 })).rejects.toThrow(
    'the assets take more than the 12287 bytes of sidecar.assets.sizeLimit: make it larger, or name smaller folders',
  );
});

test('gives up: a file that its user may not read', async () => {
  files = new AppFiles({ 'static/a.js': 'text' });
  execFileSync('chmod', ['0600', join(files.folder, 'static/a.js')]);
  expect(process.getuid?.()).toBe(ROOT); // else the file is the user's own
  await expect(copy('static')).rejects.toThrow(
    /static\/a\.js cannot be read by user 10001: Permission denied\. Make it/,
  );
});

test('gives up: folders without end', async () => {
  files = new AppFiles({ [`static/${'a/'.repeat(40)}b.js`]: 'text' });
  await expect(copy('static')).rejects.toThrow(/folders are more than 32 deep/);
});

test('what is no file is left out', async () => {
  files = new AppFiles({ 'static/a.js': 'text' });
  mkdirSync(join(files.folder, 'static/x'));
  execFileSync('mkfifo', [join(files.folder, 'static/x/pipe')]);
  expect(await copy('static')).toMatch(/x\/pipe is no file\n.* 1 files, 12 KiB of the disk$/);
});

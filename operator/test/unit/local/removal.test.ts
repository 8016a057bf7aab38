/** Containers that the engine does not remove at once. A script stands for it: a zombie cannot be made to last. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Engine } from '../../../local/engine.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-removal-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** An engine whose program notes what it is asked, and then does this. */
function engine(script: string): { engine: Engine; asked: () => string[] } {
  const log = join(folder, 'log');
  writeFileSync(join(folder, 'docker'), `#!/bin/sh\necho "$@" >>${log}\n${script}\n`, { mode: 0o755 });
  const env = { PATH: `${folder}:${process.env.PATH}` };
  return {
    engine: new Engine({ command: 'docker', prefix: 'corelane.unit', env }),
    asked: () => readFileSync(log, 'utf8').trim().split('\n'),
  };
}

const LIST = 'ps --all --quiet --no-trunc';
const ZOMBIE = 'echo "PID 7 is zombie and can not be killed" >&2; exit 1';

test('what is still there is removed by another try, without what has gone', async () => {
  const { engine: docker, asked } = engine(`case "$*" in ps*) echo b;; *"a b") ${ZOMBIE};; esac`);
  await docker.remove('a', 'b');
  expect(asked()).toEqual(['rm --force --volumes a b', LIST, 'rm --force --volumes b']);
});

test('what somebody else has removed is no error', async () => {
  const { engine: docker, asked } = engine('case "$1" in rm) echo "No such container: a" >&2; exit 1;; esac');
  await docker.remove('a');
  expect(asked()).toEqual(['rm --force --volumes a', LIST]);
});

test('what stays there is an error in the end', async () => {
  const { engine: docker } = engine(`case "$1" in ps) echo a;; rm) ${ZOMBIE};; esac`);
  await expect(docker.remove('a')).rejects.toThrow('is zombie and can not be killed');
});

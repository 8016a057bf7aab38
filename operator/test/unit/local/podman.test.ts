/**
 * Where Podman's words differ from Docker's. A script stands for the program: CI has no Podman, and docs/run.md says
 * what was tried by hand.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Engine } from '../../../local/engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'corelane-podman-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['docker', 'rm --force --volumes a b'],
  ['podman', 'rm --force --volumes --depend --ignore --time 0 a b'],
])('%s removes containers that share a network at once', async (command, said) => {
  const log = join(folder, `${command}.log`);
  writeFileSync(join(folder, command), `#!/bin/sh\necho "$@" >>${log}\n`, { mode: 0o755 });
  const engine = new Engine({ command, prefix: 'corelane.unit', env: { PATH: `${folder}:${process.env.PATH}` } });
  await engine.remove('a', 'b');
  expect(readFileSync(log, 'utf8').trim()).toBe(said);
});

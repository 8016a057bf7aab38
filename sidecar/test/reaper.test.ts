/** The reaper, as the image has it, with a process that does not go although it has been killed. */
import { fileURLToPath } from 'node:url';
import { docker, LABEL, prepare, RUN_ID, SIDECAR_IMAGE } from '../../e2e/harness/engine/docker.ts';

const APPS = fileURLToPath(new URL('apps', import.meta.url));

beforeAll(prepare);

test('a process that cannot be reaped does not hide the end of the worker', async () => {
  const said = await docker(
    ...['run', '--rm', '--network', 'none', '--label', `${LABEL}=${RUN_ID}`, '--cap-add', 'SYS_PTRACE', '--user', '0'],
    ...['--volume', `${APPS}:/app:ro`, '--entrypoint', 'perl', SIDECAR_IMAGE, '/app/unreaped.pl'],
  );
  // The worker's own code, and the process of which nothing but its number is left.
  expect(said).toBe('ended with 7, left Z');
});

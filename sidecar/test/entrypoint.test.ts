/** Process 1 of the proxies, with what operators of other versions, and nobody, would write into pod.env. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, runSidecar } from '../../e2e/harness/engine/docker.ts';
import { renderServiceSpec } from '../../operator/src/api/validated-spec.ts';
import { renderConfig } from '../../operator/src/render/index.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const config = renderConfig(renderServiceSpec.parse({ template }));
const POD_ENV = config['pod.env'];

beforeAll(prepare);

/** What the container says that it cannot work with; '' if the proxy finds nothing wrong. */
async function complaint(podEnv: string | Buffer | undefined, proxy: 'haproxy' | 'nginx', ...further: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-entrypoint-'));
  try {
    chmodSync(folder, 0o755);
    const { 'pod.env': _own, ...rest } = config;
    for (const [file, text] of Object.entries(rest)) writeFileSync(join(folder, file), text);
    if (podEnv !== undefined) writeFileSync(join(folder, 'pod.env'), podEnv);
    const mounts = ['--volume', `${folder}:/etc/corelane:ro`, ...further];
    const check = proxy === 'haproxy' ? ['-c', '-dW'] : ['-t'];
    await runSidecar(mounts, proxy, ...check);
    return '';
  } catch (error) {
    return /^corelane-entrypoint: (.*)$/m.exec((error as { stderr: string }).stderr)?.[1] ?? String(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const changed = (name: string, value: string) => POD_ENV.replace(new RegExp(`^${name}=.*$`, 'm'), `${name}=${value}`);

test.each(['haproxy', 'nginx'] as const)('what the operator writes is taken by %s', async (proxy) => {
  expect(await complaint(POD_ENV, proxy)).toBe('');
});

test.each(['haproxy', 'nginx'] as const)(
  'an operator that speaks another version of the protocol: %s does not start, and says so',
  async (proxy) => {
    expect(await complaint(changed('CORELANE_PROTOCOL_VERSION', '2'), proxy)).toBe(
      'this sidecar image speaks version 1 of the protocol, the operator that made this pod version 2: give the operator the sidecar image of its own release',
    );
    // What the container's environment says counts for nothing.
    const other = ['--env', 'CORELANE_PROTOCOL_VERSION=1'];
    expect(await complaint('# empty\n', proxy, ...other)).toBe(
      '/etc/corelane/pod.env has no CORELANE_PROTOCOL_VERSION',
    );
    expect(await complaint(undefined, proxy)).toMatch(/pod\.env: No such file or directory\. The operator .* is older/);
  },
);

test.each([
  ['a blank', 'CORELANE_X=a b', /line 6: not CORELANE_NAME=VALUE/],
  ['a command for the shell of the hook', 'CORELANE_X=$(reboot)', /line 6: not CORELANE_NAME=VALUE/],
  ['another end of the line', 'CORELANE_X=1;reboot', /line 6: not CORELANE_NAME=VALUE/],
  ['a name that is not ours', 'LD_PRELOAD=/tmp/x.so', /line 6: not CORELANE_NAME=VALUE/],
  ['a name that is none', 'CORELANE_a=1', /line 6: not CORELANE_NAME=VALUE/],
  ['no value', 'CORELANE_X', /line 6: not CORELANE_NAME=VALUE/],
  ['a carriage return', 'CORELANE_X=1\r', /line 6: not CORELANE_NAME=VALUE/],
  ['a line without an end', `CORELANE_X=${'1'.repeat(1_000_000)}`, /CORELANE_X is too long/],
  ['bytes', '\u0000\u00ff', /line 6: not CORELANE_NAME=VALUE/],
])('a pod.env with %s is refused', async (_what, line, expected) => {
  expect(await complaint(`${POD_ENV}${line}\n`, 'nginx')).toMatch(expected);
});

test.each(['', '0', '65536', '99999999999999999999', '9000x'])('port "%s" is refused', async (port) => {
  expect(await complaint(changed('CORELANE_HTTP_PORT', port), 'nginx')).toBe(
    'CORELANE_HTTP_PORT in /etc/corelane/pod.env is no port',
  );
  expect(await complaint(changed('CORELANE_HEALTH_PORT', port), 'haproxy')).toBe(
    'CORELANE_HEALTH_PORT in /etc/corelane/pod.env is no port',
  );
});

test('a line that NUL hides from us is no way around', async () => {
  expect(await complaint(Buffer.from(`${POD_ENV}CORELANE_X=1\0$(reboot)\n`), 'nginx')).toMatch(/line 6/);
});

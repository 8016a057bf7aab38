/** Configurations that process 1 of the proxies gets, and what it says of them. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runSidecar } from '../../e2e/harness/engine/docker.ts';
import { renderServiceSpec } from '../../operator/src/api/validated-spec.ts';
import { renderConfig } from '../../operator/src/render/index.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
/** As the operator writes it. */
export const config = renderConfig(renderServiceSpec.parse({ template }));
export const POD_ENV = config['pod.env'];

/** What the container says that it cannot work with; '' if the proxy finds nothing wrong. */
export async function complaint(podEnv: string | Buffer | undefined, proxy: 'haproxy' | 'nginx', ...further: string[]) {
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

/** pod.env with another value. */
export const changed = (name: string, value: string) =>
  POD_ENV.replace(new RegExp(`^${name}=.*$`, 'm'), `${name}=${value}`);

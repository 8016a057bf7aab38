/** Debian's promtool, in a container. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../harness/cluster/shell.ts';

/** The image with Prometheus and promtool, built unless the engine has it. */
export async function prometheusImage(): Promise<string> {
  const images = await run('e2e/images.sh', ['prometheus'], { timeoutMs: 240_000 });
  const image = /^PROMETHEUS_IMAGE=(.*)$/m.exec(images)?.[1];
  if (!image) throw new Error(`e2e/images.sh names no image of Prometheus: ${images}`);
  return image;
}

/** What a command says and how it ends; with these files in its folder. */
export async function inImage(image: string, files: Record<string, string>, script: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-alerts-'));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    // The container's user is not ours.
    await run('chmod', ['-R', 'a+rX', folder]);
    const options = ['--rm', '--network=none', '--read-only', '--tmpfs=/tmp', '-v', `${folder}:/rules:ro`];
    return await run('docker', ['run', ...options, '-w', '/rules', image, 'bash', '-c', script], {
      timeoutMs: 280_000,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** `corelane rollout`, where the RenderService is another one between the look and the write: its status changes. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../../support/bare-environment.ts';
import { kubeconfigFor } from '../../support/forwarding-api.ts';

const CLI = join(fileURLToPath(new URL('../../../..', import.meta.url)), 'operator/bin/corelane.mjs');

/** The API server counts up the resource version, and takes the write of `takes` alone. */
async function pause(takes: number): Promise<{ code: number; stderr: string; written: unknown[] }> {
  const written: { metadata: { resourceVersion: string } }[] = [];
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      const metadata = { name: 'shop', namespace: 'web', uid: 'u', resourceVersion: String(written.length + 1) };
      return response.end(JSON.stringify({ kind: 'RenderService', metadata, spec: {} }));
    }
    written.push(JSON.parse((await request.toArray()).join('')));
    if (written.length === takes) return response.end('{}');
    response.writeHead(409).end('{"reason":"Conflict","message":"the object has been modified"}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'corelane-'));
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, kubeconfigFor(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  try {
    const env = bareEnvironment(folder, { KUBECONFIG: file });
    return await new Promise((resolve) =>
      execFile(process.execPath, [CLI, 'rollout', 'pause', 'shop', '-n', 'web'], { env }, (error, _stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), stderr, written }),
      ),
    );
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
}

const versions = (written: unknown[]) =>
  written.map((one) => (one as { metadata: { resourceVersion: string } }).metadata.resourceVersion);

test('it is read and decided anew', async () => {
  const { code, stderr, written } = await pause(3);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(versions(written)).toEqual(['1', '2', '3']);
});

test('but not for ever', async () => {
  const { code, stderr, written } = await pause(0);
  expect(code).toBe(1);
  expect(stderr).toContain('409 the object has been modified');
  expect(versions(written)).toHaveLength(5);
});

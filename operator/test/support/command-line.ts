/** `corelane` as its user calls it, with the rights of an administrator of a world's API server. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { repository } from './api-server.ts';
import { bareEnvironment } from './bare-environment.ts';
import type { World } from './world.ts';

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** `corelane ARGUMENTS`, in the namespace of `world`. */
export function corelane(world: World, ...args: string[]): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const env = bareEnvironment('/nonexistent', { PATH: process.env.PATH, KUBECONFIG: world.server.adminKubeconfig });
  const command = [join(repository, 'operator/bin/corelane.mjs'), ...args, '-n', world.namespace];
  execFile(process.execPath, command, { env }, (error, stdout, stderr) =>
    resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
  );
  return promise;
}

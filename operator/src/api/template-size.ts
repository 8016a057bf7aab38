/** Whether the Deployment of a spec can be stored at all. Each worker is a copy of the template's container, so a large one grows fast. */

import type { RenderServiceSpec } from './spec.ts';
import { workerTemplate } from './worker-template.ts';

/** What etcd takes as one object by default (--max-request-bytes), less some room for what the API server adds. */
export const DEPLOYMENT_BYTES_MAX = 1_400_000;

/** A sentence with the size, the bound and the way out if the pods' template is too large to be stored; else undefined. */
export function templateTooLarge({ template, workersPerPod }: RenderServiceSpec): string | undefined {
  const worker = workerTemplate(template.spec?.containers ?? []);
  const workerBytes = JSON.stringify(worker ?? {}).length;
  const bytes = JSON.stringify(template).length + (workersPerPod - 1) * workerBytes;
  if (bytes <= DEPLOYMENT_BYTES_MAX) return undefined;
  return (
    `makes a Deployment of at least ${kilobytes(bytes)}, and the API server stores ${kilobytes(DEPLOYMENT_BYTES_MAX)}: each of ` +
    `${workersPerPod} workers has a copy of its container (${kilobytes(workerBytes)}). Keep large values in a ConfigMap (envFrom, a volume), or set fewer workersPerPod`
  );
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000)} kB`;
}

/** What `check` and `convert` work on, wherever it comes from. */
import { allocatableCpu } from '../check/cpu.ts';
import type { Surroundings } from '../check/workload.ts';
import type { Manifest } from '../convert/manifests.ts';
import { numberOf } from './options.ts';

const NODE_CPUS = { min: 1, max: 1024 };

/** One object with all that is known of its surroundings. */
export interface Subject {
  manifest: Manifest;
  /** Objects around it. */
  others: Manifest[];
  /** What no manifest tells. */
  known: Partial<Surroundings>;
}

/** A node by its vCPUs. */
export function nodesOf(text: string): Surroundings['nodes'] {
  const vcpus = numberOf('node-cpu', text, NODE_CPUS);
  return [{ cpu: allocatableCpu(vcpus), name: `a node of ${vcpus} vCPUs` }];
}

/** Names of images in a manifest's pod template. */
export function imagesOf({ value }: Manifest): string[] {
  const { spec } = value as { spec?: { template?: { spec?: { containers?: { image?: unknown }[] } } } };
  const containers = spec?.template?.spec?.containers;
  if (!Array.isArray(containers)) return [];
  return containers.flatMap((container) => (typeof container?.image === 'string' ? [container.image] : []));
}

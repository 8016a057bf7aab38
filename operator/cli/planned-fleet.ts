/** What a plan takes from a RenderService in a file: its workers, its pods, and what it is held to. */
import { objectivesOf } from '../src/api/objectives.ts';
import { parseRenderService, type RenderServiceResource } from '../src/api/resource.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';
import { readManifests } from './manifest-files.ts';
import { UsageError } from './usage.ts';

export interface PlannedObjective {
  /** p99=500ms */
  text: string;
  quantile: number;
  limitS: number;
}

export interface PlannedFleet {
  name: string;
  workersPerPod: number;
  concurrency: Pick<RenderServiceSpec, 'concurrency' | 'concurrencyRange'>;
  /** The most pods that there may be, and whether scaling sees to their number. */
  podsMax: number;
  isScaled: boolean;
  objectives: PlannedObjective[];
}

/**
 * The RenderService of a file; `-` is standard input.
 * @throws UsageError when there is none, or several, or a wrong one
 */
export function fleetOf(file: string): PlannedFleet {
  const [resource, ...others] = readManifests([file])
    .map(({ value }) => value as unknown as RenderServiceResource)
    .filter(({ kind }) => kind === 'RenderService');
  if (!resource) throw new UsageError(`${file} has no RenderService`);
  if (others.length > 0) throw new UsageError(`${file} has ${others.length + 1} RenderServices; plan them one by one`);
  const parsed = parseRenderService(resource);
  if (!parsed.ok) throw new UsageError(parsed.errors.map(({ path, message }) => `${path}: ${message}`).join('; '));
  const { workersPerPod, concurrency, concurrencyRange, replicas, scaling, objectives } = parsed.renderService.spec;
  const times = objectives?.latency ?? {};
  return {
    name: resource.metadata.name,
    workersPerPod,
    concurrency: { concurrency, concurrencyRange },
    podsMax: scaling?.maxReplicas ?? replicas,
    isScaled: scaling !== undefined,
    objectives: objectivesOf(objectives).latency.map(({ name, quantile, limitS }) => ({
      text: `${name}=${times[name as keyof typeof times]}`,
      quantile,
      limitS,
    })),
  };
}

/** Whether a RenderService is as an action wants it, by what its status tells. Computes only. */
import type { Expectation } from './sequence.ts';

interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

/** A RenderService, as far as it is looked at here. */
export interface Resource {
  metadata: { name: string; namespace: string; uid: string; generation: number };
  status?: { observedGeneration?: number; rollout?: { revision: string }; conditions?: Condition[] };
}

/** Whether the status has come to what was expected, of the present generation. */
export function meets(resource: Resource | undefined, expectation: Expectation): boolean {
  if (expectation.is === 'gone' || !resource) return expectation.is === 'gone' && !resource;
  if (resource.status?.observedGeneration !== resource.metadata.generation) return false;
  const condition = (type: string) => resource.status?.conditions?.find((one) => one.type === type);
  const [ready, reconciling, stalled] = ['Ready', 'Reconciling', 'Stalled'].map(condition);
  switch (expectation.is) {
    case 'ready':
      return ready?.status === 'True' && reconciling?.status === 'False' && stalled?.status === 'False';
    case 'paused':
      return ready?.status !== 'False' && ready?.message.startsWith('rollout.paused holds a change') === true;
    case 'stalled':
      return stalled?.status === 'True' && stalled.reason === expectation.reason && stalled.message !== '';
  }
}

/** What it says instead, in a line. */
export function saying(resource: Resource | undefined): string {
  if (!resource) return 'there is none';
  const { status, metadata } = resource;
  const conditions = status?.conditions?.filter(({ type }) => ['Ready', 'Stalled'].includes(type)) ?? [];
  const said = conditions.map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`);
  return `generation ${metadata.generation}, observed ${status?.observedGeneration ?? 'none'}; ${said.join('; ')}`;
}

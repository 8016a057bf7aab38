/** Who leads, and what it writes. */
import type { OperatorProcess } from '../support/operator-process.ts';
import type { World } from '../support/world.ts';

/** Writes of a process to objects, its Lease left out. */
export function writes(operator: OperatorProcess): Promise<number> {
  return operator.sum('corelane_operator_writes_total');
}

/** The process that has the Lease. */
export async function holder(world: World): Promise<string> {
  return (await world.get('Lease', 'corelane')).spec.holderIdentity;
}

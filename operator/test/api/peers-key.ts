/** Secrets with the key of the peers, and how often the operator asks for them. */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import type { OperatorProcess } from '../support/operator-process.ts';
import type { World } from '../support/world.ts';

/** The Secret, as soon as it is there. */
export function secret(world: World, name: string): Promise<Json> {
  return eventually(`Secret ${name}`, () => world.get('Secret', name));
}

/** The key as HAProxy reads it. */
export function keyOf({ data }: Json): string {
  return Buffer.from(data.key, 'base64').toString();
}

/** Secrets that the operator has asked for, by the answer. */
export function asked(operator: OperatorProcess, code: string): Promise<number> {
  return operator.sum(
    'corelane_operator_api_request_duration_seconds_count',
    (labels) => labels.method === 'POST' && labels.code === code,
  );
}

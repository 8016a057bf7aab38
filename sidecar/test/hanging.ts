/** What a pod says while renders hang. */
import type { Answer, Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** Status, reason, and when to come back. */
export const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error'], headers['retry-after']];

let stop = () => {};
/** Ends what watchReadiness has begun, of a test that has failed, too. */
export const stopWatching = () => stop();

/** Asks for readiness again and again until it is stopped: all that it was told. */
export function watchReadiness(there: Pod) {
  let goesOn = true;
  stop = () => {
    goesOn = false;
  };
  const told = new Set<string>();
  const watching = (async () => {
    while (goesOn) {
      const { status, body } = await there.get('/readyz', { port: PORTS.health });
      told.add(`${status} ${body.trim()}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    goesOn = false;
    await watching;
    return [...told];
  };
}

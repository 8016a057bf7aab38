/** The engine as the tests and benches use it: docker, and the containers of one test run. */
import { Engine, RESTRICTED } from '../../../operator/local/engine.ts';

export { RESTRICTED };

/** Containers, networks and folders of this file's run. */
export const engine = new Engine({ command: 'docker', prefix: 'corelane.test' });

export const LABEL = engine.label;
export const RUN_ID = engine.owner;

export const SIDECAR_IMAGE = process.env.CORELANE_SIDECAR_IMAGE ?? 'corelane.local/sidecar:dev';
export const NODE_IMAGE = process.env.CORELANE_NODE_IMAGE ?? 'corelane.local/node:24-trixie-slim';

/** Runs docker and gives its output. */
export function docker(...args: string[]): Promise<string> {
  return engine.run(...args);
}

/** Standard output and error of a container, as far as written. */
export function logs(container: string): Promise<string> {
  return engine.logs(container);
}

/** Starts a labelled container and gives its id. */
export function start(...args: string[]): Promise<string> {
  return engine.start(...args);
}

/** Runs a command in a container of the sidecar image; rejects when it fails. */
export function runSidecar(mounts: string[], ...command: string[]): Promise<string> {
  return engine.runSidecar(SIDECAR_IMAGE, mounts, ...command);
}

let prepared: Promise<void> | undefined;

/**
 * Fails with advice where the engine or an image is missing; removes what a killed run has left behind. Once per file.
 */
export function prepare(): Promise<void> {
  prepared ??= prepareNow();
  return prepared;
}

async function prepareNow(): Promise<void> {
  for (const image of [SIDECAR_IMAGE, NODE_IMAGE]) {
    await docker('image', 'inspect', image).catch((error) => {
      throw new Error(
        `Image ${image} or the container engine is not there; run "make test", which brings up both. ${error}`,
      );
    });
  }
  await engine.removeStale();
}

/** Removes all containers of this run. */
export function removeAll(): Promise<void> {
  return engine.removeAll();
}

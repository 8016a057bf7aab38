/**
 * What the operator says of the fleet, served by a container beside the pods: a page that a test has written where no
 * API server runs, or one of a real operator, which runs beside the engine.
 */
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { engine, NODE_IMAGE, start } from '../../harness/engine/docker.ts';
import { SHOP } from '../world.ts';

const SERVER = `require('node:http').createServer((_request, response) => {
  response.setHeader('content-type', 'text/plain; version=0.0.4');
  response.end(require('node:fs').readFileSync('/page/metrics'));
}).listen(process.argv[1])`;
const PORT = 8080;

/** Series by name and labels. */
export type Page = Record<string, number>;

export const condition = (type: string, reason: string) =>
  `corelane_renderservice_condition{${SHOP},type="${type}",reason="${reason}"}`;
export const replicas = (state: string) => `corelane_renderservice_replicas{${SHOP},state="${state}"}`;

/** All is well with so many pods. */
export function wellPage(pods: number): Page {
  return {
    corelane_operator_leader: 1,
    [`corelane_renderservice_info{${SHOP},revision="r1"}`]: 1,
    [replicas('wanted')]: pods,
    [replicas('ready')]: pods,
    [`corelane_renderservice_replicas_max{${SHOP}}`]: 9,
    [condition('Stalled', 'UpToDate')]: 0,
    [condition('WorkersHealthy', 'WorkersUp')]: 1,
    [condition('ScalingActive', 'Measuring')]: 1,
    [condition('LiveSettingsApplied', 'AllPods')]: 1,
    [condition('DataPlaneCurrent', 'UpToDate')]: 1,
    corelane_data_plane_held: 0,
    corelane_data_plane_waiting: 0,
  };
}

export class OperatorPage {
  readonly container: string;
  readonly #file: string;

  private constructor(container: string, file: string) {
    this.container = container;
    this.#file = file;
  }

  static async start(network: string, page: Page | string, port = PORT): Promise<OperatorPage> {
    const folder = engine.folder();
    chmodSync(folder, 0o755);
    const file = join(folder, 'metrics');
    write(file, page);
    const options = ['--network', network, '--volume', `${folder}:/page:ro`];
    return new OperatorPage(await start(...options, NODE_IMAGE, 'node', '-e', SERVER, `${port}`), file);
  }

  set(page: Page | string): void {
    write(this.#file, page);
  }
}

function write(file: string, page: Page | string): void {
  const lines = () => Object.entries(page).map(([series, value]) => `${series} ${value}\n`);
  writeFileSync(`${file}.new`, typeof page === 'string' ? page : lines().join(''));
  renameSync(`${file}.new`, file); // in one step: it may be read at any moment
}

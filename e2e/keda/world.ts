/** An API server with KEDA and the operator, for a test file. */
import { execFileSync } from 'node:child_process';
import { ApiServer } from '../../operator/test/support/api-server.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import { onFailure } from '../../operator/test/support/on-failure.ts';
import { OperatorProcess } from '../../operator/test/support/operator-process.ts';
import { World } from '../../operator/test/support/world.ts';
import { installKeda } from './install.ts';
import { PATIENT, ScaledObjects } from './scaled-object.ts';

/** The autoscaler of Kubernetes is one of the controllers. */
const CONTROLLERS = 'garbage-collector,deployment,replicaset,horizontal-pod-autoscaler';
/** The first time on a machine KEDA is compiled. */
export const SETUP_TIMEOUT_MS = 45 * 60_000;

/** Tells, before each test of the file, which comes, and for how long the file has run. */
export function tellProgress(): void {
  const startedMs = performance.now();
  beforeEach(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    process.stderr.write(`  ${String(seconds).padStart(4)} s  ${expect.getState().currentTestName}\n`);
  });
}

/** The end of what one of KEDA's programs has logged. */
function logOf(server: ApiServer, program: string): string {
  try {
    // Both of its outputs: KEDA logs to the second one.
    return execFileSync('sh', ['-c', `docker logs --tail 30 ${server.network}-${program} 2>&1`], { encoding: 'utf8' });
  } catch (error) {
    return `none: ${(error as Error).message}`;
  }
}

export class KedaWorld {
  readonly server: ApiServer;
  readonly world: World;
  readonly scaledObjects: ScaledObjects;

  private constructor(server: ApiServer, world: World) {
    this.server = server;
    this.world = world;
    this.scaledObjects = new ScaledObjects(world);
  }

  /** @param namespace of the RenderServices; `default` is there already */
  static async start(name: string, namespace: string): Promise<KedaWorld> {
    const server = await ApiServer.start(name, { controllers: CONTROLLERS, keda: true });
    for (const program of ['keda-operator', 'keda-adapter'])
      onFailure(() => `Log of ${program}:\n${logOf(server, program)}`);
    try {
      await installKeda(server);
      // The operator's own namespace is another.
      const own = await World.create(server, 'corelane', 'cluster');
      const settings = { ...own.settings('operator-0'), namespace: '', scalingPeriodSeconds: 1 };
      const operator = await OperatorProcess.start(settings);
      await operator.untilLeading();
      const world = new World(server, namespace);
      if (namespace !== 'default') await world.admin.post('/api/v1/namespaces', { metadata: { name: namespace } });
      return new KedaWorld(server, world);
    } catch (error) {
      await OperatorProcess.killAll();
      await server.remove();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await OperatorProcess.killAll();
    await this.server.remove();
  }

  async replicas(name: string): Promise<number> {
    return (await this.world.get('RenderService', name)).spec.replicas;
  }

  /** Waits until the RenderService has so many pods, in its spec and in its Deployment. */
  async untilReplicas(name: string, count: number, timeoutMs = PATIENT.timeoutMs): Promise<void> {
    await eventually(
      `${name} has ${count} pods`,
      async () => {
        expect(await this.replicas(name)).toBe(count);
        expect((await this.world.deployment(name)).spec.replicas).toBe(count);
      },
      { ...PATIENT, timeoutMs },
    );
  }
}

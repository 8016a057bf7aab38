/**
 * A cluster without machines: etcd, API server and controllers as they are everywhere, and kwok in the place of nodes,
 * on which a pod runs as soon as it is there. Pods have addresses of this machine, where answering.ts speaks for them.
 */
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PORTS } from '../../operator/src/api/names.ts';
import { installAdmissionPolicies } from '../../operator/test/support/admission-policies.ts';
import type { ApiClient } from '../../operator/test/support/api-client.ts';
import { ApiServer, repository } from '../../operator/test/support/api-server.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import { World } from '../../operator/test/support/world.ts';
import { type Writes, writesIn } from '../lib/writes.ts';
import type { Instructions } from './answering.ts';
import { asFile, NODE, PROBE } from './objects.ts';
import type { Pages } from './pages.ts';
import { namespacesOf, podsOf, type Shape, servicesOf } from './shape.ts';

const NAME = 'bench-operator';
/**
 * Of kube-controller-manager: what moves pods and budgets in a cluster. Not endpointslice: a slice takes no address of
 * the loopback network.
 */
const CONTROLLERS = 'garbage-collector,deployment,replicaset,disruption';
/** The operator's own namespace. */
export const OPERATOR_NAMESPACE = 'operator';
/** Where pods of the loopback network have their addresses. */
const CIDR = '127.1.0.1/16';
const START_MS = 60_000;
/** 3,000 objects, one after the other, on a machine that is busy. */
const APPLY_MS = 20 * 60_000;

export interface Kwok {
  program: string;
  stages: string;
}

/** kwok, built where it is not there yet. */
export async function findKwok(): Promise<Kwok> {
  const script = join(repository, 'e2e/cluster/kwok.sh');
  // Its progress is for who waits.
  const child = spawn(script, { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = (await child.stdout.toArray()).join('');
  const of = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(output)?.[1];
  const [program, stages] = [of('KWOK'), of('KWOK_STAGES')];
  if (!program || !stages) throw new Error('kwok.sh has made no kwok');
  return { program, stages };
}

export class Cluster {
  readonly server: ApiServer;
  readonly admin: ApiClient;
  readonly #children: ChildProcess[];
  readonly #folder: string;

  /** The one that runs. */
  static #current: Cluster | undefined;

  private constructor(server: ApiServer, children: ChildProcess[]) {
    this.server = server;
    this.admin = server.admin();
    this.#children = children;
    this.#folder = join(dirname(server.adminKubeconfig), 'bench');
  }

  /** An empty one, in which user `operator` has the chart's rights and the chart's admission policies hold. */
  static async start(shape: Shape, kwok: Kwok, pages: Pages): Promise<Cluster> {
    const server = await ApiServer.start(NAME, { controllers: CONTROLLERS, large: true });
    const cluster = new Cluster(server, []);
    Cluster.#current = cluster;
    try {
      await cluster.#prepare(shape, kwok, pages);
      return cluster;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  async #prepare(shape: Shape, { program, stages }: Kwok, pages: Pages): Promise<void> {
    const { admin, server } = this;
    mkdirSync(this.#folder, { recursive: true });
    await World.create(server, OPERATOR_NAMESPACE, 'cluster');
    await installAdmissionPolicies(server);
    for (const name of namespacesOf(shape)) await admin.post('/api/v1/namespaces', { metadata: { name } });
    this.#startKwok(program, stages);
    await this.#startAnswering(shape, pages);
    await admin.post('/api/v1/nodes', { metadata: { name: NODE } });
    await eventually(
      'the node is ready',
      async () => {
        const { status } = await admin.get(`/api/v1/nodes/${NODE}`);
        const isReady = status.conditions?.some(({ type, status: is }: Json) => type === 'Ready' && is === 'True');
        if (!isReady) throw new Error('it is not');
      },
      { timeoutMs: START_MS },
    );
  }

  /** Takes the running one away, with all that it has started. */
  static async removeCurrent(): Promise<void> {
    await Cluster.#current?.remove();
  }

  async remove(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    if (Cluster.#current === this) Cluster.#current = undefined;
    rmSync(this.#folder, { recursive: true, force: true });
    await this.server.remove();
  }

  /** `kubectl apply` of all at once. @throws Error with what kubectl says */
  async apply(objects: object[]): Promise<void> {
    const file = join(this.#folder, 'objects.json');
    writeFileSync(file, asFile(objects));
    const options = ['--kubeconfig', this.server.adminKubeconfig, 'apply', '--filename', file, '--output', 'name'];
    const env = { ...process.env, KUBECACHEDIR: join(this.#folder, 'kubectl') };
    await promisify(execFile)('kubectl', options, { env, timeout: APPLY_MS, maxBuffer: 16 * 1024 ** 2 });
  }

  /** What the API server has written so far. */
  async writes(): Promise<Writes> {
    // What is no JSON comes as a message.
    const { message } = await this.admin.get('/metrics');
    return writesIn(message);
  }

  #startKwok(program: string, stages: string): void {
    const log = openSync(join(this.#folder, 'kwok.log'), 'w');
    const options = ['--kubeconfig', this.server.adminKubeconfig, '--config', stages, '--manage-all-nodes=true'];
    const addresses = ['--cidr', CIDR, '--node-ip', '127.0.0.1', '--node-lease-duration-seconds=0'];
    // It ends with this process, however that ends.
    const command = ['--pdeathsig', 'KILL', program, ...options, ...addresses];
    const child = spawn('setpriv', command, { stdio: ['ignore', log, log] });
    closeSync(log);
    child.on('error', (error) => process.stderr.write(`kwok: ${error.message}\n`));
    this.#children.push(child);
  }

  async #startAnswering(shape: Shape, pages: Pages): Promise<void> {
    const services = [...servicesOf(shape), { name: PROBE, namespace: namespacesOf(shape)[0] as string }];
    const child = fork(fileURLToPath(new URL('answering.ts', import.meta.url)), { execArgv: [] });
    this.#children.push(child);
    const instructions: Instructions = {
      kubeconfig: this.server.adminKubeconfig,
      pages,
      port: PORTS.stats,
      pods: podsOf(shape),
      namespaces: Object.fromEntries(services.map(({ name, namespace }) => [name, namespace])),
    };
    child.send(instructions);
    const ended = once(child, 'exit').then(() => {
      throw new Error('nobody can answer for the pods');
    });
    await Promise.race([once(child, 'message'), ended]);
    ended.catch(() => undefined);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: conditions of a node
type Json = any;

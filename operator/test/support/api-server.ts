/** Starts and stops real API servers by the script that everybody else uses, too. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { ApiClient } from './api-client.ts';
import { eventually } from './eventually.ts';
import { Kubectl } from './kubectl.ts';

const run = promisify(execFile);

export const repository = fileURLToPath(new URL('../../..', import.meta.url));
const script = join(repository, 'e2e/cluster/apiserver.sh');
/** The first start on a machine builds etcd and the API server. */
const START_TIMEOUT_MS = 40 * 60_000;

export interface StartOptions {
  /** Comma-separated controllers of kube-controller-manager to run. */
  controllers?: string;
  /** Watches and lists go to etcd, so that a compaction hits them at once. */
  noWatchCache?: boolean;
  /** Pods get the tokens of their accounts, as in a cluster. */
  serviceAccounts?: boolean;
  /** What user `operator` asks for is noted, for `asked`. */
  audit?: boolean;
  /** Its etcd takes no larger request. */
  etcdBytes?: number;
  /** KEDA can be started beside it. */
  keda?: boolean;
  /** Room and speed for 10,000 pods. */
  large?: boolean;
}

/** One API server, by its name. Several test files can hold the same one; only its starter should take it down. */
export class ApiServer {
  readonly name: string;
  readonly adminKubeconfig: string;
  /** Kubeconfig of a user that may only do what a test's Roles allow. */
  readonly operatorKubeconfig: string;

  constructor(name: string, adminKubeconfig: string) {
    this.name = name;
    this.adminKubeconfig = adminKubeconfig;
    this.operatorKubeconfig = `${adminKubeconfig}.operator`;
  }

  /** Starts a fresh server with the CustomResourceDefinition in it. It is removed again if that fails. */
  static async start(
    name: string,
    { controllers, noWatchCache, serviceAccounts, audit, etcdBytes, keda, large }: StartOptions = {},
  ): Promise<ApiServer> {
    const options = [
      '--fresh',
      ...(controllers ? ['--controllers', controllers] : []),
      ...(noWatchCache ? ['--no-watch-cache'] : []),
      ...(serviceAccounts ? ['--service-accounts'] : []),
      ...(audit ? ['--audit'] : []),
      ...(etcdBytes ? ['--etcd-bytes', String(etcdBytes)] : []),
      ...(keda ? ['--keda'] : []),
      ...(large ? ['--large'] : []),
    ];
    const output = await execute('up', name, ...options);
    const server = new ApiServer(name, output.trim().split('\n').at(-1) as string);
    try {
      await server.#installDefinition();
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  /** Client with all rights. */
  admin(): ApiClient {
    return new ApiClient(this.adminKubeconfig);
  }

  /** kubectl with all rights, in a namespace or wherever an object says. */
  kubectl(namespace?: string): Kubectl {
    return new Kubectl(this.adminKubeconfig, namespace);
  }

  /** Certificate of who has signed the server's, in base64. */
  get authority(): string {
    const { clusters } = parse(readFileSync(this.adminKubeconfig, 'utf8'));
    return clusters[0].cluster['certificate-authority-data'];
  }

  /** Network of the engine in which it runs. */
  get network(): string {
    return parse(readFileSync(this.adminKubeconfig, 'utf8')).clusters[0].name;
  }

  /** Takes the server away; etcd keeps its data. */
  async stop(how: 'gracefully' | 'by kill' = 'gracefully'): Promise<void> {
    await execute('stop-apiserver', this.name, ...(how === 'by kill' ? ['--kill'] : []));
  }

  /** Brings it back at the same address. */
  async comeBack(): Promise<void> {
    await execute('start-apiserver', this.name);
  }

  /** What user `operator` has asked for, each once: `group/resource verb`, or the path of what is no resource. */
  async asked(): Promise<string[]> {
    const lines = (await execute('audit', this.name)).split('\n').filter(Boolean);
    const all = lines.map((line) => {
      const { verb, objectRef, requestURI } = JSON.parse(line);
      if (!objectRef) return requestURI;
      const { apiGroup = '', resource, subresource } = objectRef;
      return `${apiGroup}/${resource}${subresource ? `/${subresource}` : ''} ${verb}`;
    });
    return [...new Set(all)].sort();
  }

  /** Starts KEDA's operator and metrics adapter, as user `keda`. */
  async startKeda(): Promise<void> {
    await execute('start-keda', this.name);
  }

  /** Forgets all revisions older than the present. */
  async compact(): Promise<void> {
    await execute('compact', this.name);
  }

  async remove(): Promise<void> {
    await execute('down', this.name);
  }

  async #installDefinition(): Promise<void> {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const text = readFileSync(join(repository, 'crds/corelane.dev_renderservices.yaml'), 'utf8');
    const admin = this.admin();
    await admin.post(path, parse(text));
    // "Established" comes a little before the paths answer.
    await eventually('the API server serves RenderServices', () =>
      admin.get('/apis/corelane.dev/v1alpha1/renderservices'),
    );
  }
}

async function execute(command: string, name: string, ...options: string[]): Promise<string> {
  try {
    const { stdout } = await run(script, [command, '--name', name, ...options], {
      timeout: START_TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(`apiserver.sh ${command} --name ${name} failed:\n${stderr || message}`);
  }
}

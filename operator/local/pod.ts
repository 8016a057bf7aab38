/**
 * A pod on a plain container engine: a holder of the network, both proxies as kubelet would start them, and one
 * container per worker.
 */
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import { withoutLive } from '../src/api/live.ts';
import {
  ASSETS_MOUNT_PATH,
  CACHE_MOUNT_PATH,
  CANARY_FILE,
  HOOK_MOUNT_PATH,
  LIVE_FILE,
  LIVE_MOUNT_PATH,
  NGINX_CONTAINER,
  PEERS_KEY,
  PEERS_KEY_MOUNT_PATH,
  PORTS,
  RUNTIME_MOUNT_PATH,
  SHELL_FILE,
  SHELL_MOUNT_PATH,
  WORKER_LIVE_MOUNT_PATH,
} from '../src/api/names.ts';
import { assetsOf } from '../src/api/presets.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';
import { assetContainer } from '../src/plan/assets.ts';
import { runtimeContainer } from '../src/plan/runtime.ts';
import { workerContainers } from '../src/plan/workers.ts';
import { renderConfig } from '../src/render/index.ts';
import { type LiveConfig, renderLive } from '../src/render/live.ts';
import { hasCache } from '../src/render/model/cache.ts';
import { containerArguments, environmentFile, memoryOptions } from './container.ts';
import { type Engine, RESTRICTED, together } from './engine.ts';
import { type Answer, type Call, request, until } from './http.ts';
import { nodeIn } from './node-in.ts';
import { HOLDER, partLabel } from './parts.ts';

const PUBLISHED = [PORTS.http, PORTS.health, PORTS.stats, PORTS.peers];
/** Stands for the DNS name of the headless Service. */
export const PEERS_HOST = 'peers.corelane.test';

/** As far as it is used here. */
interface NetworkSettings {
  Ports: Record<string, { HostPort: string }[] | null>;
  Networks: Record<string, { IPAddress: string; GlobalIPv6Address: string }>;
}

export interface LocalPodOptions {
  /** By which other processes of this machine find its containers (parts.ts). */
  name?: string;
  sidecarImage: string;
  /** Network of the fleet: the pods in it are peers, all have the name that stands for the headless Service. */
  network?: string;
  /** Revision of the pod template. */
  revision?: string;
  /** What the key file of the peers has in it; null: there is no file. */
  key: string | null;
  /** Changes a file of the proxies' configuration. */
  edit?: (file: string, text: string) => string;
  /** The page of the ConfigMap that `fallback` names; undefined: there is none. */
  shell?: string | undefined;
  /** More files beside the configuration, in /etc/corelane, by name. */
  files?: Record<string, string>;
  /** How many requests half of the fleet's workers get at a time (`concurrency: Auto`), as the operator would say. */
  median?: number | undefined;
  /** User and group of the proxies, such as 1000920000:0, as a namespace may assign them; else those of the image. */
  user?: string | undefined;
  /** After so long the pod's network ends by itself, should nobody be left to remove it. */
  secondsMax?: number;
}

export class LocalPod {
  readonly engine: Engine;
  readonly spec: RenderServiceSpec;
  /** What the proxies share: their sockets and the marks of a drain. */
  readonly run: string;
  /** The part of it that the workers see, too. */
  readonly marks: string;
  haproxy = '';
  nginx = '';
  readonly workers: string[] = [];
  #holder = '';
  /** Mounts of the workers. */
  #runtime: string[] = [];
  /** Whose files nginx serves. */
  #assets: { template: V1Container; mounts: string[] } | undefined;
  readonly #options: LocalPodOptions;
  readonly #folder: string;
  readonly #ports = new Map<number, number>();

  constructor(engine: Engine, spec: RenderServiceSpec, options: LocalPodOptions) {
    this.engine = engine;
    this.spec = spec;
    this.#options = options;
    this.#folder = engine.folder();
    this.run = this.open('run');
    this.marks = this.open('run/drain');
  }

  /** Starts the proxies and copies the worker runtime; serves, without workers, when it returns. */
  async startProxies(): Promise<void> {
    await together([this.#startContainers(), this.#copyRuntime()]);
    // The engine accepts connections before a proxy listens.
    await until('HAProxy serves', () => this.get('/livez', { port: PORTS.health }).catch(() => false));
  }

  /** Waits until the entrance answers. */
  async untilServing(): Promise<void> {
    await until('nginx serves', () => this.get(this.spec.ping.path).catch(() => false));
  }

  /** Whether the pod would get new connections from a Service. */
  async isReady(): Promise<boolean> {
    return (await this.get('/readyz', { port: PORTS.health })).status === 200;
  }

  /**
   * Starts all workers as the plan has them.
   * @param template the container that becomes the workers
   * @param mounts options of the engine for what is mounted over the image, where assets are looked for, too
   * @param further options of the engine
   */
  async startWorkerContainers(template: V1Container, mounts: string[] = [], further: string[] = []): Promise<void> {
    this.#assets = { template, mounts };
    await this.copyAssets();
    const starts = workerContainers(withoutLive(this.spec), template).map(async (container, index) => {
      const { file, env } = this.#environment(container, index);
      const shared = [
        '--network',
        this.network,
        ...this.#part(container.name),
        ...this.#runtime,
        ...mounts,
        ...further,
        ...file,
      ];
      this.workers[index] = await this.engine.start(...shared, ...containerArguments({ ...container, env }));
    });
    await together(starts);
  }

  /** Secrets among the variables go through a file. (How Podman reads quotes in one depends on its version.) */
  #environment(container: V1Container, index: number): { file: string[]; env: V1EnvVar[] } {
    const env = (container.env ?? []).map((entry) => this.#ofPod(entry));
    if (this.engine.command !== 'docker') return { file: [], env };
    const { file, rest } = environmentFile({ ...container, env });
    const path = join(this.#folder, `worker-${index}.env`);
    writeFileSync(path, file, { mode: 0o600 });
    return { file: ['--env-file', path], env: rest };
  }

  /** What a pod would say of itself to whoever sends its spans. */
  #ofPod(entry: V1EnvVar): V1EnvVar {
    const { name = 'local', revision = 'r1' } = this.#options;
    const known: Record<string, string> = {
      CORELANE_SPANS_SERVICE: name.replace(/-[0-9]+$/, ''),
      CORELANE_SPANS_NAMESPACE: 'default',
      CORELANE_SPANS_POD: name,
      CORELANE_SPANS_REVISION: revision,
      CORELANE_DEPLOYMENT_ID: revision,
    };
    const value = known[entry.name];
    return value === undefined || entry.value !== undefined ? entry : { name: entry.name, value };
  }

  #part(name: string): string[] {
    const { name: pod } = this.#options;
    return pod === undefined ? [] : partLabel(pod, name);
  }

  /** Options of the engine for containers of the sidecar image. */
  get #user(): string[] {
    const { user } = this.#options;
    return user === undefined ? [] : ['--user', user];
  }

  /** Removes everything. */
  async stop(): Promise<void> {
    const containers = [...this.workers, this.nginx, this.haproxy, this.#holder].filter(Boolean);
    if (containers.length > 0) await this.engine.remove(...containers);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A folder of this pod that every user may write to, as an emptyDir. */
  protected open(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    return folder;
  }

  /** Runs the init container of the plan. */
  async #copyRuntime(): Promise<void> {
    const image = this.#options.sidecarImage;
    const folder = this.open('runtime');
    await this.engine.runSidecar(
      image,
      [...this.#user, '--volume', `${folder}:${RUNTIME_MOUNT_PATH}`],
      ...(runtimeContainer(this.spec, { image }).args ?? []),
    );
    const mounts = [`${folder}:${RUNTIME_MOUNT_PATH}`, `${this.marks}:${HOOK_MOUNT_PATH}`];
    if (this.spec.runtime.instrument) mounts.push(`${join(this.#folder, 'live')}:${WORKER_LIVE_MOUNT_PATH}`);
    this.#runtime = mounts.flatMap((mount) => ['--volume', `${mount}:ro`]);
  }

  /**
   * Runs the init container of the plan, whatever the source is in a cluster: an engine mounts no images. Once more
   * after a change of the files.
   * @throws Error with what the container says if there are no such files
   */
  async copyAssets(): Promise<void> {
    if (assetsOf(this.spec).length === 0 || !this.#assets) return;
    const { template, mounts } = this.#assets;
    const container = asOwnUser(assetContainer(this.spec, template));
    const program = ['--volume', `${this.open('runtime')}:${RUNTIME_MOUNT_PATH}:ro`];
    const target = ['--volume', `${this.open('assets')}:${ASSETS_MOUNT_PATH}`];
    await this.engine.runToEnd(...program, ...target, ...mounts, '--network', 'none', ...containerArguments(container));
  }

  /** The container that holds the pod's network. */
  get holder(): string {
    return this.#holder;
  }

  /** The pod's network, for another container that is to be in it. */
  get network(): string {
    return `container:${this.#holder}`;
  }

  /** Address of the pod in its network. */
  address(): Promise<string> {
    return this.engine.run(
      ...['inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', this.#holder],
    );
  }

  /** IPv6 address of the pod in its network, where that has such addresses. */
  addressIpv6(): Promise<string> {
    const format = '{{range .NetworkSettings.Networks}}{{.GlobalIPv6Address}}{{end}}';
    return this.engine.run('inspect', '--format', format, this.#holder);
  }

  /** Local port that leads to `port` of the pod. */
  port(port: number): number {
    return this.#ports.get(port) ?? 0;
  }

  /** One request, on a connection of its own unless there is an agent. */
  get(path: string, { port = PORTS.http, ...call }: Call = {}): Promise<Answer> {
    return request(this.port(port), path, call);
  }

  /** Lines of one metric of HAProxy. The whole page has thousands, and some look every few milliseconds. */
  async metricLines(name: string): Promise<string[]> {
    const { body } = await this.get(`/metrics?metrics=${name}`, { port: PORTS.stats });
    return body.split('\n').filter((line) => line.startsWith(name));
  }

  /** Value of a metric of HAProxy, by its name and labels as /metrics writes them. */
  async metric(line: string): Promise<number> {
    const lines = await this.metricLines(line.split('{')[0] ?? '');
    const found = lines.find((text) => text.startsWith(`${line} `));
    return Number(found?.split(' ')[1] ?? Number.NaN);
  }

  /** Whether HAProxy gives requests to a worker: renders, or those of a class, which is checked by itself. */
  async isUp(worker: number, backend = 'workers'): Promise<boolean> {
    return (await this.metric(`haproxy_server_status{proxy="${backend}",server="worker-${worker}",state="UP"}`)) === 1;
  }

  /** Addresses that the pod has from DNS, its own among them. */
  async knownPeers(): Promise<number> {
    const lines = await this.metricLines('haproxy_server_status');
    return lines.filter((line) => /\{proxy="peers",.*state="UP"\} 1$/.test(line)).length;
  }

  /**
   * Kills the oldest process of that name in a proxy's container, which for nginx is the master process.
   * @param options.withChildren the others, too
   */
  async killProxy(container: string, name: string, { withChildren = false } = {}): Promise<void> {
    const find = `for pid in $(ls /proc | grep -E '^[0-9]+$' | sort -n); do
      [ "$(cat /proc/$pid/comm 2>/dev/null)" != ${name} ] || { kill -s KILL $pid; ${withChildren ? 'killed=1' : 'exit'}; }
    done; [ -n "$killed" ]`;
    await this.engine.run('exec', container, 'sh', '-c', find);
  }

  /** Runs a script with the Node.js of a worker's container, beside the program; gives what it prints. */
  inWorker(worker: number, script: string, ...args: string[]): Promise<string> {
    return nodeIn(this.engine, this.workers[worker] ?? '', ['-e', script, '--', ...args]);
  }

  /** Whether a worker's container has a Node.js that can be found. */
  async hasNode(worker: number): Promise<boolean> {
    const version = await nodeIn(this.engine, this.workers[worker] ?? '', ['--version']).catch(() => '');
    return /^v[0-9]+\./.test(version);
  }

  /** State of a container. */
  async state(container: string): Promise<{ Running: boolean; ExitCode: number; StartedAt: string }> {
    return JSON.parse(await this.engine.run('inspect', '--format', '{{json .State}}', container));
  }

  /** Puts a key in place of the one that the peers have; null: no file. */
  writeKey(key: string | null): void {
    this.#replace('key', PEERS_KEY, key ?? undefined);
  }

  /**
   * Puts other live settings in place of those that the pod has. (kubelet replaces all files in one step; the settings
   * go last here.)
   */
  writeLive({ [SHELL_FILE]: shell, [CANARY_FILE]: canary, [LIVE_FILE]: settings }: LiveConfig): void {
    this.#replace('live', SHELL_FILE, shell);
    this.#replace('live', CANARY_FILE, canary);
    this.#replace('live', LIVE_FILE, settings);
  }

  #replace(folder: string, name: string, text: string | undefined): void {
    const file = join(this.open(folder), name);
    if (text === undefined) {
      rmSync(file, { force: true });
      return;
    }
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file); // in one step, as kubelet does it
  }

  /** Puts a page in place of the one of the ConfigMap; undefined: there is none. */
  writeShell(shell: string | undefined): void {
    this.#replace('shell', SHELL_FILE, shell);
  }

  #writeConfig(): string {
    const config = this.open('config');
    const { edit = (_file: string, text: string) => text, files } = this.#options;
    for (const [file, rendered] of Object.entries({ ...renderConfig(this.spec), ...files })) {
      mkdirSync(dirname(join(config, file)), { recursive: true });
      writeFileSync(join(config, file), edit(file, rendered));
    }
    return config;
  }

  /** @returns the pod's addresses */
  async #startHolder(): Promise<string[]> {
    const { network, sidecarImage, secondsMax } = this.#options;
    const publish = PUBLISHED.flatMap((port) => ['--publish', `127.0.0.1::${port}`]);
    const joined = network ? ['--network', network, '--network-alias', PEERS_HOST] : [];
    const sleep = ['--init', '--entrypoint', 'sleep', sidecarImage, String(secondsMax ?? 'infinity')];
    this.#holder = await this.engine.start(...this.#part(HOLDER), ...publish, ...joined, ...sleep);
    const inspected = await this.engine.run('inspect', '--format', '{{json .NetworkSettings}}', this.#holder);
    const { Ports, Networks } = JSON.parse(inspected) as NetworkSettings;
    for (const port of PUBLISHED) this.#ports.set(port, Number(Ports[`${port}/tcp`]?.[0]?.HostPort));
    return Object.values(Networks).flatMap((one) => [one.IPAddress, one.GlobalIPv6Address].filter(Boolean));
  }

  async #startContainers(): Promise<void> {
    const config = this.#writeConfig();
    const { revision = 'r1', key, median, shell, sidecarImage } = this.#options;
    this.writeKey(key);
    this.writeShell(shell);
    this.writeLive(renderLive(this.spec, median));
    const addresses = await this.#startHolder();
    const live = ['--volume', `${join(this.#folder, 'live')}:${LIVE_MOUNT_PATH}:ro`];
    const shared = ['--volume', `${config}:/etc/corelane:ro`, ...live, '--volume', `${this.run}:/run/corelane`];
    const options = ['--network', this.network, ...RESTRICTED, ...this.#user, ...shared];
    const keyMount = ['--volume', `${join(this.#folder, 'key')}:${PEERS_KEY_MOUNT_PATH}:ro`];
    const env = { CORELANE_PEERS: PEERS_HOST, CORELANE_REVISION: revision, CORELANE_POD_IPS: addresses.join(',') };
    const peers = [...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]), ...keyMount];
    const { sidecar } = this.spec;
    const haproxy = async () => {
      const memory = memoryOptions(sidecar.haproxy.memoryLimit);
      this.haproxy = await this.engine.start(...options, ...peers, ...memory, sidecarImage, 'haproxy');
    };
    const nginx = async () => {
      const memory = memoryOptions(sidecar.nginx.memoryLimit);
      const disk = ['--volume', `${this.open('tmp')}:/tmp`];
      const page = this.spec.fallback?.configMap
        ? ['--volume', `${join(this.#folder, 'shell')}:${SHELL_MOUNT_PATH}:ro`]
        : [];
      const hasAssets = assetsOf(this.spec).length > 0;
      const assets = hasAssets ? ['--volume', `${this.open('assets')}:${ASSETS_MOUNT_PATH}:ro`] : [];
      const pages = hasCache(this.spec) ? ['--volume', `${this.open('pages')}:${CACHE_MOUNT_PATH}`] : [];
      const files = [...disk, ...page, ...assets, ...pages];
      this.nginx = await this.engine.start(
        ...this.#part(NGINX_CONTAINER),
        ...options,
        ...files,
        ...memory,
        sidecarImage,
        'nginx',
      );
    };
    await together([haproxy(), nginx()]);
  }
}

/** Who can read the folder of a program, and remove the folders that are made here. */
function asOwnUser(container: V1Container): V1Container {
  const [user, group] = [process.getuid?.(), process.getgid?.()];
  if (user === undefined) return container;
  return { ...container, securityContext: { ...container.securityContext, runAsUser: user, runAsGroup: group } };
}

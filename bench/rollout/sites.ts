/** An app behind one address, whose pods are replaced by those of the other version: by Corelane, and plainly. */
import { docker, engine, start } from '../../e2e/harness/engine/docker.ts';
import { specOf } from '../../e2e/harness/engine/examples.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { Balancer } from '../../operator/local/balancer.ts';
import { request } from '../../operator/local/http.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { type App, environmentOf, PATH, type Version } from './apps.ts';
import { drain, type Told, tell } from './pods.ts';

export interface Site {
  /** On 127.0.0.1. */
  port: number;
  /** New pods serve all who come when this returns; what is left of those before goes meanwhile. */
  rollOut(version: Version): Promise<{ over: Promise<void> }>;
  stop(): Promise<void>;
}

export interface SiteKind {
  title: string;
  start(app: App, images: Record<Version, string>): Promise<Site>;
}

const PODS = 2;
const FIRST_PORT = 18_300;
const PLAIN_PORT = 3_000;
/** Revisions are numbers in hexadecimal. */
const FIRST_REVISION = 0x19_be_04_00_00;
const STARTED_MS = 60_000;

function serves(port: number): Promise<unknown> {
  const isServed = () =>
    request(port, PATH).then(
      ({ status }) => status === 200,
      () => false,
    );
  return until('it serves', isServed, STARTED_MS);
}

/** A Service: all ports that take new connections, at random. */
async function balance() {
  const ports = { now: [] as number[] };
  const balancer = new Balancer(() => ports.now);
  return { ports, port: await balancer.listen(FIRST_PORT), close: () => balancer.close() };
}

/** The example's RenderService, with a revision that rests as `rollout.retain` has it by default. */
async function startCorelane(app: App, images: Record<Version, string>): Promise<Site> {
  const { template: _template, replicas: _replicas, ...spec } = specOf(app);
  const network = await engine.network();
  const service = await balance();
  let revision = FIRST_REVISION;
  let told: Told = {};
  let serving: Pod[] = [];
  let resting: Pod[] = [];
  const all: Pod[] = [];

  const hex = (number: number) => number.toString(16).padStart(10, '0');
  async function startPod(version: Version): Promise<Pod> {
    const worker = { image: images[version], folder: null, command: null, env: environmentOf(app) };
    const options = { network, revision: hex(revision), workers: false };
    const pod = await Pod.start({ ...spec, workersPerPod: 1 }, options);
    all.push(pod);
    await tell(pod, told);
    await pod.startWorkers(worker);
    await until('its worker is up', () => pod.isUp(0), STARTED_MS);
    await until('it is ready', () => pod.isReady());
    await serves(pod.port(PORTS.http));
    return pod;
  }

  return {
    port: service.port,
    rollOut: async (version) => {
      revision += 1;
      const started = await Promise.all(Array.from({ length: PODS }, () => startPod(version)));
      service.ports.now = started.map((pod) => pod.port(PORTS.http));
      const [kept, ...others] = serving;
      const gone = [...others, ...resting];
      serving = started;
      resting = kept ? [kept] : [];
      if (kept) told = { resting: hex(revision - 1) };
      const rest = async () => {
        await Promise.all([...serving, ...resting].map((pod) => tell(pod, told)));
        await Promise.all(gone.map(drain));
      };
      return { over: rest() };
    },
    stop: async () => {
      service.close();
      await Promise.all(all.map((pod) => pod.stop()));
      await docker('network', 'rm', network);
    },
  };
}

/** As a Deployment does it: the new ones serve, then the old ones are removed. */
async function startPlain(app: App, images: Record<Version, string>): Promise<Site> {
  const service = await balance();
  const env = { ...environmentOf(app), PORT: String(PLAIN_PORT), HOSTNAME: '0.0.0.0', HOST: '0.0.0.0' };
  const options = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const all = new Set<string>();
  let serving: string[] = [];

  async function startPod(version: Version) {
    const container = await start('--publish', `127.0.0.1::${PLAIN_PORT}`, '--init', ...options, images[version]);
    all.add(container);
    const address = await docker('port', container, `${PLAIN_PORT}/tcp`);
    const port = Number(/:([0-9]+)$/m.exec(address)?.[1]);
    await serves(port);
    return { container, port };
  }
  async function remove(container: string): Promise<void> {
    await docker('stop', '-t', '10', container);
    await docker('rm', '--force', container);
    all.delete(container);
  }

  return {
    port: service.port,
    rollOut: async (version) => {
      const started = await Promise.all(Array.from({ length: PODS }, () => startPod(version)));
      service.ports.now = started.map(({ port }) => port);
      const gone = serving;
      serving = started.map(({ container }) => container);
      return { over: Promise.all(gone.map(remove)).then(() => {}) };
    },
    stop: async () => {
      service.close();
      if (all.size > 0) await docker('rm', '--force', ...all);
    },
  };
}

/** Corelane first. */
export const SITES: SiteKind[] = [
  { title: 'Corelane', start: startCorelane },
  { title: 'a Deployment', start: startPlain },
];

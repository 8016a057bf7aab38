/** The parts of the cluster itself that a soak disturbs: kind's nodes are containers. */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually, get, kubectl } from '../../e2e/harness/cluster/cluster.ts';
import { OPERATOR_NAMESPACE } from '../../e2e/harness/cluster/operator.ts';
import { run } from '../../e2e/harness/cluster/shell.ts';
import { LABEL_RENDER_SERVICE } from '../../operator/src/api/names.ts';
import type { Api } from './api.ts';
import { HONEST } from './sequence.ts';

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** Shorter than a leader waits for its lease (10 s). */
const FROZEN_MS = { min: 2_000, more: 3_000 };
/** Evictions wait for a budget, and pods drain one after the other. */
const DRAIN_S = 240;

interface Node {
  metadata: { name: string; labels: Record<string, string> };
}

export class Cluster {
  readonly #api: Api;
  readonly #controlPlane: string;
  readonly #workers: string[];
  #cordoned: string | undefined;
  #isFrozen = false;

  private constructor(api: Api, nodes: Node[]) {
    this.#api = api;
    const isControlPlane = ({ metadata }: Node) => CONTROL_PLANE in metadata.labels;
    this.#controlPlane = nodes.find(isControlPlane)?.metadata.name ?? '';
    this.#workers = nodes.filter((node) => !isControlPlane(node)).map(({ metadata }) => metadata.name);
  }

  static async find(api: Api): Promise<Cluster> {
    return new Cluster(api, (await get<{ items: Node[] }>('nodes')).items);
  }

  /** Deletes the operator pod that leads, in order. */
  async deleteLeader(): Promise<void> {
    const { name } = await this.#leader();
    await kubectl(['-n', OPERATOR_NAMESPACE, 'delete', 'pod', name, '--wait=false']);
  }

  /** Kills the process that leads: nobody gives the lease back. */
  async killLeader(): Promise<void> {
    const { node } = await this.#leader();
    await this.#signal(node, 'KILL', '-f', '^node /app/main.mjs');
  }

  /** Kills the API server; resolves once it answers again. */
  async killApiServer(): Promise<void> {
    await this.#signal(this.#controlPlane, 'KILL', '-x', 'kube-apiserver');
    const isReady = async () => (await this.#api.text('/readyz')) === 'ok' || undefined;
    await eventually('the API server to be back', 120_000, isReady, 500);
  }

  /** Freezes etcd for some seconds. */
  async freezeEtcd(chance: number): Promise<void> {
    this.#isFrozen = true;
    await this.#signal(this.#controlPlane, 'STOP', '-x', 'etcd');
    // Being frozen is the time itself.
    await delay(FROZEN_MS.min + chance * FROZEN_MS.more);
    await this.#thaw();
  }

  async restartCoreDns(): Promise<void> {
    const deployment = ['-n', 'kube-system', 'rollout'];
    await kubectl([...deployment, 'restart', 'deployment/coredns']);
    await kubectl([...deployment, 'status', 'deployment/coredns', '--timeout=180s'], { timeoutMs: 200_000 });
  }

  /** Drains a node of the pods of all RenderServices but the one whose pods are to stay, and gives it back. */
  async drainNode(chance: number): Promise<void> {
    const node = this.#workers[Math.floor(chance * this.#workers.length)] as string;
    const pods = `--pod-selector=${LABEL_RENDER_SERVICE},${LABEL_RENDER_SERVICE}!=${HONEST.steady.name}`;
    this.#cordoned = node;
    try {
      const options = ['--ignore-daemonsets', '--delete-emptydir-data', `--timeout=${DRAIN_S}s`];
      await kubectl(['drain', node, ...options, pods], { timeoutMs: (DRAIN_S + 30) * 1_000 });
    } finally {
      await this.#uncordon();
    }
  }

  /** Takes back what was interrupted. */
  async restore(): Promise<void> {
    if (this.#isFrozen) await this.#thaw();
    if (this.#cordoned !== undefined) await this.#uncordon();
  }

  async #thaw(): Promise<void> {
    await this.#signal(this.#controlPlane, 'CONT', '-x', 'etcd');
    this.#isFrozen = false;
  }

  async #uncordon(): Promise<void> {
    const node = this.#cordoned as string;
    await eventually(`node ${node} to be given back`, 60_000, () => kubectl(['uncordon', node]), 1_000);
    this.#cordoned = undefined;
  }

  /** The pod that leads, and its node; for a while after a death there is none. */
  #leader(): Promise<{ name: string; node: string }> {
    return eventually('a leader', 60_000, async () => {
      const lease = await get<{ spec: { holderIdentity?: string } }>('-n', OPERATOR_NAMESPACE, 'lease', 'corelane');
      const name = lease.spec.holderIdentity;
      if (!name) return undefined;
      const pod = await get<{ spec: { nodeName: string } }>('-n', OPERATOR_NAMESPACE, 'pod', name);
      return { name, node: pod.spec.nodeName };
    });
  }

  async #signal(node: string, signal: string, ...which: string[]): Promise<void> {
    await run('docker', ['exec', node, 'pkill', `-${signal}`, ...which]);
  }
}

/** ScaledObjects of the tests, and ways to look at them and at what KEDA makes of them. */
import type { Json } from '../../operator/test/support/api-client.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import type { World } from '../../operator/test/support/world.ts';

/** KEDA asks its triggers every 5 s here, the autoscaler of Kubernetes asks KEDA every 15 s. */
export const PATIENT = { timeoutMs: 120_000, everyMs: 500 };

/** A cron trigger, which needs nobody. The hours are far from now, so that none of them passes in a test. */
export function cron(isActive: boolean, desiredReplicas: number): Json {
  const hour = (later: number) => `0 ${(new Date().getUTCHours() + later + 24) % 24} * * *`;
  const [start, end] = isActive ? [hour(-3), hour(6)] : [hour(6), hour(9)];
  return { type: 'cron', metadata: { timezone: 'Etc/UTC', start, end, desiredReplicas: String(desiredReplicas) } };
}

export class ScaledObjects {
  readonly #world: World;
  readonly #root: string;

  constructor(world: World) {
    this.#world = world;
    this.#root = `/apis/keda.sh/v1alpha1/namespaces/${world.namespace}/scaledobjects`;
  }

  /** One that drives the RenderService of its name, or another target. */
  create(name: string, spec: object, metadata: object = {}): Promise<Json> {
    const scaleTargetRef = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name };
    const advanced = {
      horizontalPodAutoscalerConfig: { behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } },
    };
    return this.#world.admin.post(this.#root, {
      apiVersion: 'keda.sh/v1alpha1',
      kind: 'ScaledObject',
      metadata: { name, ...metadata },
      spec: { scaleTargetRef, pollingInterval: 5, cooldownPeriod: 1, advanced, ...spec },
    });
  }

  patch(name: string, change: object): Promise<Json> {
    return this.#world.admin.patch(`${this.#root}/${name}`, change);
  }

  annotate(name: string, annotations: Record<string, string | null>): Promise<Json> {
    return this.patch(name, { metadata: { annotations } });
  }

  get(name: string): Promise<Json> {
    return this.#world.admin.get(`${this.#root}/${name}`);
  }

  /** `type=status` of its conditions. */
  async conditions(name: string): Promise<string[]> {
    const { status } = await this.get(name);
    return (status?.conditions ?? []).map((one: Json) => `${one.type}=${one.status}`);
  }

  /** Deletes it, and resolves when KEDA has let it go. */
  async delete(name: string): Promise<void> {
    await this.#world.admin.delete(`${this.#root}/${name}`);
    await eventually(
      `ScaledObject ${name} is gone`,
      async () => expect(await this.#world.admin.find(`${this.#root}/${name}`)).toBeUndefined(),
      PATIENT,
    );
  }

  /** The autoscaler that KEDA has made, or undefined. */
  autoscaler(name: string): Promise<Json | undefined> {
    const path = `/apis/autoscaling/v2/namespaces/${this.#world.namespace}/horizontalpodautoscalers`;
    return this.#world.admin.find(`${path}/keda-hpa-${name}`);
  }
}

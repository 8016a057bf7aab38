/** Deployments by chance: any field of Kubernetes' own schema of a pod template, with values that YAML is hard on. */
import { readFileSync } from 'node:fs';
import { Random } from '../../../simulate/random.ts';

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  required?: string[];
  enum?: string[];
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-map-keys'?: string[];
}

const TEMPLATE = JSON.parse(
  readFileSync(new URL('../../../gen/pod-template.generated.json', import.meta.url), 'utf8'),
) as Schema;
/** What a reader of YAML may take for something else, or loose. */
const TEXTS = [
  ...['a', 'yes', 'No', 'on', 'y', '1', '0644', '1e3', '0x1f', '.5', '1_000', 'true', 'null', '~', '', ' ', '=', '<<'],
  ...[
    '2026-01-01',
    '12:30:45',
    'a: b',
    'a #b',
    '# a',
    '- a',
    '[a',
    '{a}',
    '&a',
    '*a',
    '!a',
    '|',
    '%',
    '@',
    '`',
    '"',
    "'",
  ],
  ...['two\nlines\n', 'trailing \nblank', '\ttab', 'ä€😀', 'a\\nb', '$(PORT)', '--port=3000', 'worker', 'nginx'],
];
const QUANTITIES = ['250m', '1', 1, 0.5, '2', 4, '512Mi', '1Gi', 2.5];
/** Fields that are there in every second container: the converter has something to do with them. */
const FREQUENT = [
  'env',
  'ports',
  'resources',
  'readinessProbe',
  'lifecycle',
  'labels',
  'annotations',
  'volumes',
  'affinity',
];
const NAMES = ['app', 'web', 'worker', 'nginx', 'haproxy', 'envoy', 'redis', 'corelane-runtime', 'worker-3', 'metrics'];
/** Of these the ones that `convert` does not take for the application where there is another one. */
const BESIDE = ['nginx', 'haproxy', 'envoy', 'redis', 'metrics'];
/** Port of the container that renders: no other one has this number or name. */
export const PAGES = { name: 'pages', containerPort: 7_000 };

interface Container {
  name: string;
  ports?: object[] | null;
}

/** A Deployment as plain values. The same seed gives the same. */
export class DeploymentGenerator {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  deployment(): Record<string, unknown> {
    const template = this.#object(TEMPLATE, 0) as { metadata?: Record<string, unknown>; spec: Record<string, unknown> };
    const labels = { app: 'shop', tier: this.#pick(TEXTS) };
    template.metadata = { ...template.metadata, labels: { ...(template.metadata?.labels as object), ...labels } };
    // A Service can lead to it, past no proxy.
    const containers = template.spec.containers as Container[];
    const pages =
      containers.find(({ name }) => name === 'worker') ??
      containers.find(({ name }) => !BESIDE.includes(name)) ??
      (containers[0] as Container);
    pages.ports = [...(pages.ports ?? []), PAGES];
    // Whether it may have others is a rule that refuses.
    if (this.#chance(0.9)) template.spec.restartPolicy = 'Always';
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'shop' },
      spec: { replicas: this.#whole(5), selector: { matchLabels: { app: 'shop' } }, template },
    };
  }

  #pick<T>(values: T[]): T {
    return values[this.#whole(values.length)] as T;
  }

  #whole(below: number): number {
    return Math.floor(this.#random.fraction() * below);
  }

  #chance(probability: number): boolean {
    return this.#random.fraction() < probability;
  }

  #object({ properties = {}, required = [] }: Schema, depth: number): Record<string, unknown> {
    const entries = Object.entries(properties).filter(([key]) => {
      // The API server takes none in a template.
      if (key === 'ephemeralContainers') return false;
      const probability = FREQUENT.includes(key) ? 0.5 : depth < 3 ? 0.12 : 0.3;
      return required.includes(key) || this.#chance(probability);
    });
    return Object.fromEntries(
      entries.map(([key, child]) => [
        key,
        !required.includes(key) && this.#chance(0.05) ? null : this.#value(child, key, depth + 1),
      ]),
    );
  }

  #value(schema: Schema, key: string, depth: number): unknown {
    if (schema['x-kubernetes-int-or-string']) return this.#pick<unknown>(QUANTITIES);
    if (schema.enum) return this.#pick(schema.enum);
    if (schema.type === 'array') return this.#list(schema, key, depth);
    if (schema.type === 'object' || schema.properties) return this.#map(schema, depth);
    if (schema.type === 'integer') return 1 + this.#whole(5000);
    if (schema.type === 'number') return this.#random.fraction();
    if (schema.type === 'boolean') return this.#chance(0.5);
    return this.#pick(TEXTS);
  }

  #map(schema: Schema, depth: number): unknown {
    if (!schema.additionalProperties) return this.#object(schema, depth);
    const keys = Array.from({ length: this.#whole(3) }, (_unused, index) => `k${index}.example.com/${index}`);
    return Object.fromEntries(keys.map((key) => [key, this.#value(schema.additionalProperties as Schema, key, depth)]));
  }

  #list({ items = {} }: Schema, key: string, depth: number): unknown[] {
    const isContainers = /ontainers$/.test(key);
    const length = isContainers ? 1 + this.#whole(2) : this.#whole(3);
    const names = [...NAMES].sort(() => this.#random.fraction() - 0.5);
    return Array.from({ length }, (_unused, index) => {
      const item = this.#value(items, key, depth);
      if (typeof item !== 'object' || item === null || !items.properties?.name) return item;
      // Names are what lists of Kubernetes are keyed by; variables may come twice.
      const name = isContainers
        ? names[index]
        : key === 'env'
          ? this.#pick(['A', 'B', 'PORT', 'NODE_OPTIONS'])
          : `n${index}`;
      return { ...item, name };
    });
  }
}

/**
 * Random RenderServices, benign and malicious, from a seed. They are made by walking the CRD's schema, so a new field
 * is covered without being named here.
 */
import { resourceSchema, type Schema } from '../../gen/crd.ts';
import type { RenderServiceResource } from '../../src/api/resource.ts';
import { Random } from './random.ts';

const SPEC_SCHEMA = resourceSchema().properties?.spec as Schema;

/**
 * What ends, opens or hides something in nginx.conf, haproxy.cfg, Lua, YAML or a shell, and what looks like a value.
 */
const PAYLOADS = [
  ...['\n', '\r', '\r\n', '\0', '\t', ' ', ';', '{', '}', '"', "'", '`', '\\', '#', '$', '%', '*', '|', '<', '>', '&'],
  ...['\u0085', '\u00a0', '\u2028', '\ufeff', '\ud800', 'é', '١', '\u0001', '\u007f'],
  ...[
    '\n  server evil 10.0.0.1:80',
    '\nbackend evil\n',
    '; return 200 evil;',
    '}\nserver { listen 1; }\n{',
    '" if TRUE',
  ],
  ...[
    "' hdr X-Evil 1",
    '\\\nserver evil',
    '$http_host',
    '$' + '{HOME}',
    '%[env(HOME)]',
    '../../etc/passwd',
    '..',
    '//',
  ],
  ...[
    '{% evil %}',
    'lua-load /tmp/evil.lua',
    'include /etc/passwd;',
    '$(id)',
    '0x10',
    '1e3',
    '-1',
    'null',
    '__proto__',
  ],
  'x'.repeat(20_000),
];
const WRONG_TYPES = [null, true, -1, 0.5, 1e308, 2 ** 53, -(2 ** 31), '', '1', 'x', [], ['\n'], {}, { a: '\n' }];
const NUMBER_WITH_UNIT = /^([0-9]+)([A-Za-z%]*)$/;
/** Of these a match of a class has one. */
const CLASS_PATHS = ['pathPrefix', 'path', 'pathSuffix'];
/** Deep enough for every field of the spec; a pod template goes deeper than anybody looks. */
const DEPTH_MAX = 7;

interface Maker {
  random: Random;
  /** Share of hostile leaves. */
  hostility: number;
}

/** Resource number `index` of the seed. */
export function hostileResource(seed: number, index: number): RenderServiceResource {
  const random = new Random(seed * 100_003 + index);
  const maker = { random, hostility: random.pick([0, 0, 0, 0, 0.01, 0.02, 0.1, 1]) };
  const made = make(SPEC_SCHEMA, maker, 0);
  const spec = made && typeof made === 'object' && !Array.isArray(made) ? withWorker(made, maker) : made;
  // Two random durations mostly break the rule between them, and refused resources say nothing about rendering.
  if (random.chance(0.7)) delete (spec as { watchdog?: unknown } | null)?.watchdog;
  // Likewise thresholds and objectives, and nothing of them is rendered.
  if (random.chance(0.9)) delete (spec as { scaling?: unknown } | null)?.scaling;
  if (random.chance(0.9)) delete (spec as { objectives?: unknown } | null)?.objectives;
  // Likewise pages of other pods without pooling.
  const { cache, pooling } = (spec ?? {}) as { cache?: { shared?: unknown }; pooling?: { enabled?: unknown } };
  if (cache?.shared === 'Peers' && pooling?.enabled === false) delete pooling.enabled;
  // Likewise what no collector's URL looks like.
  withCollector((spec ?? {}) as Resource, maker);
  // Likewise a base path of no framework.
  const { basePath, framework } = (spec ?? {}) as { basePath?: unknown; framework?: unknown };
  if (basePath !== undefined && framework === undefined) Object.assign(spec as object, { framework: 'Nuxt' });
  // Mistakes elsewhere would hide whether this one is noticed.
  if (maker.hostility === 0 && random.chance(0.75)) poisonOne(spec as Record<string, unknown>, random);
  const name = random.chance(maker.hostility) ? `a${random.pick(PAYLOADS)}` : 'shop';
  const metadata = { name, namespace: 'default', uid: '1', generation: 1, resourceVersion: '1' };
  return { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', metadata, spec };
}

interface Resource {
  tracing?: { endpoint?: unknown; headersFrom?: unknown };
  runtime?: { instrument?: unknown };
}

/** Where there is an endpoint it is a plausible one, with what it needs. */
function withCollector({ tracing, runtime }: Resource, { random, hostility }: Maker): void {
  if (tracing?.endpoint === undefined && tracing?.headersFrom === undefined) return;
  if (random.chance(hostility)) return;
  tracing.endpoint = 'http://collector.example:4318';
  tracing.headersFrom = { name: 'shop' };
  if (runtime) delete runtime.instrument;
}

/** Gives the template the least that the rules ask of it; whatever else it has stays. */
function withWorker(resourceSpec: { template?: unknown }, { random, hostility }: Maker): object {
  if (random.chance(hostility)) return resourceSpec;
  const { metadata, spec } = (resourceSpec.template ?? {}) as { metadata?: object; spec?: object };
  const containers = [{ name: 'worker', image: 'example/app:1' }];
  const pod = { ...spec, hostNetwork: false, restartPolicy: 'Always', initContainers: [], containers };
  return { ...resourceSpec, template: { metadata, spec: pod } };
}

/**
 * Makes one value of the spec hostile. A value of the template is chosen only in one resource of five: Corelane accepts
 * most of those, and renders none.
 */
function poisonOne(spec: Record<string, unknown>, random: Random): void {
  const leaves: [parent: Record<string, unknown>, key: string][] = [];
  const mayPoisonTemplate = random.chance(0.2);
  const collect = (parent: Record<string, unknown>) => {
    for (const [key, value] of Object.entries(parent)) {
      if (parent === spec && key === 'template' && !mayPoisonTemplate) continue;
      if (value && typeof value === 'object') collect(value as Record<string, unknown>);
      else leaves.push([parent, key]);
    }
  };
  collect(spec);
  if (leaves.length === 0) return;
  // Words are what could become a directive; numbers and quantities are many.
  const words = leaves.filter(
    ([parent, key]) => typeof parent[key] === 'string' && !NUMBER_WITH_UNIT.test(parent[key]),
  );
  const [parent, key] = random.pick(words.length > 0 && random.chance(0.6) ? words : leaves);
  const value = parent[key];
  parent[key] =
    typeof value === 'string' && random.chance(0.8) ? insertPayload(value, random) : random.pick(WRONG_TYPES);
}

function insertPayload(value: string, random: Random): string {
  const at = random.pick([0, value.length, value.length, random.whole(0, value.length)]);
  return value.slice(0, at) + random.pick(PAYLOADS) + value.slice(at);
}

function make(schema: Schema, maker: Maker, depth: number): unknown {
  const { random, hostility } = maker;
  if (message(schema).endsWith('or Auto'))
    return random.chance(0.2) ? text({ enum: ['Auto'] }, maker) : number({ minimum: 1, maximum: 1000 }, maker);
  if (schema['x-kubernetes-int-or-string'])
    return random.chance(0.5) ? text(schema, maker) : number({ maximum: 1000 }, maker);
  if (random.chance(hostility / 4)) return random.pick(WRONG_TYPES);
  switch (schema.type) {
    case 'object':
      return object(schema, maker, depth);
    case 'array': {
      const least = random.chance(hostility) ? 0 : Math.min(2, Number(schema.minItems ?? 0));
      return Array.from({ length: random.whole(least, 2) }, () => make(schema.items as Schema, maker, depth + 1));
    }
    case 'integer':
    case 'number':
      return number(schema, maker);
    case 'boolean':
      return random.chance(0.5);
    default:
      return text(schema, maker);
  }
}

function object(schema: Schema, maker: Maker, depth: number): Record<string, unknown> {
  const { random, hostility } = maker;
  const required = (schema.required ?? []) as string[];
  // A pod template has hundreds of optional fields: a few of them on each level.
  const entries = Object.entries(schema.properties ?? {});
  const share = entries.length > 20 ? 4 / entries.length : 0.6;
  const result: Record<string, unknown> = {};
  for (const [key, child] of entries) {
    if (required.includes(key) || (depth < DEPTH_MAX && random.chance(share)))
      result[key] = make(child, maker, depth + 1);
  }
  if (typeof schema.additionalProperties === 'object') {
    for (let count = random.whole(0, 2); count > 0; count -= 1)
      result[text({}, maker)] = make(schema.additionalProperties as Schema, maker, depth + 1);
  }
  chooseOnePath(result, schema, maker);
  // One of many fields, which would refuse most resources.
  if (result.concurrency !== 'Auto' && random.chance(0.9)) delete result.concurrencyRange;
  if (random.chance(hostility / 8)) result[`x${random.pick(PAYLOADS)}`] = random.pick(PAYLOADS);
  return result;
}

/** A match of a class with several paths, or with none, would refuse most resources. */
function chooseOnePath(match: Record<string, unknown>, { properties = {} }: Schema, maker: Maker): void {
  const { random, hostility } = maker;
  if (CLASS_PATHS.some((key) => !(key in properties)) || random.chance(hostility)) return;
  for (const key of CLASS_PATHS) delete match[key];
  const kept = random.pick(CLASS_PATHS);
  match[kept] = text(properties[kept] as Schema, maker);
}

function number({ minimum = 0, maximum = 2 ** 31 - 1 }: Schema, { random, hostility }: Maker): number {
  const [min, max] = [minimum as number, maximum as number];
  if (random.chance(hostility)) return random.pick([min - 1, max + 1, -0, -1, 0.5, 1e21, 2 ** 53, min + 0.1, 2 ** 31]);
  return random.pick([min, max, random.whole(min, max), random.whole(min, Math.min(max, min + 20))]);
}

function text(schema: Schema, { random, hostility }: Maker): string {
  const plausible = plausibleText(schema, random);
  return random.chance(hostility) ? insertPayload(plausible, random) : plausible;
}

/** Something that such a field may well take: bounds from its message, changes of its default. */
function plausibleText(schema: Schema, random: Random): string {
  if (schema.enum) return random.pick(schema.enum as string[]);
  if (String(schema.pattern ?? '').startsWith('^--')) return random.pick(['--inspect', '--max-http-header-size=8192']);
  if (message(schema).includes('range of addresses'))
    return random.pick(['192.0.2.0/24', '10.0.0.1/8', '2001:db8::/32', '::/0']);
  const [, least, most] = / from "?([0-9]\w*%?)"? to "?([0-9]\w*%?)"?[, ]/.exec(`${message(schema)} `) ?? [];
  if (schema.default === undefined && least && most) return random.pick([least, most]);
  const example = exampleOf(schema, random);
  if (example) return example;
  const ordinary = schema.default === '/' ? '/x' : String(schema.default ?? random.pick(['a', 'b-1', 'x.example/y']));
  const [, digits, unit] = NUMBER_WITH_UNIT.exec(ordinary) ?? [];
  if (digits === undefined) return ordinary + random.pick(['', '', '-1', '/a.b', '~c_d', '/']);
  if (schema['x-kubernetes-int-or-string']) return `${random.whole(0, 100)}%`;
  const near = `${Math.max(1, Math.round(Number(digits) * (0.5 + random.fraction())))}${unit}`;
  return random.pick([ordinary, near, near, least ?? near, most ?? near]);
}

/** What a message gives as an example of a path or a quantity, and others like it; undefined where it gives none. */
function exampleOf(schema: Schema, random: Random): string | undefined {
  // Of a limit, which is not below the requests that are made of defaults.
  if (schema.default === undefined && message(schema).includes('a quantity such as'))
    return random.pick(['1', '2', '500m']);
  const example = schema.default === undefined ? / such as (\/[^\s:,;]+)/.exec(message(schema))?.[1] : undefined;
  return example?.endsWith('/') ? random.pick([example, '/', `${example}a.b/`, '/~c_d/']) : example;
}

function message(schema: Schema): string {
  const rules = (schema['x-kubernetes-validations'] ?? []) as { message: string }[];
  return rules.map((rule) => rule.message).join(' ');
}

/**
 * The same spec without any free text: as many workers, the same choices, numbers and quantities, but every other
 * string is the field's default, or `word`. What a renderer makes of both differs in whole values only.
 */
export function harmless<T>(spec: T, word = 'x'): T {
  return calm(spec, SPEC_SCHEMA, word) as T;
}

function calm(value: unknown, schema: Schema | undefined, word: string): unknown {
  if (typeof value === 'string') {
    // The whole site has a location of its own.
    if (schema?.enum || NUMBER_WITH_UNIT.test(value) || value === '/' || value === 'Auto') return value;
    return schema?.default ?? word;
  }
  if (Array.isArray(value)) return value.map((item) => calm(item, schema?.items as Schema, word));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child], index) => {
      const known = schema?.properties?.[key];
      return [known ? key : `${word}${index}`, calm(child, known ?? (schema?.additionalProperties as Schema), word)];
    }),
  );
}

/** Every string in `value`, keys included. */
export function strings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [key, ...strings(child)]);
}

/** Which resources the tests take: the same ones in every run, so that a failure can be repeated. */
export const HOSTILE_COUNT = 1000;
export const HOSTILE_SEED = Number(process.env.HOSTILE_SEED ?? 1);

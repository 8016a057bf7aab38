/**
 * What the API server refuses, with which words; and that the operator's own check agrees with it. The messages are
 * golden in docs/bad-resources.md; `UPDATE_GOLDEN=1` rewrites it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { resourceSchema, type Schema } from '../../gen/crd.ts';
import { parseRenderService } from '../../src/api/resource.ts';
import { specRules } from '../../src/api/rules.ts';
import { type Json, StatusError } from '../support/api-client.ts';
import { repository } from '../support/api-server.ts';
import { HARMLESS, TOLD } from '../support/told.ts';
import { renderService, sharedServer, World } from '../support/world.ts';
import { badResources, goodResources } from './bad-resources.ts';

const GOLDEN = join(repository, 'docs/bad-resources.md');

let world: World;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'admission');
});

interface Cause {
  field: string;
  message: string;
}

/** Why the API server refuses a resource, field by field; empty when it accepts it. */
async function refusal(resource: Json): Promise<Cause[]> {
  try {
    // As kubectl sends it: the API server refuses unknown fields only with fieldValidation=Strict, kubectl's default.
    await world.admin.post(`${world.path('RenderService')}?dryRun=All&fieldValidation=Strict`, resource);
    return [];
  } catch (error) {
    if (!(error instanceof StatusError) || ![400, 422].includes(error.code)) throw error;
    return causes(error.status);
  }
}

/** A Status object as fields and messages. */
function causes({ details, message }: Json): Cause[] {
  if (details?.causes?.length > 0) {
    return details.causes
      .filter((cause: Json) => !cause.message.includes('some validation rules were not checked'))
      .map((cause: Json) => ({ field: cause.field.replace('<nil>', ''), message: cause.message }));
  }
  // Unknown fields come as one sentence without causes: strict decoding error: unknown field "spec.x".
  const [, field = ''] = /unknown field "([^"]+)"/.exec(message) ?? [];
  return [{ field, message: message.replace(/^.*?(strict decoding error)/s, '$1') }];
}

/** What the operator's check says; as the API server would hand it over, without what JSON cannot hold. */
function operatorAccepts(resource: Json): boolean {
  return parseRenderService(JSON.parse(JSON.stringify(resource))).ok;
}

function resourceOf({ name = 'shop', spec = {} }: { name?: string; spec?: Json }): Json {
  return renderService(world.namespace, name, spec);
}

/** A cell of a Markdown table. */
function cell(text: string): string {
  // A control character in a message must not break the table, and a long value not the eye.
  const visible = text.replaceAll(/[\n\r\t]+/g, ' ').replaceAll('|', '\\|');
  return visible.replaceAll(/a{51}/g, 'aaa…');
}

const TEMPLATE = /^spec\.template/;

describe('docs/bad-resources.md', () => {
  const golden = new Map(
    readGolden()
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.startsWith('| what is'))
      .map((line) => [line.split(' | ')[0]?.slice(2), line]),
  );
  const rows: string[] = [];

  test.each(badResources.map((bad) => [bad.what, bad] as const))('has the refusal of: %s', async (what, bad) => {
    const found = await refusal(resourceOf(bad));
    expect(found).not.toEqual([]);
    const fields = found.map(({ field }) => (field === '' ? '' : `\`${field}\``)).join('<br>');
    // A tag in somebody's value is none of the page's.
    const messages = found.map(({ message }) => message.replace(/<(?=[a-z/!])/gi, '&lt;')).join('<br>');
    const row = `| ${what} | ${cell(fields)} | ${cell(messages)} |`;
    rows.push(row);
    if (!process.env.UPDATE_GOLDEN) expect(row).toBe(golden.get(what));
  });

  test('has nothing else', () => {
    if (process.env.UPDATE_GOLDEN) writeFileSync(GOLDEN, page(rows));
    else expect(readGolden()).toBe(page(rows));
  });
});

function readGolden(): string {
  try {
    return readFileSync(GOLDEN, 'utf8');
  } catch {
    return '';
  }
}

function page(rows: string[]): string {
  return `<!-- Made by the tests: UPDATE_GOLDEN=1 make test; do not edit. -->
# What is refused, and why

The API server refuses these RenderServices, so none of them reaches the operator. \`kubectl apply\` shows the field and
the message. Each is a test case in \`operator/test/api/bad-resources.ts\`. What can be seen only later is told: by conditions (below), and
where pods are missing by the condition Ready: [why-no-pods.md](why-no-pods.md).

| what is wrong | field | message |
|---|---|---|
${rows.join('\n')}

## What takes a right

With \`admissionPolicy.enabled\` of the chart ([security.md](security.md)) these are refused (403) to whoever lacks the right that the
message names. Test cases: \`operator/test/api/forbidden-resources.ts\`.

| field | message |
|---|---|
${policyRows().join('\n')}

## What is told later

Seen with \`kubectl describe rsvc NAME\`. "..." stands for what is another one each time; each text is that of a test
(\`operator/test/support/told.ts\`). What runs keeps running meanwhile.

| what is wrong | where | message |
|---|---|---|
${Object.values(TOLD)
  .map(({ what, where, message }) => `| ${what} | ${where} | ${cell(message)} |`)
  .join('\n')}

## What is nobody's trouble

Each is the name of a test.

${Object.values(HARMLESS)
  .map((name) => `- ${name}`)
  .join('\n')}
`;
}

test('each message and each harmless thing of docs/bad-resources.md has a test', () => {
  const folder = join(repository, 'operator/test');
  const tests = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.test.ts'));
  const text = tests.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
  const missing = [
    ...Object.keys(TOLD).filter((key) => !text.includes(`asTold(TOLD.${key})`)),
    ...Object.keys(HARMLESS).filter((key) => !text.includes(`test(HARMLESS.${key},`)),
  ];
  expect(missing).toEqual([]);
});

/** A row for each message of the chart's policy about RenderServices. */
function policyRows(): string[] {
  const text = readFileSync(join(repository, 'charts/corelane/templates/admission-policies.yaml'), 'utf8');
  const messages = [...text.matchAll(/^ *message: (".*")$/gm)].map(
    ([, quoted]) => JSON.parse(quoted as string) as string,
  );
  expect(messages).not.toEqual([]);
  return messages.map((message) => {
    const [field, ...rest] = message.split(': ');
    return `| \`${field}\` | ${cell(rest.join(': '))} |`;
  });
}

test('kubectl shows the field and the message', async () => {
  const bad = resourceOf({ spec: { workersPerPod: 0, queue: { timeout: '10' } } });
  await expect(world.kubectl.create(bad, '--dry-run=server')).rejects.toThrow(
    /spec\.workersPerPod: Invalid value: 0.*spec\.queue\.timeout: Invalid value: "10": must be .* such as 500ms, 10s or 5m/s,
  );
});

test('kubectl names a misspelt field', async () => {
  const bad = resourceOf({ spec: { workerPerPod: 4 } });
  await expect(world.kubectl.create(bad, '--dry-run=server')).rejects.toThrow('unknown field "spec.workerPerPod"');
});

describe('the operator and the API server agree', () => {
  test.each(badResources.filter(({ apiServerOnly }) => !apiServerOnly).map((bad) => [bad.what, bad] as const))(
    'to refuse: %s',
    (_what, bad) => {
      expect(operatorAccepts(resourceOf(bad))).toBe(false);
    },
  );

  test.each(goodResources.map((good) => [good.what, good] as const))('to accept: %s', async (_what, good) => {
    expect(await refusal(resourceOf(good))).toEqual([]);
    expect(parseRenderService(resourceOf(good))).toMatchObject({ ok: true });
  });

  test('on every rule between fields, in the same words', async () => {
    const keyOf = (field: string, message: string) => `${field}: ${message}`;
    const said = new Set<string>();
    for (const bad of badResources.filter(({ apiServerOnly }) => !apiServerOnly)) {
      const resource = resourceOf(bad);
      const parsed = parseRenderService(JSON.parse(JSON.stringify(resource)));
      const fromOperator = parsed.ok ? [] : parsed.errors.map(({ path, message }) => keyOf(path, message));
      const fromServer = (await refusal(resource)).map(({ field, message }) =>
        keyOf(field, message.replace('Invalid value: ', '')),
      );
      for (const text of fromOperator) if (fromServer.includes(text)) said.add(text);
    }
    // A new rule needs a bad resource that breaks it.
    const rules = specRules.map(({ path, message }) => keyOf(['spec', ...path].join('.'), message));
    expect([...said]).toEqual(expect.arrayContaining(rules));
  });
});

/** Every field below `node`, with its path; the pod template is Kubernetes' own. */
function leaves(node: Schema, path: string[]): { path: string[]; node: Schema }[] {
  const here = Object.entries(node.properties ?? {}).flatMap(([name, child]) => leaves(child, [...path, name]));
  if (here.length > 0) return TEMPLATE.test(path.join('.')) ? [] : here;
  return TEMPLATE.test(path.join('.')) ? [] : [{ path, node }];
}

const specSchema = resourceSchema().properties?.spec as Schema;
const fields = leaves(specSchema, ['spec']);

/**
 * A RenderService with `value` at `path`, and with what is required beside it: rules are only asked where that is
 * there.
 */
function resourceWith(path: string[], value: unknown): Json {
  const spec = path.slice(1).reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Json;
  if (spec.fallback?.configMap) spec.fallback.configMap = { name: 'shell', ...spec.fallback.configMap };
  if (spec.tracing?.headersFrom) {
    const headersFrom = { name: 'headers', ...spec.tracing.headersFrom };
    spec.tracing = { endpoint: 'http://collector:4318', headersFrom };
  }
  if (spec.rollout?.canary) spec.rollout.canary = { steps: [{ share: 5, for: '5m' }], ...spec.rollout.canary };
  if (spec.scaling) spec.scaling = { maxReplicas: 10, ...spec.scaling };
  return renderService(world.namespace, 'shop', spec);
}

/** Refused by both, and the API server says where. */
async function expectRefused(path: string[], value: unknown): Promise<void> {
  const resource = resourceWith(path, value);
  const where = `${path.join('.')} = ${JSON.stringify(value)}`;
  const fieldsRefused = (await refusal(resource)).map(({ field }) => field);
  expect({ where, fieldsRefused }).toEqual({ where, fieldsRefused: expect.arrayContaining([path.join('.')]) });
  expect({ where, accepted: operatorAccepts(resource) }).toEqual({ where, accepted: false });
}

/** What would end a line, a string or a block in a proxy's configuration, or look like a variable of it. */
const HOSTILE = ['a\nb', 'a\rb', 'a;b', 'a{b', 'a}b', 'a"b', "a'b", 'a\\b', 'a\u0000b', 'a b', 'a#b', '/$host', '/é'];

/** A file of its own, and not a word of a configuration. */
const CONTENT = 'spec.fallback.html';

describe('every text field', () => {
  const texts = fields.filter(({ node }) => node.type === 'string' || node['x-kubernetes-int-or-string']);
  const words = texts.filter(({ path }) => path.join('.') !== CONTENT);

  test('is found by this test', () => {
    expect(texts.length).toBeGreaterThan(15);
  });

  test.each(words.map(({ path }) => [path.join('.'), path] as const))(
    'refuses hostile text: %s',
    async (_name, path) => {
      for (const text of HOSTILE) {
        await expectRefused(path, text);
        await expectRefused(path, `/${text}`);
        await expectRefused(path, `10s${text}`);
      }
      await expectRefused(path, 'a'.repeat(10_000));
      await expectRefused(path, '');
    },
  );
});

describe('every number', () => {
  const numbers = fields.filter(({ node }) => node.type === 'integer' || node.type === 'number');

  test.each(numbers.map(({ path, node }) => [path.join('.'), path, node] as const))(
    'has bounds and refuses what is no number: %s',
    async (_name, path, node) => {
      const { minimum, maximum } = node as { minimum?: number; maximum?: number };
      const broken = node.type === 'integer' ? 1.5 : 1.000_01;
      expect({ minimum, maximum }).toEqual({ minimum: expect.any(Number), maximum: expect.any(Number) });
      for (const value of [
        (minimum as number) - 1,
        (maximum as number) + 1,
        broken,
        1e15,
        -1e15,
        1e300,
        '1',
        true,
        [1],
      ]) {
        await expectRefused(path, value);
      }
    },
  );
});

const notMaps = fields.filter(({ node }) => node.type !== 'object');

test.each(notMaps.map(({ path, node }) => [path.join('.'), path, node] as const))(
  '%s refuses another type',
  async (_name, path, node) => {
    await expectRefused(path, node.type === 'array' ? 'a' : ['a']);
    await expectRefused(path, {});
  },
);

test('annotations of the Service keep any text: no configuration has them', async () => {
  const good = resourceOf({ spec: { service: { annotations: { 'example.com/a': 'a; {"b": 1}\n' } } } });
  expect(await refusal(good)).toEqual([]);
  expect(operatorAccepts(good)).toBe(true);
});

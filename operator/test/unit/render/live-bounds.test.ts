/**
 * Pods refuse live settings that the API would refuse, so nobody takes a fleet away by a number in a ConfigMap. Pods
 * cannot read the schema: its bounds and defaults stand in HAProxy's Lua and in the worker runtime once more.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LIVE_FILE } from '../../../src/api/names.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { liveNumber, renderLive } from '../../../src/render/live.ts';

const sidecar = fileURLToPath(new URL('../../../../sidecar', import.meta.url));
const source = (file: string) => readFileSync(join(sidecar, file), 'utf8');
const template = { spec: { containers: [{ name: 'worker', image: 'registry.example/worker:1' }] } };

const LUA = source('haproxy/live/document.lua');
/** `100`, or a constant, which may be `RENDER_MS_MIN + 1000`. */
function number(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  const [, value] = new RegExp(`^local ${text} = (.+)$`, 'm').exec(LUA) ?? [];
  if (value === undefined) throw new Error(`no constant ${text}`);
  return value.split(' + ').reduce((sum, part) => sum + number(part), 0);
}

/** By name: the least, the most, and the default. */
const inLua = new Map(
  [...LUA.matchAll(/^ {2}\['([a-z-]+)'\] = \{ (\w+), (\w+), (\d+) \},$/gm)].map(([, name = '', ...three]) => [
    name,
    three.map(number) as [least: number, most: number, usual: number],
  ]),
);

test('without a file a pod has the defaults of the schema', () => {
  const { [LIVE_FILE]: settings } = renderLive(renderServiceSpec.parse({ template }));
  const usual = [...inLua].map(([name, [, , value]]) => [name, value]);
  expect(usual).toEqual([...inLua.keys()].map((name) => [name, liveNumber(settings, name)]));
  expect(inLua.size).toBe(13);
});

/** Setting, and a spec that has a value of it. */
const FIELDS: [name: string, spec: (value: number) => object][] = [
  ['queue-length-max', (maxLength) => ({ queue: { maxLength } })],
  ['asks-max', (maxAsks) => ({ pooling: { maxAsks } })],
  ['concurrency-max', (concurrency) => ({ concurrency })],
  ['render-ms', (ms) => ({ timeouts: { render: `${ms}ms` } })],
  ['stale-while-revalidate-s', (seconds) => ({ cache: { staleWhileRevalidate: `${seconds}s` } })],
  ['stale-if-error-s', (seconds) => ({ cache: { staleIfError: `${seconds}s` } })],
];

test('the floors of time limits are those of the shortest render', () => {
  const spec = renderServiceSpec.parse({ template, timeouts: { render: '100ms' } });
  const { [LIVE_FILE]: settings } = renderLive(spec);
  expect(inLua.get('render-ms')?.[0]).toBe(liveNumber(settings, 'render-ms'));
  expect(inLua.get('worker-ms')?.[0]).toBe(liveNumber(settings, 'worker-ms'));
});

test.each(FIELDS)('%s: a pod takes what the schema takes, and no less', (...[name, spec]) => {
  const isTaken = (value: number) => renderServiceSpec.safeParse({ template, ...spec(value) }).success;
  const [least, most] = inLua.get(name) ?? [];
  expect([isTaken(Number(least)), isTaken(Number(least) - 1)]).toEqual([true, false]);
  // A day for all times of renders: what the schema takes, and what the operator adds to it.
  if (name === 'render-ms') expect(most).toBe(86_400_000);
  else expect([isTaken(Number(most)), isTaken(Number(most) + 1)]).toEqual([true, false]);
});

test('the worker runtime has the same bounds', () => {
  const constant = (name: string) =>
    Number(new RegExp(`^const ${name} = ([0-9_]+);$`, 'm').exec(source('runtime/live.cjs'))?.[1]?.replaceAll('_', ''));
  expect(constant('RENDER_MS_MIN')).toBe(inLua.get('render-ms')?.[0]);
  expect(constant('RENDER_MS_MAX')).toBe(inLua.get('render-ms')?.[1]);
  expect(constant('LIMIT_MAX')).toBe(inLua.get('concurrency-max')?.[1]);
});

/** What Argo CD makes of a RenderService: the health check of examples/gitops, on what the operator writes. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type LuaEngine, LuaFactory } from 'wasmoon';
import { type ConditionDraft, progressing, ready, retrying, stalled } from '../../src/api/conditions.ts';

const script = readFileSync(
  fileURLToPath(new URL('../../../examples/gitops/argocd-health.lua', import.meta.url)),
  'utf8',
);
const GENERATION = 3;

interface World {
  conditions?: ConditionDraft[];
  observed?: number;
  replicas?: number;
  annotations?: Record<string, string>;
}

function resource({ conditions, observed = GENERATION, replicas, annotations }: World) {
  return {
    metadata: { name: 'shop', generation: GENERATION, ...(annotations && { annotations }) },
    spec: { ...(replicas !== undefined && { replicas }) },
    ...(conditions && { status: { observedGeneration: observed, conditions } }),
  };
}

const paused = { 'corelane.dev/scaling-paused': 'true' };
const worlds: [string, World, string, RegExp][] = [
  ['just made', {}, 'Progressing', /not seen/],
  ['all pods are ready', { conditions: ready(3) }, 'Healthy', /^3 of 3 pods are ready$/],
  ['a change that the operator has not seen', { conditions: ready(3), observed: 2 }, 'Progressing', /not seen/],
  ['a rollout while enough pods serve', { conditions: progressing('1 of 3', true) }, 'Progressing', /1 of 3/],
  ['too few pods', { conditions: progressing('0 of 3', false) }, 'Progressing', /0 of 3/],
  ['an API server that does not answer', { conditions: retrying('tries', true) }, 'Progressing', /tries/],
  ['refused', { conditions: stalled('InvalidSpec', 'spec.queue: no', 2) }, 'Degraded', /spec\.queue: no/],
  [
    'refused, and mended since',
    { conditions: stalled('NotOwned', 'taken', 0), observed: 2 },
    'Progressing',
    /not seen/,
  ],
  ['no pods, by will', { conditions: ready(0), replicas: 0 }, 'Suspended', /0 pods/],
  ['no pods yet to go', { conditions: progressing('1 of 0', true), replicas: 0 }, 'Progressing', /1 of 0/],
  ['scaling is paused', { conditions: ready(3), annotations: paused }, 'Healthy', /3 of 3 .*; scaling is paused/],
  ['another annotation', { conditions: ready(3), annotations: { a: 'b' } }, 'Healthy', /ready$/],
  [
    'not ready, and nothing is being done',
    { conditions: [{ type: 'Ready', status: 'False', reason: 'PodsNotReady', message: 'none' }] },
    'Degraded',
    /none/,
  ],
];

let lua: LuaEngine;
beforeAll(async () => {
  // Plain tables, as Argo CD hands them over.
  lua = await new LuaFactory().createEngine({ enableProxy: false });
});
afterAll(() => lua.global.close());

test.each(worlds)('%s', async (_name, world, status, message) => {
  lua.global.set('obj', resource(world));
  expect(await lua.doString(script)).toEqual({ status, message: expect.stringMatching(message) });
});

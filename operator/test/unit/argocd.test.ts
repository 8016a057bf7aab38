/**
 * What Argo CD makes of a RenderService: the health check of examples/gitops, and what it can do about a canary, on
 * what the operator writes.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type LuaEngine, LuaFactory } from 'wasmoon';
import { parse } from 'yaml';
import { abortion, promotion, retrial } from '../../cli/rollout/canary.ts';
import type { Resource } from '../../cli/rollout/service.ts';
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
  rollout?: object;
  annotations?: Record<string, string>;
}

function resource({ conditions, observed = GENERATION, replicas, annotations, rollout }: World) {
  return {
    metadata: { name: 'shop', generation: GENERATION, ...(annotations && { annotations }) },
    spec: { ...(replicas !== undefined && { replicas }) },
    ...(conditions && { status: { observedGeneration: observed, conditions, rollout } }),
  };
}

const paused = { 'corelane.dev/scaling-paused': 'true' };
const worlds: [string, World, string, RegExp][] = [
  ['just made', {}, 'Progressing', /not seen/],
  ['all pods are ready', { conditions: ready(3) }, 'Healthy', /^3 of 3 pods are ready$/],
  ['a change that the operator has not seen', { conditions: ready(3), observed: 2 }, 'Progressing', /not seen/],
  ['a rollout while enough pods serve', { conditions: progressing('1 of 3', true) }, 'Progressing', /1 of 3/],
  [
    'a change that a pause holds',
    { conditions: progressing('held', true), rollout: { phase: 'Paused' } },
    'Suspended',
    /held/,
  ],
  [
    'a change that goes on',
    { conditions: progressing('1 of 3', true), rollout: { phase: 'Rolling' } },
    'Progressing',
    /1 of 3/,
  ],
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

describe('actions', () => {
  const file = fileURLToPath(new URL('../../../examples/gitops/argocd-actions.yaml', import.meta.url));
  const [customization] = Object.values(parse(readFileSync(file, 'utf8')).data) as string[];
  const actions = parse(customization ?? '') as {
    'discovery.lua': string;
    definitions: { name: string; 'action.lua': string }[];
  };
  const canary = { revision: '19be04aa3c', attempt: 1, step: 2, steps: 3 };
  const shop = (rollout: object | undefined, annotations?: Record<string, string>) => ({
    metadata: { name: 'shop', ...(annotations && { annotations }) },
    ...(rollout && { status: { rollout } }),
  });
  const enabled = async (resource: object) => {
    lua.global.set('obj', resource);
    const found: Record<string, { disabled: boolean }> = await lua.doString(actions['discovery.lua']);
    return Object.keys(found)
      .filter((name) => !found[name]?.disabled)
      .toSorted();
  };
  const done = async (name: string, resource: object) => {
    lua.global.set('obj', resource);
    const action = actions.definitions.find((one) => one.name === name);
    return (await lua.doString(action?.['action.lua'] ?? '')).metadata.annotations;
  };

  test.each<[string, object | undefined, string[]]>([
    ['nothing is known', undefined, []],
    ['there is no canary', { phase: 'Complete' }, []],
    ['a plain change is held', { phase: 'Paused' }, []],
    ['before its first step', { phase: 'Preparing', canary: { ...canary, step: 0 } }, ['abort', 'promote-all']],
    ['at a step', { phase: 'Stepping', canary }, ['abort', 'promote', 'promote-all']],
    ['it waits for somebody', { phase: 'Paused', canary }, ['abort', 'promote', 'promote-all']],
    ['it is being aborted', { phase: 'Aborting', canary }, []],
    ['it is aborted', { phase: 'Aborted', canary }, ['retry']],
  ])('%s', async (_what, rollout, names) => expect(await enabled(shop(rollout))).toEqual(names));

  test.each([1, 2])('are what the command line does, of try %d', async (attempt) => {
    const paused = shop({ phase: 'Paused', canary: { ...canary, attempt } }, { a: 'b' });
    const aborted = shop({ phase: 'Aborted', canary: { ...canary, attempt } }, { 'corelane.dev/rollout-abort': 'x' });
    const written = ({ annotations }: { annotations: Record<string, string | null> }, more: object = {}) =>
      Object.fromEntries(Object.entries({ ...more, ...annotations }).filter(([, value]) => value !== null));
    const as = (resource: object) => resource as Resource;
    expect(await done('promote', paused)).toEqual(written(promotion(as(paused), { all: false }), { a: 'b' }));
    expect(await done('promote-all', paused)).toEqual(written(promotion(as(paused), { all: true }), { a: 'b' }));
    expect(await done('abort', paused)).toEqual(written(abortion(as(paused)), { a: 'b' }));
    expect(await done('retry', aborted)).toEqual(written(retrial(as(aborted))));
    // Without annotations of before.
    expect(await done('abort', shop({ phase: 'Paused', canary }))).toEqual(written(abortion(as(paused))));
  });

  test('a canary that waits for somebody is suspended, and one that is aborted degraded', async () => {
    const why = 'canary 19be04aa3c: 12 of 80 requests failed, stable 1 of 1,500';
    for (const [phase, conditions, status] of [
      ['Paused', progressing(why, true, true), 'Suspended'],
      ['Stepping', progressing(why, true), 'Progressing'],
      ['Aborted', stalled('RolloutAborted', why, 4), 'Degraded'],
    ] as const) {
      lua.global.set('obj', resource({ conditions, rollout: { phase, canary } }));
      expect(await lua.doString(script)).toEqual({ status, message: expect.stringContaining(why) });
    }
  });
});

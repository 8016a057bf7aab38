/**
 * The spec of a RenderService: the one definition of its fields, defaults, bounds and descriptions. Types, CRD,
 * chart copy and docs/reference.md are made from it (`make generate`).
 */
import { z } from 'zod';
import { WORKERS_PER_POD_MAX } from './names.ts';
import { networkPolicy } from './network-policy.ts';
import { scaling } from './scaling.ts';
import { accessLog } from './spec/access-log.ts';
import { assets, basePath, framework } from './spec/assets.ts';
import { cache } from './spec/cache.ts';
import { classes } from './spec/classes.ts';
import { compression } from './spec/compression.ts';
import { concurrency, concurrencyRange, usualConcurrency } from './spec/concurrency.ts';
import { deadlines } from './spec/deadlines.ts';
import { fallback } from './spec/fallback.ts';
import { objectives } from './spec/objectives.ts';
import { podTemplate } from './spec/pod-template.ts';
import { priority } from './spec/priority.ts';
import { pooling, queue, readiness } from './spec/queue.ts';
import { replay, replayExcept } from './spec/replay.ts';
import { buffering, forwarded, keepAlive, limits, ping, timeouts, webSockets } from './spec/requests.ts';
import { disruptionBudget, drain, rollout } from './spec/rollout.ts';
import { runtime, warmup, watchdog } from './spec/runtime.ts';
import { service } from './spec/service.ts';
import { sidecar } from './spec/sidecar.ts';
import { streaming } from './spec/streaming.ts';
import { tracing } from './spec/tracing.ts';

/** The fields. The order is the order of the reference. */
const fields = z.strictObject({
  workersPerPod: z
    .int()
    .min(1)
    .max(WORKERS_PER_POD_MAX)
    .default(2)
    .describe('Worker containers per pod, one CPU each.'),
  concurrency,
  concurrencyRange,
  replicas: z
    .int()
    .min(0)
    .max(10_000)
    .default(2)
    .describe(
      'Pods. kubectl scale, an HPA or KEDA set it through the scale subresource; with scaling set, the operator does.',
    ),
  scaling,
  template: podTemplate,
  balance: z
    .enum(['first', 'roundrobin', 'leastconn'])
    .default('roundrobin')
    .describe(
      'Which free worker gets a request: roundrobin spreads evenly; first keeps a few workers warm; leastconn is for concurrency above 1, and is what Auto has.',
    ),
  queue,
  timeouts,
  replay,
  replayExcept,
  buffering,
  streaming,
  cache,
  compression,
  forwarded,
  ping,
  framework,
  basePath,
  assets,
  keepAlive,
  webSockets,
  limits,
  classes,
  fallback,
  priority,
  deadlines,
  service,
  sidecar,
  readiness,
  pooling,
  watchdog,
  runtime,
  warmup,
  rollout,
  drain,
  disruptionBudget,
  networkPolicy,
  accessLog,
  tracing,
  objectives,
});

/** Shape of the spec without the rules between fields. Defaults that follow from other fields are filled in here. */
export const specShape = fields.overwrite((spec) => ({
  ...spec,
  concurrency: spec.concurrency ?? usualConcurrency(spec),
}));

/** Defaulted spec: what every later step works from. */
export type RenderServiceSpec = z.output<typeof specShape>;
/** Spec as a user may write it. */
export type RenderServiceSpecInput = z.input<typeof specShape>;

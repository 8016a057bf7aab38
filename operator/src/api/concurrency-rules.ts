/** Rules about `concurrency: Auto`, and the most requests that a worker may have at a time as CEL. */

import { RANGE_DEFAULT, USUAL_IS_AUTO } from './spec/concurrency.ts';
import type { RenderServiceSpec } from './spec.ts';
import type { SpecRule } from './spec-rule.ts';

/** The API server does not fill the field in: its default follows from others. */
const IS_AUTO = `(has(self.concurrency) ? string(self.concurrency) == 'Auto' : ${USUAL_IS_AUTO})`;
/** CEL of the larger one of these bounds. */
export const CONCURRENCY_MAX = `(has(self.concurrency) && type(self.concurrency) == int ? int(self.concurrency) : !${IS_AUTO} ? 1 : has(self.concurrencyRange) ? self.concurrencyRange.max : ${RANGE_DEFAULT.max})`;

/** CEL and predicate of something that cannot be together with Auto. */
function auto(
  path: string[],
  message: string,
  { cel, holds }: { cel: string; holds: (spec: RenderServiceSpec) => boolean },
): SpecRule {
  return {
    path,
    message,
    cel: `!(${IS_AUTO}) || ${cel}`,
    holds: (spec) => spec.concurrency !== 'Auto' || holds(spec),
  };
}

export const concurrencyRules: SpecRule[] = [
  {
    path: ['concurrencyRange'],
    message: 'is for concurrency: Auto; leave it out, or set that',
    cel: `!has(self.concurrencyRange) || ${IS_AUTO}`,
    holds: ({ concurrency, concurrencyRange }) => concurrencyRange === undefined || concurrency === 'Auto',
  },
  {
    path: ['concurrencyRange'],
    message: 'min must not be larger than max',
    cel: '!has(self.concurrencyRange) || self.concurrencyRange.min <= self.concurrencyRange.max',
    holds: ({ concurrencyRange }) => concurrencyRange === undefined || concurrencyRange.min <= concurrencyRange.max,
  },
  auto(
    ['concurrency'],
    'Auto works with runtime.instrument only: it is the worker runtime that measures the event loop; set a number',
    { cel: 'self.runtime.instrument', holds: ({ runtime }) => runtime.instrument },
  ),
  auto(
    ['balance'],
    'must not be first with concurrency: Auto, which fills the worker that has the fewest requests (leastconn): leave it out',
    { cel: "self.balance != 'first'", holds: ({ balance }) => balance !== 'first' },
  ),
  auto(
    ['webSockets', 'enabled'],
    'must not be true with concurrency: Auto: a WebSocket takes a place for as long as it is open, and the event loop has nothing to do for it; set a number, or let another RenderService have the WebSockets',
    { cel: '!self.webSockets.enabled', holds: ({ webSockets }) => !webSockets.enabled },
  ),
];

/** What a rule between fields of a spec is; rules.ts has the rules. */
import { DURATION_PATTERN } from './scalars.ts';
import type { RenderServiceSpec } from './spec.ts';

/** One rule: `cel` and `holds` say the same thing. */
export interface SpecRule {
  /** Field that the error points at. */
  path: string[];
  message: string;
  cel: string;
  holds(spec: RenderServiceSpec): boolean;
}

/** CEL: `field` can be read as a duration. Where it cannot, its own message says so, and no second one should. */
export function isDuration(field: string): string {
  return `${field}.matches('${DURATION_PATTERN.source}')`;
}

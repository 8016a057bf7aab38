/** What a rule between fields of a spec is; rules.ts has the rules. */
import type { RenderServiceSpec } from './spec.ts';

/** One rule: `cel` and `holds` say the same thing. */
export interface SpecRule {
  /** Field that the error points at. */
  path: string[];
  message: string;
  cel: string;
  holds(spec: RenderServiceSpec): boolean;
}

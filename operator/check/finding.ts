/** What a rule has found, and how bad it is. */
import type { Code } from './codes.ts';
import { LEVELS, type Level } from './levels.ts';

export interface Finding {
  code: Code;
  level: Level;
  /** Kind and name of the object that has the field: `Deployment/storefront`. */
  object: string;
  /** Path of the field in that object: `spec.template.spec.containers[0].livenessProbe`. */
  path: string;
  /** Further fields that the same sentence is about. */
  also?: string[];
  /** What is there, or what became of it. */
  what: string;
  why: string;
  /** What to do about it; a sentence. */
  wayOut: string;
  /** What becomes of the whole object in a move. `convert` makes its traffic plan from these. */
  fate?: Fate;
}

/** `replaced` objects are deleted, unless another finding says `kept`. */
export type Fate = 'replaced' | 'kept';

/** Whether one of the findings is as bad as `threshold`, or worse. */
export function reaches(findings: Pick<Finding, 'level'>[], threshold: Level): boolean {
  return findings.some(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf(threshold));
}

/** The worst level of several; undefined where there is no finding. */
export function worst(findings: Pick<Finding, 'level'>[]): Level | undefined {
  return LEVELS.findLast((level) => findings.some((finding) => finding.level === level));
}

/** Worst first, then by code, then as they were found. */
export function sorted<T extends Pick<Finding, 'level' | 'code'>>(findings: T[]): T[] {
  return findings.toSorted(
    (one, other) =>
      LEVELS.indexOf(other.level) - LEVELS.indexOf(one.level) ||
      (one.code < other.code ? -1 : one.code > other.code ? 1 : 0),
  );
}

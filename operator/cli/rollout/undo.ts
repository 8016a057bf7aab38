/** `corelane rollout undo`: writes the spec of a revision of before. */
import { REACH } from '../../src/api/live.ts';
import { parseStored } from '../../src/api/resource.ts';
import { mergePatch, specBefore } from '../../src/api/undo.ts';
import { isSameInput, type Made } from '../../src/plan/made.ts';
import { UsageError } from '../usage.ts';
import type { Listed, Resource } from './service.ts';

type Fields = Record<string, unknown>;

/** What undo will do. */
export interface Undo {
  to: Listed;
  /** A merge patch of the spec. */
  spec: Fields;
}

/**
 * Finds the revision and what is to be written.
 * @param revisions the one that is asked for first
 * @param number of the revision, or undefined for the last one before that was all there
 * @throws UsageError when there is none
 */
export function undoOf(resource: Resource, revisions: Listed[], number: number | undefined): Undo {
  const to = number === undefined ? lastBefore(resource, revisions) : ofNumber(revisions, number);
  const { made } = to;
  if (!made) throw new UsageError(`it is not known what revision ${to.number} was made of`);
  const now = resource.spec as Fields;
  const before = withoutOperatorFields(made.spec as Fields);
  // What a setting may be depends on others for some: then those of before come with it. The last one lacks what was
  // not there: the default of concurrency depends on other fields.
  const candidates = [specBefore(now, made.spec), { ...now, ...before }, { ...operatorFields(now), ...before }];
  const after = candidates.find((spec) => isOf(resource, spec, made)) ?? (candidates[0] as Fields);
  return { to, spec: mergePatch(now, after) };
}

function ofNumber(revisions: Listed[], number: number): Listed {
  const found = revisions.find((one) => one.number === number);
  if (found) return found;
  const known = revisions.map((one) => one.number).join(', ');
  throw new UsageError(`there is no revision ${number}, only ${known || 'none at all'}`);
}

/** One of the same input is another version's, and no change of the user's. */
function lastBefore(resource: Resource, [, ...others]: Listed[]): Listed {
  const earlier = others.filter(({ made }) => !made || !isOf(resource, resource.spec, made));
  const found = earlier.find(({ wasComplete, made }) => wasComplete && made) ?? earlier.find(({ made }) => made);
  if (found) return found;
  throw new UsageError(
    others.length > 0
      ? 'the revision before was made of the same spec by another version of the operator; use helm rollback'
      : 'there is no revision before this one',
  );
}

function isOf(resource: Resource, spec: unknown, made: Made): boolean {
  const parsed = parseStored({ ...resource, spec });
  return parsed.ok && isSameInput(made, parsed.renderService);
}

/** What is not about the inside of pods is never that of before: how large the service is, and who may reach it. */
function withoutOperatorFields(before: Fields): Fields {
  return Object.fromEntries(Object.entries(before).filter(([name]) => !isOperatorField(name)));
}

function operatorFields(now: Fields): Fields {
  return Object.fromEntries(Object.entries(now).filter(([name]) => isOperatorField(name)));
}

function isOperatorField(name: string): boolean {
  return REACH[name]?.[0] === 'operator';
}

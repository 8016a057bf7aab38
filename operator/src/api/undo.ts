/** The spec that brings pods of before back: what they are made of is as it was then, everything else as it is now. */
import { reachOf } from './live.ts';

type Fields = Record<string, unknown>;

/**
 * Live settings and what is not about the inside of pods (replicas, scaling) stay: they have been changed since for
 * reasons that have nothing to do with the pods.
 * @param now the spec as it is
 * @param before the spec of which the pods were made
 */
export function specBefore(now: unknown, before: unknown): Fields {
  return merged(fieldsOf(now), fieldsOf(before), '');
}

function merged(now: Fields, before: Fields, path: string): Fields {
  const names = new Set([...Object.keys(now), ...Object.keys(before)]);
  return Object.fromEntries(
    [...names].flatMap((name) => {
      const value = choose(now[name], before[name], path === '' ? name : `${path}.${name}`);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function choose(now: unknown, before: unknown, path: string): unknown {
  if (reachOf(path)[0] !== 'rolling') return now;
  // The template is the user's own; of a list it is not known which entry of now is which of before.
  if (path === 'template' || !isFields(now ?? {}) || !isFields(before ?? {})) return before;
  const both = merged(fieldsOf(now), fieldsOf(before), path);
  return before === undefined && Object.keys(both).length === 0 ? undefined : both;
}

/** A merge patch that makes `after` of `before`. */
export function mergePatch(before: Fields, after: Fields): Fields {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Object.fromEntries(
    [...names].flatMap((name): [string, unknown][] => {
      const [was, is] = [before[name], after[name]];
      if (is === undefined) return [[name, null]];
      if (JSON.stringify(was) === JSON.stringify(is)) return [];
      return [[name, isFields(was) && isFields(is) ? mergePatch(was, is) : is]];
    }),
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

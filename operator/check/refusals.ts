/** What the API server refuses (C019), under the code of its subject where there is one. */
import type { FieldError } from '../src/api/resource.ts';
import type { Code } from './codes.ts';
import type { Finding } from './finding.ts';

/** Which code a refusal belongs to; the first that fits. */
const SUBJECTS: [code: Code, pattern: RegExp][] = [
  ['C001', /must not have (an? )?(readinessProbe|livenessProbe|startupProbe|lifecycle|hostPort)/],
  ['C012', /names of containers that Corelane adds|ports 8998 to|volume names that begin|hostNetwork: must not/],
];

/** Findings of the operator's own check. @param object kind and name */
export function refusals(errors: FieldError[], object: string): Finding[] {
  return errors.map(({ path, message }) => {
    const code = SUBJECTS.find(([, pattern]) => pattern.test(`${path}: ${message}`))?.[0] ?? 'C019';
    return {
      code,
      level: 'error',
      object,
      path,
      what: message,
      why: 'The API server refuses it',
      wayOut: 'Change it as the message says.',
    };
  });
}

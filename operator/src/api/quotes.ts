/** Values that YAML takes for a number or a boolean (8, 010, on, No) where Kubernetes wants text. */
import type { z } from 'zod';

/** The error for a value that should be text but is a number or a boolean. Undefined for any other value. */
export function quotesMissing(value: unknown): string | undefined {
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined;
  return `must be a string, not ${value}: put it in quotes`;
}

/** Words of zod's errors: the way out where quotes are missing, and else zod's own. */
export const withQuotesMissing: z.core.$ZodErrorMap = (issue) => {
  const isText =
    (issue.code === 'invalid_type' && issue.expected === 'string') ||
    (issue.code === 'invalid_value' && issue.values.every((value) => typeof value === 'string'));
  return isText ? quotesMissing(issue.input) : undefined;
};

/** How bad a finding is. */

/**
 * From harmless to impossible. `info`: nothing to do. `warning`: works, less well than it could. `decide`: only a
 * person knows the answer. `error`: does not work.
 */
export const LEVELS = ['info', 'warning', 'decide', 'error'] as const;
export type Level = (typeof LEVELS)[number];

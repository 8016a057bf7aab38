/** Signals by which people and systems end a command that goes on until then. */
export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

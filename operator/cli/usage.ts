/** Arguments of a command that cannot be used; the message says which and what would be right. */
export class UsageError extends Error {}

/** Nothing is wrong with the request but its time. */
export class TryAgainError extends Error {}

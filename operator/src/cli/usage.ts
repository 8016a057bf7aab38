/** Arguments of a command that cannot be used; the message says which and what would be right. */
export class UsageError extends Error {}

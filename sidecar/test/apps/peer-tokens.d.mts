export function connectionHead(ticket?: string): Buffer;
export function tokens(key: string, label: string, ...fields: string[]): [string, string];

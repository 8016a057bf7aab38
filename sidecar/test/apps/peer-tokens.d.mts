export function connectionHead(ticket?: string): Buffer;
export function tokens(key: string, label: string, ...fields: string[]): [string, string];
export function tokensOf(version: string, key: string, label: string, ...fields: string[]): [string, string];
export function headWithAddresses(source: string, destination: string): Buffer;

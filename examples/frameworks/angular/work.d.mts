export function slow(ms: number): Promise<string>;
export function pieces(): AsyncGenerator<string>;
export function reviews(): Promise<string>;
export function renderPrice(): number;
export function sessionCookies(): string[];
export function sessionBytes(cookie: string | null | undefined): number;

export function slow(ms: number): Promise<string>;
export function pieces(): AsyncGenerator<string>;
export function reviews(): Promise<string>;
export function renderPrice(): number;

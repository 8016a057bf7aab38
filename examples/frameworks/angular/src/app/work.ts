import { InjectionToken } from '@angular/core';

/** What the pages do on the server (work.mjs); in the browser it is not there. */
export interface Work {
  slow(ms: number): Promise<string>;
  renderPrice(): number;
  sessionBytes(cookie: string | null | undefined): number;
}

export const WORK = new InjectionToken<Work | null>('work', { factory: () => null });

import { fileURLToPath } from 'node:url';

/** The folder that containers of the benches get as /bench. */
export const INSIDE = fileURLToPath(new URL('../inside', import.meta.url));

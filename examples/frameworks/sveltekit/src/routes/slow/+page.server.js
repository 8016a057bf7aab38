import { slow } from '../../../work.mjs';

export const load = async () => ({ text: await slow(200) });

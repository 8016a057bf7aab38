import { renderPrice } from '../../../work.mjs';

export const load = () => ({ price: renderPrice() });

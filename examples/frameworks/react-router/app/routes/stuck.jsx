import { renderPrice } from '../../work.mjs';

export const loader = () => ({ price: renderPrice() });

export default function Stuck({ loaderData }) {
  return <p>{loaderData.price}</p>;
}

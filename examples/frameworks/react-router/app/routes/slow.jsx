import { slow } from '../../work.mjs';

export const loader = async () => ({ text: await slow(200) });

export default function Slow({ loaderData }) {
  return <p>{loaderData.text}</p>;
}

import { slow } from '../../work.mjs';

export const dynamic = 'force-dynamic';

export default async function Slow() {
  return <p>{await slow(200)}</p>;
}

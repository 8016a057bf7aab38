import { renderPrice } from '../../work.mjs';

export const dynamic = 'force-dynamic';

export default function Stuck() {
  return <p>{renderPrice()}</p>;
}

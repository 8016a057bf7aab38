export const dynamic = 'force-dynamic';

export default function Bought() {
  return <p>bought</p>;
}

export const dynamic = 'force-dynamic';

export default function About() {
  return <p>about this shop</p>;
}

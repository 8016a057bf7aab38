/** ISR: rendered at most once a second by each pod, and kept in its cache. */
export const revalidate = 1;

export default function Revalidated() {
  return <p>kept since {new Date().toISOString()}</p>;
}

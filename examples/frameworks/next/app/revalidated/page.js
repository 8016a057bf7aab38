/** ISR: rendered at most once a second by each worker, and kept in its memory. */
export const revalidate = 1;

export default function Revalidated() {
  return <p>kept since {new Date().toISOString()}</p>;
}

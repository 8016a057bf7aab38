/** Kept for an hour, or until `POST /api/prices/changed`: it has the tag "prices" (next.config.js). */
export const revalidate = 3600;

export default function Prices() {
  return <p>prices of {new Date().toISOString()}</p>;
}

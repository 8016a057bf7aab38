import { draftMode } from 'next/headers';

/** Kept for an hour, or until `POST /api/prices/changed`: it has the tag "prices" (next.config.js). */
export const revalidate = 3600;

export default async function Prices() {
  const { isEnabled } = await draftMode();
  return (
    <>
      <p>prices of {new Date().toISOString()}</p>
      {isEnabled && <p>a draft of them</p>}
    </>
  );
}

import { existsSync } from 'node:fs';
import { Suspense } from 'react';

export const dynamic = 'force-dynamic';

/** Waits for what Pod.release makes. */
async function Rest() {
  while (!existsSync(`${process.env.EVENTS}.rest`)) await new Promise((resolve) => setTimeout(resolve, 20));
  return <p>rest</p>;
}

export default function Shell() {
  return (
    <main>
      <p>{'x'.repeat(40_000)}</p>
      <p>end of shell</p>
      <Suspense fallback={<p>wait</p>}>
        <Rest />
      </Suspense>
    </main>
  );
}

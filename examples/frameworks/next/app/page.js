import Link from 'next/link';
import { Suspense } from 'react';
import { reviews } from '../work.mjs';
import { Likes } from './likes.js';

export const dynamic = 'force-dynamic';

/** Streamed: the page is there before. */
async function Reviews() {
  return <p>{await reviews()}</p>;
}

export default function Page() {
  return (
    <main>
      <h1>A page by Next</h1>
      <p>rendered at {new Date().toISOString()}</p>
      <Likes />
      <Link href="/about">about</Link>
      <Suspense fallback={<p>reviews are on their way</p>}>
        <Reviews />
      </Suspense>
    </main>
  );
}

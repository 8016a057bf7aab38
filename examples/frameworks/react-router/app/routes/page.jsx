import { Suspense, useState } from 'react';
import { Await, Link } from 'react-router';
import { reviews } from '../../work.mjs';

/** A promise that is not awaited is streamed: the page is there before. */
export function loader() {
  return { now: new Date().toISOString(), reviews: reviews() };
}

export default function Page({ loaderData }) {
  const [likes, setLikes] = useState(0);
  return (
    <main>
      <h1>A page by React Router</h1>
      <p>rendered at {loaderData.now}</p>
      <button type="button" onClick={() => setLikes(likes + 1)}>
        likes: {likes}
      </button>
      <Link to="/about">about</Link>
      <Suspense fallback={<p>reviews are on their way</p>}>
        <Await resolve={loaderData.reviews}>{(text) => <p>{text}</p>}</Await>
      </Suspense>
    </main>
  );
}

'use client';

import { useState } from 'react';

/** What makes the page need scripts. */
export function Likes() {
  const [likes, setLikes] = useState(0);
  return (
    <button type="button" onClick={() => setLikes(likes + 1)}>
      likes: {likes}
    </button>
  );
}

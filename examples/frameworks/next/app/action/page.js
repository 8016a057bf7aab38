import { redirect } from 'next/navigation';

export const dynamic = 'force-dynamic';

/** Next asks its own port for the page that it redirects to, and answers with it. */
async function buy() {
  'use server';
  redirect('/bought');
}

export default function Action() {
  return (
    <form action={buy}>
      <button type="submit">buy</button>
    </form>
  );
}

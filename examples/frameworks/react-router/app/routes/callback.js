import { sessionCookies } from '../../work.mjs';

/** Where the provider of a sign-in sends the browser. */
export function loader({ request }) {
  const headers = new Headers({ Location: String(new URL('/member', request.url)) });
  for (const cookie of sessionCookies()) headers.append('Set-Cookie', cookie);
  return new Response(null, { status: 303, headers });
}

import { sessionCookies } from '../../../work.mjs';

/** Where the provider of a sign-in sends the browser. */
export function GET({ url }) {
  const headers = new Headers({ Location: String(new URL('/member', url)) });
  for (const cookie of sessionCookies()) headers.append('Set-Cookie', cookie);
  return new Response(null, { status: 303, headers });
}

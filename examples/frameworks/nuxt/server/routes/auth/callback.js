import { sessionCookies } from '../../../work.mjs';

/** Where the provider of a sign-in sends the browser. */
export default defineEventHandler((event) => {
  for (const cookie of sessionCookies()) appendResponseHeader(event, 'Set-Cookie', cookie);
  return sendRedirect(event, new URL('/member', getRequestURL(event)).href, 303);
});

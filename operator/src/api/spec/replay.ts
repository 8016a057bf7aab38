/** Fields on the request that a worker dies with: which requests another worker may render. */
import { z } from 'zod';
import { pathPrefix } from '../scalars.ts';

const PATHS_MAX = 16;

/**
 * Paths of sign-ins at which a GET uses up a code or a token: Auth.js and better-auth (`/api/auth`, `/auth`), Auth0 and
 * Supabase (`/auth/callback`, `/auth/confirm`), nuxt-auth-utils (`/auth/github`). For every application: an exception
 * that is not needed costs a second try after a crash, and no more.
 */
export const SIGN_IN_PATHS = ['/auth', '/api/auth'];
/** Elements of other paths for the same: Passport (`/oauth2/redirect/google`), links in mails. */
export const SIGN_IN_ELEMENTS = [
  ...['oauth', 'oauth2', 'magic-link'],
  ...['verify', 'verify-email', 'confirm', 'confirm-email'],
];
/** How an element may end: `/login/github/callback`, Clerk's `/sso-callback`, Kinde's `kinde_callback`. */
export const SIGN_IN_ENDING = 'callback';

const codes = (words: string[]) => words.map((word) => `\`${word}\``).join(', ');

export const replay = z
  .enum(['Safe', 'Always', 'Never'])
  .default('Safe')
  .describe(
    'Whether the request that a dying worker was rendering is given once to another one: Safe replays GET, HEAD and OPTIONS; Always replays every method, for renders without side effects; Never replays none. Paths in `replayExcept` and classes with `replay: false` are excepted. What is not replayed is answered 502 at once. A request that no worker has begun is never lost, whatever its method.',
  );

export const replayExcept = z
  .array(pathPrefix())
  .max(PATHS_MAX)
  .default([])
  .describe(
    `Paths, and all below them, at which a GET must not run twice, such as a one-time link. A request that a worker has begun there is not replayed, whatever \`replay\` says, and does not use the cache. Upper and lower case, percent-encoding and repeated slashes make no difference. Paths of sign-ins are always excepted: those below ${SIGN_IN_PATHS.join(' and ')}, those with an element that ends with \`${SIGN_IN_ENDING}\`, and those with one of the elements ${codes(SIGN_IN_ELEMENTS)} (docs/runtime.md).`,
  );

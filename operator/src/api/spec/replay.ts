/** Fields on the request that a worker dies with: which requests another worker may render. */
import { z } from 'zod';
import { pathPrefix } from '../scalars.ts';

const PATHS_MAX = 16;

/**
 * Paths of sign-ins at which a GET uses up a code or a token: Auth.js and better-auth (`/api/auth`, `/auth`), Auth0 and
 * Supabase (`/auth/callback`, `/auth/confirm`), nuxt-auth-utils (`/auth/github`), Passport (`/oauth2/redirect/google`),
 * Spring (`/login/oauth2/code/google`). For every application, and no field takes a path out of the list, so it must
 * not have pages that a site would cache: `/docs/oauth2` is one, hence these count at the beginning of a path only.
 */
export const SIGN_IN_PATHS = ['/auth', '/oauth', '/oauth2', '/login/oauth2', '/login/magic'].flatMap((path) => [
  path,
  `/api${path}`,
]);
/**
 * Segments of other paths for the same: Shopify's Hydrogen (`/account/authorize`), Stytch (`/authenticate`), ASP.NET
 * (`/signin-oidc`), links in mails.
 */
export const SIGN_IN_SEGMENTS = [
  ...['authorize', 'authenticate', 'signin-oidc', 'magic-link'],
  ...['verify', 'verify-email', 'confirm', 'confirm-email', 'activate', 'reset-password', 'password-reset'],
  'unsubscribe',
];
/** How a segment may end: `/login/github/callback`, Clerk's `/sso-callback`, Kinde's `kinde_callback`. */
export const SIGN_IN_ENDING = 'callback';

const codes = (words: string[]) => words.map((word) => `\`${word}\``).join(', ');

export const replay = z
  .enum(['Safe', 'Always', 'Never'])
  .default('Safe')
  .describe(
    'When a worker dies, Corelane may give its request to another worker, once. Safe: it does so for GET, HEAD and OPTIONS. Always: for every method; use it if no render has side effects. Never: for none. It never does so for paths of sign-ins, paths in `replayExcept` and classes with `replay: false`. The client of a request that is not given to another worker gets 502 at once. A request that no worker has begun always goes to another worker, whatever its method.',
  );

export const replayExcept = z
  .array(pathPrefix())
  .max(PATHS_MAX)
  .default([])
  .describe(
    `Paths at which a GET must not run twice, such as a one-time link. Each path stands for itself and all below it. A request there is not replayed once a worker has begun it, whatever \`replay\` says, and does not use the cache. Upper and lower case, percent-encoding and repeated slashes make no difference. Paths of sign-ins are always excepted: ${codes(SIGN_IN_PATHS)} and all below them; paths with a segment that ends with \`${SIGN_IN_ENDING}\`; paths with one of the segments ${codes(SIGN_IN_SEGMENTS)} (docs/runtime.md).`,
  );

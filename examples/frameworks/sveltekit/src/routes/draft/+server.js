import { redirect } from '@sveltejs/kit';

/** For editors. An application of yours looks who that is, and has a secret as the value. */
export function GET({ cookies }) {
  cookies.set('__prerender_bypass', 'draft', { path: '/' });
  redirect(303, '/prices');
}

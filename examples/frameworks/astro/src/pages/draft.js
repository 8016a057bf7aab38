/** For editors. An application of yours looks who that is, and has a secret as the value. */
export function GET({ cookies, redirect }) {
  cookies.set('__prerender_bypass', 'draft', { path: '/', httpOnly: true, sameSite: 'lax' });
  return redirect('/prices');
}

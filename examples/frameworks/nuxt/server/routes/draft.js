/** For editors. An application of yours looks who that is, and has a secret as the value. */
export default defineEventHandler((event) => {
  setCookie(event, 'previewToken', 'draft', { path: '/', httpOnly: true, sameSite: 'lax' });
  return sendRedirect(event, '/prices');
});

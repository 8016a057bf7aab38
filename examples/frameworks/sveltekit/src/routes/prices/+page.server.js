export function load({ cookies, setHeaders }) {
  const isDraft = cookies.get('__prerender_bypass') !== undefined;
  // The cache of the pod keeps the page, but no draft.
  setHeaders({ 'cache-control': isDraft ? 'private, no-store' : 's-maxage=3600' });
  return { now: new Date().toISOString(), isDraft };
}

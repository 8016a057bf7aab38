import { data } from 'react-router';
import { draft } from '../draft.server.js';

export async function loader({ request }) {
  const isDraft = Boolean(await draft.parse(request.headers.get('cookie')));
  // The cache of the pod keeps the page, but no draft.
  const headers = { 'Cache-Control': isDraft ? 'private, no-store' : 's-maxage=3600' };
  return data({ now: new Date().toISOString(), isDraft }, { headers });
}

export const headers = ({ loaderHeaders }) => loaderHeaders;

export default function Prices({ loaderData }) {
  return (
    <main>
      <p>prices of {loaderData.now}</p>
      {loaderData.isDraft && <p>a draft of them</p>}
    </main>
  );
}

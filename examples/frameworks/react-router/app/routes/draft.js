import { redirect } from 'react-router';
import { draft } from '../draft.server.js';

/** For editors. An application of yours looks who that is. */
export async function loader() {
  return redirect('/prices', { headers: { 'Set-Cookie': await draft.serialize(true) } });
}

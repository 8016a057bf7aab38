import { sessionBytes } from '../../../work.mjs';

export const load = ({ request }) => ({ bytes: sessionBytes(request.headers.get('cookie')) });

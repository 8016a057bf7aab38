import { sessionBytes } from '../../work.mjs';

export const loader = ({ request }) => ({ bytes: sessionBytes(request.headers.get('cookie')) });

export default function Member({ loaderData }) {
  return <p>a session of {loaderData.bytes} bytes</p>;
}

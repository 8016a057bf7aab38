import { headers } from 'next/headers';
import { sessionBytes } from '../../work.mjs';

export default async function Member() {
  return <p>a session of {sessionBytes((await headers()).get('cookie'))} bytes</p>;
}

import { draftMode } from 'next/headers';
import { redirect } from 'next/navigation';

/** For editors. An application of yours looks who that is. */
export async function GET() {
  (await draftMode()).enable();
  redirect('/prices');
}

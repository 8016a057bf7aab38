import { revalidateTag } from 'next/cache';

/** For the webhook of a CMS. An application of yours looks who that is. */
export async function POST() {
  revalidateTag('prices', { expire: 0 });
  return Response.json({ revalidated: true });
}

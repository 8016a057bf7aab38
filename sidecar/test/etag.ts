/** Pages that have tags. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';

const TAG = /^W\/"[\w-]{32}"$/;
const HTML = 'header=content-type:text/html';
/** A page of so many bytes. */
export const page = (id: string, size = 50_000, more = '') => `/?id=${id}&size=${size}&${HTML}${more}`;
/** Has this page already. */
export const has = (tag = '') => ({ headers: { 'if-none-match': tag } });

/** The tag of a page, which is there. */
export async function tagOf(there: Pod, path: string): Promise<string> {
  const { status, headers } = await there.get(path);
  expect([status, headers.etag]).toEqual([200, expect.stringMatching(TAG)]);
  return headers.etag ?? '';
}

/** What a client need not get again. */
import { z } from 'zod';

// Not On and Off: kubectl reads these words as true and false.
const etag = z
  .enum(['Auto', 'Never'])
  .default('Auto')
  .describe(
    'Auto: a page (text or JSON, up to 4 MiB, GET or HEAD, status 200) that the program ends whole and gives no ETag has one, made of its bytes. Who has that page already gets 304 and no body. Pages that say no-store and streams have none. Never: no ETag but those of the program. Works with runtime.instrument only. See docs/etag.md.',
  );

export const cache = z.strictObject({ etag }).prefault({}).describe('What a client or the pod need not get again.');

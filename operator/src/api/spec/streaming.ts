/** How soon what a worker writes goes to its client. */
import { z } from 'zod';

// Not On and Off: kubectl reads these words as true and false.
export const streaming = z
  .enum(['Auto', 'Always', 'Never'])
  .default('Auto')
  .describe(
    'Which responses go to the client as they come, head and all, while a slow client holds no worker all the same. Auto: those without Content-Length (what React, Next and others stream, Server-Sent Events). Always: all of them. Never: nginx sends whole buffers of 16 KiB, and the last piece of what a worker flushes may wait for the next one. See docs/streaming.md.',
  );

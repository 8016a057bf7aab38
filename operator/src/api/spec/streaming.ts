/** How soon what a worker writes goes to its client. */
import { z } from 'zod';

export const streaming = z
  .enum(['Auto', 'On', 'Off'])
  .default('Auto')
  .describe(
    'Which responses go to the client as they come, head and all, while a slow client holds no worker all the same. Auto: those without Content-Length (React, Next and Nuxt stream so, and Server-Sent Events are sent so). On: all of them. Off: whole buffers of 16 KiB only, and the end of what a worker flushes may wait for its next flush (docs/streaming.md).',
  );

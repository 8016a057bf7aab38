/** Responses that nobody else has compressed. */
import { z } from 'zod';

export const compression = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether nginx compresses text (HTML, CSS, JavaScript, JSON, XML, SVG) with gzip for clients that take it, streams included, piece by piece. Off unless asked for: an ingress or a CDN often does it, and a page that has a secret beside what its visitor sent must not be compressed by anybody (BREACH). See docs/edge.md.',
      ),
    level: z
      .int()
      .min(1)
      .max(9)
      .default(1)
      .describe(
        "gzip's level. 1 makes 100 kB of HTML 27 kB in 0.8 ms of nginx' CPU time, 6 makes them 24 kB in 2.8 ms.",
      ),
  })
  .prefault({})
  .describe('What nginx compresses of that which the worker, or who made the file, has not.');

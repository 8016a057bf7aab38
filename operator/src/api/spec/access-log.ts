/** What nginx logs of requests. */
import { z } from 'zod';
import { percentage } from '../scalars.ts';

export const accessLog = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe(
        'Whether nginx writes a line for each request to its standard output. Metrics, spans and scaling do not need it; corelane logs does.',
      ),
    query: z
      .enum(['Names', 'Full', 'None'])
      .default('Names')
      .describe(
        'Which part of a query nginx writes into the log. Names: the names, and - in place of each value (/p?code=-&page=-). Full: the whole query. None: nothing, only the path. With Names and None nginx writes - also in place of values within a path (/p;session=-).',
      ),
    clientAddress: z
      .enum(['Full', 'Masked', 'None'])
      .default('Full')
      .describe(
        'How nginx writes the addresses of the client and of the proxy in front into the log. Full: whole. Masked: the first 24 bits of an IPv4 address (203.0.113.0), the first 48 bits of an IPv6 address (2001:db8:7::). None: not at all; both fields are empty.',
      ),
    samplingPercent: percentage()
      .default(100)
      .describe(
        'Percentage of the requests that have a line. Requests that fail always have one: those with an X-Corelane-Error, and those answered 5xx.',
      ),
  })
  .prefault({})
  .describe(
    "The access log of a pod. query and clientAddress hold for nginx' error log as well, which is always on. See docs/access-log.md.",
  );

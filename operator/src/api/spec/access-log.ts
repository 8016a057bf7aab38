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
        'What the log has of a query. Names: /p?code=-&page=-, the values are left out. Full: the query as it came. None: the path. With Names and None, values of parameters in a path (/p;session=-) are left out, too.',
      ),
    clientAddress: z
      .enum(['Full', 'Masked', 'None'])
      .default('Full')
      .describe(
        'What the log has of the addresses of the client and of the proxy in front. Masked: the network, 24 bits of an IPv4 address (203.0.113.0), 48 of an IPv6 address (2001:db8:7::). None: the fields are empty.',
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

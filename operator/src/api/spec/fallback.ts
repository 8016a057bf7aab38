/** Fields on what a browser gets where there is no page. */
import { z } from 'zod';
import { matching, pathPrefix } from '../scalars.ts';

/** A shell beyond it goes into a ConfigMap: this one travels with the live settings. */
const HTML_LENGTH_MAX = 32_768;
/** In JSON, which is how it is kept, each of the others would take six characters. */
const TEXT = '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]*$';

const configMap = z
  .strictObject({
    name: matching(
      '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      253,
      'must be the name of a ConfigMap, such as shop-shell',
    ).describe('Name of the ConfigMap.'),
    key: matching('^[-._a-zA-Z0-9]+$', 253, 'must be a key of a ConfigMap, such as index.html')
      .default('index.html')
      .describe('Key with the page.'),
  })
  .describe(
    'A ConfigMap in the same namespace (up to 1 MiB). A change of it reaches the pods within two minutes and replaces none. Where it is missing pods run all the same, browsers get what programs get, and the condition Ready says so.',
  );

function status() {
  const message = 'must be 200, or from 500 to 599';
  return z
    .int()
    .min(200)
    .max(599)
    .refine((code) => code === 200 || code >= 500, message)
    .meta({ 'x-kubernetes-validations': [{ rule: 'self == 200 || self >= 500', message }] });
}

export const fallback = z
  .strictObject({
    html: matching(TEXT, HTML_LENGTH_MAX, 'must be text: no control characters but tabs and ends of lines')
      .optional()
      .describe(
        'The page itself, up to 32 KiB of text. A change of it reaches the pods within seconds and replaces none.',
      ),
    configMap: configMap.optional(),
    status: status()
      .default(503)
      .describe(
        'Status of the page. 503 tells caches, monitoring and crawlers that it is none; 200 is for fronts that put a page of their own in place of every 5xx.',
      ),
    paths: z
      .array(pathPrefix())
      .min(1)
      .max(32)
      .default(['/'])
      .describe(
        'Paths whose requests may get the page: /shop stands for /shop and all below /shop/, as in an Ingress. All paths unless given.',
      ),
  })
  .optional()
  .describe(
    'A static page (an application shell) that a browser gets where Corelane has no page for it: the queue is full, the wait or the render took too long, no worker is up, the worker died, the URL is in quarantine. Programs and crawlers get the error as JSON, and errors of the application pass. Off unless given (docs/overload.md).',
  );

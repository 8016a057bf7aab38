/** Fields on requests between the client and the queue: what nginx does with them. */
import { z } from 'zod';
import { cidr, duration, size, urlPath } from '../scalars.ts';

export const timeouts = z
  .strictObject({
    render: duration({ min: '100ms', max: '1h' })
      .default('30s')
      .describe(
        'Longest time that a worker may take for one response, waiting in the queue excluded. The client gets 504. If the render has not ended 2 s later, its worker is started again. timeouts.handler is for methods other than GET, HEAD and OPTIONS.',
      ),
    handler: duration({ min: '100ms', max: '1h' })
      .default('5m')
      .describe(
        'The same for requests that may change something: every method but GET, HEAD and OPTIONS (a form, a payment, a webhook). timeouts.render counts instead if it is longer, and for every method with replay: Always. From its head on an event stream has it, whatever its method.',
      ),
    clientHeader: duration({ min: '1s', max: '10m' })
      .default('10s')
      .describe('Longest time for a client to send the request headers (408 after it).'),
    clientBody: duration({ min: '1s', max: '10m' })
      .default('30s')
      .describe('Longest pause between two reads of the request body (408 after it). No worker is occupied meanwhile.'),
    clientSend: duration({ min: '1s', max: '10m' })
      .default('10m')
      .describe(
        'Longest time in which a client reads nothing of a response. No render slot is occupied meanwhile. Where others need its place such a client is cut sooner (docs/edge.md).',
      ),
  })
  .prefault({})
  .describe('Time limits of one request.');

export const buffering = z
  .strictObject({
    request: z
      .strictObject({
        maxSize: size({ min: '1Ki', max: '1Gi' })
          .default('10Mi')
          .describe('Largest request body; a larger one is answered 413.'),
        memory: size({ min: '8Ki', max: '64Mi' })
          .default('64Ki')
          .describe('Part of a request body that is kept in memory; what is beyond goes to a temporary file.'),
      })
      .prefault({})
      .describe('A worker sees a request only when all of its body has arrived.'),
    response: z
      .strictObject({
        memory: size({ min: '8Ki', max: '64Mi' })
          .default('128Ki')
          .describe(
            'Part of a response that is kept in memory for a slow client; what is beyond goes to a temporary file.',
          ),
        maxFileSize: size({ min: '1Mi', max: '10Gi' })
          .default('256Mi')
          .describe(
            'Largest temporary file of one response; less where sidecar.nginx.ephemeralStorageLimit does not hold one for each request (docs/edge.md). A response beyond it is sent at the speed of its client, and its worker goes on with other requests meanwhile.',
          ),
      })
      .prefault({})
      .describe('A worker is free as soon as it has written its response, however slowly the client reads.'),
    maxHeaderSize: size({ min: '16Ki', max: '128Ki' })
      .default('64Ki')
      .describe(
        'Largest head (first line and headers) of a request, and of a response. One line may have half of it. A larger request is answered 431, a larger response becomes 502 bad-response. Workers get --max-http-header-size to match; a value of yours wins. At most 16Ki where sidecar.nginx.memoryLimit or sidecar.haproxy.memoryLimit is below 160Mi, and 64Ki where one is below 256Mi. See docs/edge.md.',
      ),
  })
  .prefault({})
  .describe('What nginx buffers so that slow clients hold no worker, and how large it may be.');

/**
 * Where proxies in front of a pod have their addresses: private ranges, loopback, link-local, and those of carriers,
 * which clouds use.
 */
const PRIVATE_RANGES = [
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '127.0.0.0/8'],
  ...['fc00::/7', 'fe80::/10', '::1/128'],
];

export const forwarded = z
  .strictObject({
    trust: z
      .array(cidr())
      // CloudFront's list counts as 55 ranges at AWS. Those of the ingress come on top.
      .max(128)
      .default(PRIVATE_RANGES)
      .describe(
        'Address ranges of the proxies in front (ingress, load balancer, CDN) whose X-Forwarded-* headers are believed. The headers that anybody else sends are replaced by what nginx itself knows, or removed. Private ranges unless given; a list of yours replaces them, so it must have the range of your ingress. docs/edge.md says which headers, and what a worker gets.',
      ),
    proxyProtocol: z
      .boolean()
      .default(false)
      .describe(
        'Whether each connection must begin with a header of the PROXY protocol, version 1 or 2, as load balancers send it that pass bytes on. If it comes from a range in forwarded.trust, the address in it takes the place of the address of the connection. Who has no such header is closed. See docs/edge.md.',
      ),
  })
  .prefault({})
  .describe('Who the client is.');

export const ping = z
  .strictObject({
    path: urlPath()
      .default('/ping')
      .describe('Answered 200 by nginx itself, without a worker: for load balancers outside the cluster.'),
  })
  .prefault({})
  .describe('Health answer that never queues.');

export const keepAlive = z
  .strictObject({
    idleTimeout: duration({ min: '1s', max: '1h' })
      .default('75s')
      .describe(
        'How long an idle client connection is kept. Let it be longer than the idle time-out of the load balancer in front (60 s is common): whoever closes first must not be the side that is about to receive a request.',
      ),
  })
  .prefault({})
  .describe('Idle client connections.');

export const webSockets = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether a request to become a WebSocket reaches the worker as such. A WebSocket takes a place of its worker for as long as it lasts; a silent one ends after timeouts.render.',
      ),
    maxPerWorker: z
      .int()
      .min(1)
      .max(1000)
      .optional()
      .describe(
        'WebSockets that the clients of a pod may have, for each of its workers; no more than concurrency. One more is answered 503. So many that half of the places (workersPerPod x concurrency) are left to pages unless given.',
      ),
    maxAge: duration({ min: '1s', max: '24h' })
      .optional()
      .describe(
        'A WebSocket that has lasted so long is closed, and its client connects again. 1h unless given. Works with runtime.instrument only.',
      ),
  })
  .prefault({})
  .describe('WebSockets.');

export const PER_CLIENT_MAX = 10_000;

export const limits = z
  .strictObject({
    perClient: z
      .strictObject({
        requests: z
          .int()
          .min(1)
          .max(PER_CLIENT_MAX)
          .optional()
          .describe(
            'Requests that one client may have in a pod at a time, whether they arrive, wait, are rendered (by another pod, too) or are being sent. One more is answered 429. A client is an IPv4 address or an IPv6 /64 (see forwarded.trust). No limit unless given.',
          ),
      })
      .prefault({})
      .describe('What one client may have.'),
  })
  .prefault({})
  .describe('Limits that keep one client from taking what is there for all.');

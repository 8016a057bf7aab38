import { parseArgs } from 'node:util';

/** The load client is for this project's own services; these limits keep a typing error from becoming an attack. */
export const LIMITS = {
  requests: 200_000,
  concurrency: 512,
  ratePerS: 10_000,
  bodyBytes: 20_000_000,
  maxSeconds: 3_600,
};

/** The smallest body: an empty product list. */
const BODY_BYTES_MIN = Buffer.byteLength('{"products":[]}');

export const USAGE = `Usage: node load.mjs --url http://storefront.shop.svc/ [options]

Sends a bounded number of requests to one of this project's own services, and
reports latencies, failures and overlaps (X-In-Progress) per worker
(X-Served-By).

  --url URL                where to (http only)
  --endpoints NS/SERVICE   instead of --url, inside a cluster: the pods of a
                           Service in turn, found as an ingress controller does
  --requests N             how many in all (default 100, at most 200000)
  --concurrency N          how many at a time (default 1, with --rate 512; at
                           most 512)
  --rate R                 open loop: R requests per second on average, at
                           random (Poisson) times, whether or not answers
                           arrive. What exceeds the concurrency waits;
                           latencies include that.
  --seed N                 of the random times (default 1)
  --method METHOD          default GET, with --body-bytes POST
  --body-bytes N           a JSON body of exactly N bytes: storefront props
  --header 'Name: value'   may be repeated
  --keep-alive             keep connections (default: one for each request)
  --timeout T              for one request: 60s, 500ms, 2m (default 60s)
  --max-seconds N          for the whole run (default 300, at most 3600)
  --concurrency-limit N    more than N in progress in a worker is an overlap
                           (default 1)
  --request-ids NAME       sends X-Request-ID: NAME-0, NAME-1, ...
  --timeline               the result lists every request: when it was due, in
                           ms of the wall clock, its latency, and how it failed
  --json                   the result as one line of JSON, not as a table
  --help                   this text

Exit code: 0 when it ran (failures are in the numbers), 2 on wrong usage.
`;

/** Wrong usage; the message says which option and what it should be. */
export class UsageError extends Error {}

/**
 * @typedef {object} LoadOptions
 * @property {URL} url
 * @property {{ namespace: string, service: string }} [endpoints]
 * @property {number} requests
 * @property {number} concurrency
 * @property {number} [ratePerS] open loop when set
 * @property {number} seed
 * @property {string} method
 * @property {number} [bodyBytes]
 * @property {Record<string, string>} headers
 * @property {boolean} keepAlive
 * @property {number} timeoutMs for one request
 * @property {number} maxSeconds for the run
 * @property {number} concurrencyLimit
 * @property {string} [requestIds] prefix of X-Request-ID
 * @property {boolean} timeline
 * @property {boolean} json
 * @property {boolean} help
 */

const ARGUMENTS = {
  url: { type: 'string' },
  endpoints: { type: 'string' },
  requests: { type: 'string' },
  concurrency: { type: 'string' },
  rate: { type: 'string' },
  seed: { type: 'string' },
  method: { type: 'string' },
  'body-bytes': { type: 'string' },
  header: { type: 'string', multiple: true },
  'keep-alive': { type: 'boolean' },
  timeout: { type: 'string' },
  'max-seconds': { type: 'string' },
  'concurrency-limit': { type: 'string' },
  'request-ids': { type: 'string' },
  timeline: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean' },
};

/**
 * @param {string[]} args command line without `node` and the script
 * @returns {LoadOptions}
 * @throws {UsageError}
 */
export function parseOptions(args) {
  const values = readArguments(args);
  const ratePerS = number(values.rate, { name: '--rate', min: 0.01, max: LIMITS.ratePerS });
  const integer = (name, min, max, otherwise) =>
    number(values[name], { name: `--${name}`, min, max, otherwise, isInteger: true });
  const bodyBytes = integer('body-bytes', BODY_BYTES_MIN, LIMITS.bodyBytes);
  const options = {
    help: values.help ?? false,
    url: parseUrl(values),
    endpoints: parseEndpoints(values.endpoints),
    requests: integer('requests', 1, LIMITS.requests, 100),
    concurrency: integer('concurrency', 1, LIMITS.concurrency, ratePerS ? LIMITS.concurrency : 1),
    ratePerS,
    seed: integer('seed', 0, 2 ** 32 - 1, 1),
    method: parseMethod(values.method, bodyBytes),
    bodyBytes,
    headers: Object.fromEntries((values.header ?? []).map(parseHeader)),
    keepAlive: values['keep-alive'] ?? false,
    timeoutMs: parseDurationMs(values.timeout ?? '60s', '--timeout'),
    maxSeconds: integer('max-seconds', 1, LIMITS.maxSeconds, 300),
    concurrencyLimit: integer('concurrency-limit', 1, LIMITS.concurrency, 1),
    requestIds: parseRequestIds(values['request-ids']),
    timeline: values.timeline ?? false,
    json: values.json ?? false,
  };
  checkDuration(options);
  return options;
}

function readArguments(args) {
  try {
    return parseArgs({ args, options: ARGUMENTS }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function parseEndpoints(text) {
  if (text === undefined) return undefined;
  const [, namespace, service] = text.match(/^([a-z0-9-]+)\/([a-z0-9-]+)$/) ?? [];
  if (service === undefined) throw new UsageError(`--endpoints must be NAMESPACE/SERVICE, not "${text}"`);
  return { namespace, service };
}

function parseRequestIds(text) {
  if (text === undefined || /^[a-z0-9-]{1,64}$/.test(text)) return text;
  throw new UsageError(`--request-ids must have 1 to 64 characters of a-z, 0-9 and "-", not "${text}"`);
}

function parseUrl({ url, endpoints, help }) {
  if (help) return undefined;
  if (url === undefined && endpoints !== undefined) return new URL(`http://${endpoints.split('/')[1]}/`);
  if (url === undefined) throw new UsageError('--url is missing');
  if (!URL.canParse(url)) throw new UsageError(`--url: "${url}" is not a URL`);
  const parsed = new URL(url);
  if (parsed.protocol !== 'http:') throw new UsageError('--url must begin with http://');
  return parsed;
}

function parseMethod(method = undefined, bodyBytes = undefined) {
  const chosen = method?.toUpperCase() ?? (bodyBytes === undefined ? 'GET' : 'POST');
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'];
  if (!methods.includes(chosen)) throw new UsageError(`--method must be one of ${methods.join(', ')}`);
  return chosen;
}

function parseHeader(text) {
  const [, name, value] = text.match(/^([\w!#$%&'*+.^`|~-]+):\s*([\t\x20-\x7e]*)$/) ?? [];
  if (name === undefined) throw new UsageError(`--header must look like 'Name: value', not "${text}"`);
  return [name.toLowerCase(), value];
}

function parseDurationMs(text, name) {
  const [, amount, unit = 's'] = text.match(/^(\d+(?:\.\d+)?)(ms|s|m)?$/) ?? [];
  const durationMs = Number(amount) * { ms: 1, s: 1_000, m: 60_000 }[unit];
  if (durationMs >= 1 && durationMs <= LIMITS.maxSeconds * 1_000) return durationMs;
  throw new UsageError(
    `${name} must be a time from 1ms to ${LIMITS.maxSeconds}s such as 500ms, 60s or 2m, not "${text}"`,
  );
}

function number(text, { name, min, max, otherwise, isInteger = false }) {
  if (text === undefined) return otherwise;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max && (!isInteger || Number.isInteger(value))) return value;
  throw new UsageError(`${name} must be a ${isInteger ? 'whole ' : ''}number from ${min} to ${max}, not "${text}"`);
}

function checkDuration({ requests, ratePerS, maxSeconds }) {
  if (ratePerS === undefined || requests / ratePerS <= maxSeconds) return;
  const neededS = Math.ceil(requests / ratePerS);
  throw new UsageError(
    `${requests} requests at ${ratePerS}/s take about ${neededS} s: raise --max-seconds (${maxSeconds})`,
  );
}

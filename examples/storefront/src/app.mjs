import { createServer } from 'node:http';
import { hostname } from 'node:os';
import { setImmediate as loopTurn } from 'node:timers/promises';
import { createInProgress } from './in-progress.mjs';
import { PRODUCTS_MAX, PropsError, parseProps } from './props.mjs';
import { renderPage } from './render.mjs';

/** A longer body is answered with 413. */
export const BODY_BYTES_MAX = 5_000_000;

const REQUEST_MS_MAX = 60_000;
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** An answer other than a page: a status and a sentence for the caller. */
class HttpError extends Error {
  constructor(status, message, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * Creates the storefront's HTTP server (not yet listening): `GET /` renders the built-in catalog, `GET /?products=N`
 * its first N products, `POST /render` the props in the body.
 *
 * @param {{ catalog: object, products: number }} options the built-in props, and how many of their products `/` shows
 * @returns {import('node:http').Server}
 */
export function createStorefront({ catalog, products }) {
  const inProgress = createInProgress();
  const inTurn = createTurns();
  const server = createServer({ requestTimeout: REQUEST_MS_MAX }, async (request, response) => {
    const entry = inProgress.enter(response);
    try {
      const props = await readProps(request, { catalog, products });
      await inTurn(async () => {
        const reply = pageReply(props);
        await letArrivalsIn();
        send(response, reply, { entry, server });
      });
    } catch (error) {
      send(response, errorReply(error), { entry, server });
    }
  });
  return server;
}

/**
 * Runs async functions one after the other, so that each page is sent as soon as it is rendered, before the next
 * render.
 */
function createTurns() {
  let last = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

/**
 * Nothing else runs while React renders: requests that arrive meanwhile stay in the kernel, and would not be counted as
 * overlapping. Three turns of the event loop (end this one, accept a connection, read from it) bring them in.
 */
async function letArrivalsIn() {
  for (let turn = 0; turn < 3; turn += 1) await loopTurn();
}

async function readProps(request, { catalog, products }) {
  if (!URL.canParse(request.url, 'http://storefront')) throw new HttpError(400, 'the URL is not valid');
  const url = new URL(request.url, 'http://storefront');
  if (url.pathname === '/') {
    allow(request, 'GET', 'HEAD');
    const count = parseCount(url.searchParams.get('products')) ?? products;
    return { ...catalog, products: catalog.products.slice(0, count) };
  }
  if (url.pathname === '/render') {
    allow(request, 'POST');
    return parseProps(await readBody(request));
  }
  throw new HttpError(404, 'not found: there are GET / and POST /render');
}

function allow(request, ...methods) {
  if (methods.includes(request.method)) return;
  throw new HttpError(405, `use ${methods.join(' or ')}`, { allow: methods.join(', ') });
}

function parseCount(text) {
  if (text === null) return undefined;
  if (/^\d+$/.test(text) && Number(text) <= PRODUCTS_MAX) return Number(text);
  throw new HttpError(400, `products must be a whole number from 0 to ${PRODUCTS_MAX}`);
}

async function readBody(request) {
  const chunks = [];
  let lengthBytes = 0;
  for await (const chunk of request) {
    lengthBytes += chunk.length;
    // A body that is too long is read to its end and dropped: a client that is still sending would not see the answer.
    if (lengthBytes <= BODY_BYTES_MAX) chunks.push(chunk);
  }
  if (lengthBytes > BODY_BYTES_MAX)
    throw new HttpError(413, `the body must not be longer than ${BODY_BYTES_MAX} bytes`);
  return Buffer.concat(chunks).toString('utf8');
}

function pageReply(props) {
  const startedMs = performance.now();
  const body = renderPage(props);
  const renderMs = (performance.now() - startedMs).toFixed(1);
  return { status: 200, body, headers: { 'content-type': 'text/html; charset=utf-8', 'x-render-ms': renderMs } };
}

function errorReply(error) {
  const reply = (status, message, headers) => ({
    status,
    body: `${message}\n`,
    headers: { 'content-type': TEXT_TYPE, ...headers },
  });
  if (error instanceof PropsError) return reply(400, error.message);
  if (error instanceof HttpError) return reply(error.status, error.message, error.headers);
  // The client went away while its body was being read: nobody is left to answer, and nothing is wrong here.
  if (error.code === 'ECONNRESET') return reply(400, 'the request was aborted');
  console.error(error);
  return reply(500, 'the page could not be rendered');
}

function send(response, { status, body, headers }, { entry, server }) {
  response.writeHead(status, {
    ...headers,
    'content-length': Buffer.byteLength(body),
    'x-in-progress': entry.maxSeen(),
    'x-served-by': `${hostname()}:${response.req.socket.localPort}`,
    // After server.close() no connection may wait for another request, or the process would not end.
    ...(server.listening ? {} : { connection: 'close' }),
  });
  entry.handled();
  response.end(body);
}

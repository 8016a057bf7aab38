/**
 * Sees to it that a response on a kept connection is as long as its Content-Length says. What is too much the proxy would take for the
 * answer to the next request, which is somebody else's; what is missing it would wait for until its time is over.
 */
'use strict';

const { Buffer } = globalThis;
/** Statuses without a body, whatever their headers say. */
const NO_BODY = [204, 304];

/** Of a response as it stands: the length that it announces; undefined if Node.js frames it (chunks), or it has no body. */
function announced(response) {
  if (!response._hasBody || NO_BODY.includes(response.statusCode)) return undefined;
  const value = response.headersSent ? response._contentLength : response.getHeader('content-length');
  const bytes = Number(value ?? Number.NaN);
  return bytes >= 0 ? bytes : undefined;
}

/** Of a chunk as `write` and `end` take it; anything else Node.js refuses, or it is their callback. */
function sizeOf(chunk, encoding) {
  return typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : (chunk?.byteLength ?? 0);
}

/**
 * Cuts off what is written beyond the announced length: nobody reads it anyway. A response that ends before takes its connection with it,
 * so that the client sees at once that it is cut.
 */
function keepLength(request, response) {
  if (!response.shouldKeepAlive) return;
  // A Node.js that does not note it.
  if (response._contentLength === undefined) {
    response.shouldKeepAlive = false;
    return;
  }
  const { write, end } = response;
  let written = 0;
  const cut = (chunk, given) => {
    const limit = announced(response);
    if (limit === undefined) return chunk;
    const encoding = typeof given === 'string' ? given : undefined;
    const left = Math.max(0, limit - written);
    const size = sizeOf(chunk, encoding);
    written += size;
    return size <= left ? chunk : Buffer.from(chunk, encoding).subarray(0, left);
  };
  response.write = (chunk, ...rest) => write.call(response, cut(chunk, rest[0]), ...rest);
  response.end = (chunk, ...rest) => {
    const last = cut(chunk, rest[0]);
    if (written < (announced(response) ?? 0)) response.once('finish', () => request.socket.destroySoon());
    return end.call(response, last, ...rest);
  };
}

module.exports = { keepLength };

/**
 * Sees to it that a response on a kept connection is as long as its Content-Length says. What is too much the proxy
 * would take for the answer to the next request, which is somebody else's; what is missing it would wait for until its
 * time is over.
 */
'use strict';

/** As they are before a test or a library replaces them. */
const { Buffer, setTimeout, clearTimeout } = globalThis;
/** Statuses without a body, whatever their headers say. */
const NO_BODY = [204, 304];
/** What is below is no answer (writeHead(103)): the proxy would wait for one. */
const FINAL = 200;
/** All bytes have been written, and the program does not end the response: the proxy thinks that it has. */
const LATE_MS = 1_000;
/** Of these the length of a text follows without decoding it. */
const PLAIN = [undefined, 'utf8', 'utf-8', 'latin1'];

/** A header as the proxy understands it, which takes `3, 3` for 3; undefined for what it refuses. */
function parse(value) {
  const [, bytes] = /^ *([0-9]+)(?: *, *\1)* *$/.exec(String(value ?? '')) ?? [];
  return bytes === undefined ? undefined : Number(bytes);
}

/**
 * Of a response as it stands: the length that it announces; undefined if Node.js frames it (chunks), or it has no body.
 */
function announced(response) {
  if (!response._hasBody || NO_BODY.includes(response.statusCode)) return undefined;
  if (!response.headersSent)
    return response.hasHeader('transfer-encoding') ? undefined : parse(response.getHeader('content-length'));
  if (response.chunkedEncoding) return undefined;
  if (!Number.isNaN(response._contentLength)) return response._contentLength ?? undefined;
  return parse(/\r\ncontent-length:([^\r]*)/i.exec(response._header)?.[1]);
}

/**
 * A chunk as `write` and `end` take it, so that its length is known; anything else Node.js refuses, or it is their
 * callback.
 */
function plain(chunk, encoding) {
  return typeof chunk === 'string' && !PLAIN.includes(encoding) ? Buffer.from(chunk, encoding) : chunk;
}

function sizeOf(chunk, encoding) {
  return typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : (chunk?.byteLength ?? 0);
}

/** As a method would be: a copy of the response's own properties does not have it. */
function define(response, name, value) {
  Object.defineProperty(response, name, { value, writable: true, configurable: true, enumerable: false });
}

/**
 * Cuts off what is written beyond the announced length: nobody reads it anyway. A response that ends before, or does
 * not end when all has been written, takes its connection with it, as it always did.
 */
function keepLength(request, response) {
  if (!response.shouldKeepAlive) return;
  // A Node.js that does not note it.
  if (response._contentLength === undefined) {
    response.shouldKeepAlive = false;
    return;
  }
  const { write, end } = response;
  const close = () => request.socket?.destroySoon?.();
  let written = 0;
  let late;
  const cut = (chunk, encoding) => {
    const limit = announced(response);
    if (limit === undefined) return chunk;
    const left = Math.max(0, limit - written);
    const size = sizeOf(chunk, encoding);
    written += size;
    return size <= left ? chunk : Buffer.from(chunk, encoding).subarray(0, left);
  };
  const take = (chunk, given) => {
    const encoding = typeof given === 'string' ? given : undefined;
    return cut(plain(chunk, encoding), encoding);
  };
  define(response, 'write', (chunk, ...rest) => {
    const result = write.call(response, take(chunk, rest[0]), ...rest);
    if (late === undefined && written >= (announced(response) ?? Number.POSITIVE_INFINITY)) {
      late = setTimeout(close, LATE_MS);
      late.unref();
    }
    return result;
  });
  define(response, 'end', (chunk, ...rest) => {
    clearTimeout(late);
    const last = take(chunk, rest[0]);
    if (written < (announced(response) ?? 0) || response.statusCode < FINAL) response.once('finish', close);
    return end.call(response, last, ...rest);
  });
}

module.exports = { keepLength };

/**
 * Gives responses that have none an ETag, and answers 304 without a body to who has the page. Only where the body is
 * whole when the program ends the response: the tag is in the head, which has gone when a stream ends.
 *
 * It looks at the head as Node.js is about to send it, so it makes no difference how the program has said its headers
 * (`setHeader`, `writeHead` with objects, arrays, raw lists; a library that adds some at the last moment).
 */
'use strict';

/** As it is before a test or a library replaces it. */
const { Buffer } = globalThis;
/** Larger bodies have no tag. A MiB takes about 0.8 ms, in which the worker does nothing else. */
const BYTES_MAX = 4 * 1024 * 1024;
/** Characters of six bits of SHA-256: whoever writes a part of a page makes no two that are taken for one. */
const TAG_LENGTH = 32;
const METHODS = ['GET', 'HEAD'];
/** Text. Who reads Server-Sent Events takes a 304 for a failure. */
const TYPE =
  /^(?:text\/(?!event-stream)[^;\s]+|application\/(?:json|javascript|xml)|[\w.-]+\/[\w.-]+\+(?:json|xml)) *(?:;|$)/i;
const NO_STORE = /(?:^|[\s,])no-store *(?:,|$)/i;
/** Of a 304, whose client keeps those that it has. Not Content-Location, and not Content-Security-Policy. */
const DROPPED = /^(?:content-(?:type|length|encoding|language|disposition|range|md5|digest)|transfer-encoding):/i;
/** With one of these the program does something of its own, or Node.js writes more after the body. */
const NOT_WITH = ['etag', 'content-range', 'trailer', 'upgrade'];
/** Conditions that come before If-None-Match. */
const STRONGER = ['if-match', 'if-unmodified-since'];

/** Loaded with the first tag: not every program needs it. */
let crypto;

/**
 * A weak tag: the bytes may still be compressed. All are equally long, so that their length tells nothing. Undefined
 * where Node.js has no such digest.
 */
function tagOf(bytes) {
  try {
    crypto ??= require('node:crypto');
    return `W/"${crypto.createHash('sha256').update(bytes).digest('base64url').slice(0, TAG_LENGTH)}"`;
  } catch {
    return undefined;
  }
}

/**
 * Whether If-None-Match has this tag. In a list of tags no other place can have its characters between two quotes: a
 * tag has no quote in it, and ours no comma, which is between two tags.
 */
function matches(condition, tag) {
  if (typeof condition !== 'string') return false;
  return condition.trim() === '*' || condition.includes(tag.slice('W/'.length));
}

/** Lines of a head, without the first one and what follows the last one. */
function linesOf(head) {
  return head.slice(0, -'\r\n\r\n'.length).split('\r\n').slice(1);
}

/** Values of a header, which may be there several times. */
function valuesOf(lines, name) {
  const found = lines.filter((line) => line[name.length] === ':' && line.slice(0, name.length).toLowerCase() === name);
  return found.map((line) => line.slice(name.length + 1).trim());
}

/** Whether a response with this head gets a tag, if its body has so many bytes. */
function mayHaveTag(lines, size) {
  if (NOT_WITH.some((name) => valuesOf(lines, name).length > 0)) return false;
  const types = valuesOf(lines, 'content-type');
  if (types.length !== 1 || !TYPE.test(types[0])) return false;
  if (valuesOf(lines, 'cache-control').some((value) => NO_STORE.test(value))) return false;
  return valuesOf(lines, 'content-length').every((length) => length === String(size));
}

/** The bytes that the program ends its response with; undefined for what is none, or not for us to judge. */
function bytesOf(chunk, encoding) {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk !== 'string' || chunk.length > BYTES_MAX) return undefined;
  if (typeof encoding !== 'string') return Buffer.from(chunk);
  return Buffer.isEncoding(encoding) ? Buffer.from(chunk, encoding) : undefined;
}

/** The head that Node.js has made and not sent. It has it in this field in all versions that the runtime is for. */
function headOf(response) {
  const head = response._header;
  return typeof head === 'string' && response._headerSent === false && head.endsWith('\r\n\r\n') ? head : undefined;
}

/** What a response needs that has not begun; with less it is none of node:http, or of a Node.js that nobody knows. */
function isWhole(response) {
  if (response.statusCode !== 200 || response.writableEnded || response.destroyed) return false;
  return !response._header || headOf(response) !== undefined;
}

/** No body follows, and no end of chunks. */
function makeNotModified(response, lines, tag) {
  const kept = lines.filter((line) => !DROPPED.test(line));
  response.statusCode = 304;
  response.statusMessage = 'Not Modified';
  response._hasBody = false;
  response.chunkedEncoding = false;
  response._contentLength = null;
  response._header = `${['HTTP/1.1 304 Not Modified', ...kept, `ETag: ${tag}`].join('\r\n')}\r\n\r\n`;
}

/** The tag of a response that ends with these bytes, after its head has been made; undefined if it gets none. */
function tagFor(response, bytes) {
  if (!response._header) {
    // As Node.js does it at an end with a body: else the head would announce chunks.
    response._contentLength = bytes.byteLength;
    response.writeHead(response.statusCode);
  }
  const head = headOf(response);
  if (head === undefined || response.statusCode !== 200 || response._trailer) return undefined;
  const lines = linesOf(head);
  return mayHaveTag(lines, bytes.byteLength) ? { tag: tagOf(bytes), head, lines } : undefined;
}

/** As a method would be: a copy of the response's own properties does not have it. */
function define(response, name, value) {
  Object.defineProperty(response, name, { value, writable: true, configurable: true, enumerable: false });
}

/** To be called after `keepLength`: what it looks at is what the program has written. */
function giveTag(request, response) {
  if (!METHODS.includes(request.method)) return;
  const { write, end } = response;
  // The head may wait with the first piece: corked, or in the same turn of the event loop from Node.js 26 on.
  let isInPieces = false;
  define(response, 'write', (...args) => {
    isInPieces = true;
    return write.apply(response, args);
  });
  define(response, 'end', (chunk, ...rest) => {
    if (isInPieces || !isWhole(response)) return end.call(response, chunk, ...rest);
    const bytes = bytesOf(chunk, rest[0]);
    if (!bytes || bytes.byteLength === 0 || bytes.byteLength > BYTES_MAX) return end.call(response, chunk, ...rest);
    const { tag, head, lines } = tagFor(response, bytes) ?? {};
    if (tag !== undefined) {
      const { headers } = request;
      if (matches(headers['if-none-match'], tag) && !STRONGER.some((name) => headers[name] !== undefined)) {
        makeNotModified(response, lines, tag);
        return end.call(response, ...rest.filter((each) => typeof each === 'function'));
      }
      response._header = `${head.slice(0, -'\r\n'.length)}ETag: ${tag}\r\n\r\n`;
    }
    // Encoded once.
    return end.call(response, bytes, ...rest);
  });
}

module.exports = { BYTES_MAX, giveTag, matches };

/**
 * Requests of this process or thread that a full queue of Corelane has refused: if it has sent them to its own site,
 * renders wait for each other. Child processes of Node.js and worker threads say so, too, as no mark reaches what they
 * send (own-site.cjs).
 */
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { isMainThread } = require('node:worker_threads');

/** Answers of a Corelane whose queue had no place. */
const REFUSALS = ['queue-full', 'queue-timeout'];
/** A line about them, at most this often. */
const TELL_MS = 60_000;

let sender = isMainThread ? 'a child process (node) of this program' : 'a worker thread of this program';
let onRefusal = () => {};
let quietUntil = 0;

function watchRefusals() {
  diagnostics.subscribe('undici:request:headers', ({ request, response }) => {
    if (response.statusCode === 503) noteRefusal(String(request.origin), errorIn(response.headers));
  });
  diagnostics.subscribe('http.client.response.finish', ({ request, response }) => {
    // Node.js makes an object of the headers when they are asked for.
    if (response.statusCode !== 503) return;
    noteRefusal(`${request.protocol}//${request.getHeader('host')}`, response.headers['x-corelane-error']);
  });
}

/** This thread has the program's server: `count` is called for each refusal. */
function countRefusals(count) {
  sender = 'this program';
  onRefusal = count;
}

function noteRefusal(site, error) {
  if (!REFUSALS.includes(error)) return;
  onRefusal();
  const now = performance.now();
  if (now < quietUntil) return;
  quietUntil = now + TELL_MS;
  process.stderr.write(
    `corelane: a request of ${sender} to ${JSON.stringify(site)} was answered 503 ${error} by Corelane. ` +
      'If that is the site of this program, renders wait for each other: ' +
      `let it ask the host that its client has asked for, or http://127.0.0.1:${process.env.PORT}\n`,
  );
}

/** X-Corelane-Error in headers as undici has them: names and values in turn, as bytes. */
function errorIn(headers) {
  if (!Array.isArray(headers)) return undefined;
  const at = headers.findIndex((text, index) => index % 2 === 0 && String(text).toLowerCase() === 'x-corelane-error');
  return at < 0 ? undefined : String(headers[at + 1]);
}

module.exports = { countRefusals, watchRefusals };

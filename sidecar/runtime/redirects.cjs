/**
 * Redirects to the address on which the program listens. Next makes the URL of a request from its own host and port:
 * `Response.redirect(new URL('/', request.url))` then leads to `http://localhost:9003/`, which no client reaches. Such
 * a Location becomes its path: a client looks for that on the site that it has asked.
 */
'use strict';

const http = require('node:http');

/** Names of the address on which a program listens, beside HOSTNAME. */
const NAMES = ['localhost', '127.0.0.1', '0.0.0.0', '[::1]', '[::]'];
/** Statuses with a Location: 201, and 300 to 399. */
const CREATED = 201;
const REDIRECTION = 3;

/**
 * Returns a function that rewrites the Location of a head. A path that begins with two slashes, or with what a browser
 * reads as two, keeps its host: alone it would name another site.
 * @param port of the worker, which no other program of its pod has
 * @param hostname HOSTNAME of the program
 */
function onSite(port, hostname) {
  const names = [...NAMES, ...(hostname ? [hostname] : [])].map((name) => name.replace(/[^\w-]/g, '\\$&'));
  const own = new RegExp(
    `(\\r\\nlocation: *)https?://(?:${names.join('|')}):${port}(?=[/?#\\r])(?!/[/\\\\\\t ])/?`,
    'gi',
  );
  return (head) => head.replace(own, '$1/');
}

function hasLocation(status) {
  return status === CREATED || Math.floor(status / 100) === REDIRECTION;
}

/**
 * Rewrites heads where Node.js has put them together: that is one place for setHeader, writeHead and lists of headers.
 * Node.js has sent a head already if the program answers with a header Expect. To be called once.
 */
function keepRedirectsOnSite({ PORT, HOSTNAME }) {
  const change = onSite(Number(PORT), HOSTNAME);
  const { _storeHeader } = http.ServerResponse.prototype;
  http.ServerResponse.prototype._storeHeader = function storeHeaderOnSite(firstLine, headers) {
    const result = _storeHeader.call(this, firstLine, headers);
    if (hasLocation(this.statusCode) && typeof this._header === 'string' && !this._headerSent)
      this._header = change(this._header);
    return result;
  };
}

module.exports = { keepRedirectsOnSite, onSite };

/**
 * Requests that a render sends to its own site, by the name that its client has used. They come back through a gateway,
 * to any pod, and would wait for the slots of renders that wait for such requests. HAProxy gives a mark with each
 * request (docs/adr/0059): here it is put on what is sent to the hosts that the render was asked for, and on nothing
 * else. The program does not see it.
 */
'use strict';

const diagnostics = require('node:diagnostics_channel');
const http = require('node:http');
const os = require('node:os');
const { countRefusals } = require('./refusals.cjs');

const HEADER = 'X-Corelane-Own-Site';
const NAME = HEADER.toLowerCase();
/** What HAProxy says: how many requests of the kind led to this one, if any did; the mark for those that it sends. */
const SAID = /^([12])?(?:(?:^| )([0-9a-f]{32}))?$/;
/** nginx of this pod. */
const HTTP_PORT = 9000;

/**
 * Takes out of a request what HAProxy says to the runtime.
 * @returns {{ depth: number, mark?: string, hosts?: (string | undefined)[] }}
 */
function takeSite({ headers, rawHeaders }) {
  const said = headers?.[NAME];
  if (said === undefined) return { depth: 0 };
  const { host, 'x-forwarded-host': forwarded = '' } = headers;
  delete headers[NAME];
  // The pair stays: Node.js has counted them.
  for (let index = (rawHeaders?.length ?? 0) - 2; index >= 0; index -= 2) {
    if (rawHeaders[index].toLowerCase() === NAME) rawHeaders[index + 1] = '';
  }
  const [, depth = 0, mark] = SAID.exec(said) ?? [];
  return { depth: Number(depth), mark, hosts: [host, ...forwarded.split(',')] };
}

/** A host as it is compared: without the port that it has anyway. */
function plain(host) {
  return host
    .trim()
    .toLowerCase()
    .replace(/\.?(?::(?:80|443))?$/, '');
}

/** Name or address alone, without brackets. */
function nameOf(host) {
  return plain(host)
    .replace(/^([^:]*|\[.*\]):[0-9]*$/, '$1')
    .replace(/^\[(.*)\]$/, '$1');
}

/** Of this pod itself, whatever the client has asked for: its addresses, and the name of the Service. */
class Aliases {
  #hosts;
  #services;

  constructor({ CORELANE_SERVICE: name, CORELANE_NAMESPACE: namespace }) {
    this.#hosts = new Set(['localhost', ...ownHosts()].map((host) => plain(`${host}:${HTTP_PORT}`)));
    const full = `${name}.${namespace}`;
    this.#services = new Set(name && namespace ? [name, full, `${full}.svc`, `${full}.svc.cluster.local`] : []);
  }

  has(host) {
    return this.#hosts.has(host) || this.#services.has(nameOf(host));
  }
}

function ownHosts() {
  try {
    const addresses = Object.values(os.networkInterfaces()).flatMap((all) => all.map(({ address }) => address));
    return [os.hostname(), ...addresses.map((address) => (address.includes(':') ? `[${address}]` : address))];
  } catch {
    return []; // forbidden
  }
}

class OwnSite {
  #own;
  #metrics;
  #aliases = new Aliases(process.env);

  /** @param own tells which render sends what is sent now */
  constructor(own, metrics) {
    this.#own = own;
    this.#metrics = metrics;
    this.#markRequests();
    countRefusals(() => {
      this.#metrics.ownSiteRefused[0] += 1;
    });
  }

  #markRequests() {
    const { _storeHeader } = http.ClientRequest.prototype;
    const markFor = (host) => this.#markFor(host);
    http.ClientRequest.prototype._storeHeader = function storeHeaderAndMark(firstLine, headers) {
      const mark = markFor(hostOf(this));
      // A line of its own: the headers may be a list, and programs log those that they have set.
      const begin = mark === undefined ? firstLine : `${firstLine}${HEADER}: ${mark}\r\n`;
      return _storeHeader.call(this, begin, headers);
    };
    // Each hop of a redirect is another one.
    diagnostics.subscribe('undici:request:create', ({ request }) => {
      const mark = this.#markFor(/^https?:\/\/([^/?#]+)/i.exec(String(request.origin))?.[1]);
      // Not undici's public interface: a version without it sends no mark.
      if (mark !== undefined) request.addHeader?.(HEADER, mark);
    });
  }

  /** Undefined where the render that sends to `host` has not been asked for it, or there is none. */
  #markFor(host) {
    if (host === undefined) return undefined;
    const wanted = plain(host);
    const asker = this.#own.askerFor(({ site }) => site?.mark !== undefined && this.#isOf(site, wanted));
    if (asker === undefined) return undefined;
    this.#metrics.ownSiteSent[0] += 1;
    return asker.site.mark;
  }

  #isOf({ hosts }, wanted) {
    if (wanted === '') return false;
    return hosts.some((host) => host !== undefined && plain(host) === wanted) || this.#aliases.has(wanted);
  }
}

/**
 * The host that a request of node:http goes to; undefined where its header says another one, or it goes over a socket
 * in the file system.
 */
function hostOf(request) {
  const { host, socketPath } = request;
  const said = request.getHeader('host');
  if (socketPath || typeof host !== 'string' || typeof said !== 'string') return undefined;
  return nameOf(said) === nameOf(host) ? said : undefined;
}

module.exports = { OwnSite, takeSite };

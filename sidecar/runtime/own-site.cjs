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

/** They lead to the own pod from wherever they are used: who connects to "any address" gets to loopback. */
const LOOPBACK = /^(?:127(?:\.[0-9]{1,3}){3}|0\.0\.0\.0|\[::1?\])$/;

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
    return this.#hosts.has(host) || this.#services.has(nameOf(host)) || isLoopback(host);
  }
}

function isLoopback(host) {
  const port = `:${HTTP_PORT}`;
  return host.endsWith(port) && LOOPBACK.test(host.slice(0, -port.length));
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
    const { addRequest } = http.Agent.prototype;
    // An agent for a proxy makes the head anew.
    const lines = new WeakMap();
    const lists = new WeakMap();
    const ports = new WeakMap();
    const lineFor = (request) => {
      const target = lines.has(request) ? undefined : targetOf(request, lists.get(request), ports.get(request));
      const mark = target && this.#markFor(target);
      if (mark !== undefined) lines.set(request, `${HEADER}: ${mark}\r\n`);
      return lines.get(request) ?? '';
    };
    http.ClientRequest.prototype._storeHeader = function storeHeaderAndMark(firstLine, headers) {
      if (Array.isArray(headers)) lists.set(this, headers);
      // A line of its own: the headers may be a list, and programs log those that they have set.
      return _storeHeader.call(this, firstLine + lineFor(this), headers);
    };
    // A request knows its host, and its agent alone is told the port: after the head is made, if that is a list.
    http.Agent.prototype.addRequest = function addRequestAndMark(request, options, ...rest) {
      if (Number(options?.port) > 0) ports.set(request, Number(options.port));
      const { _header: head } = request;
      if (typeof head === 'string' && !request._headerSent && !lines.has(request)) {
        const headers = head.indexOf('\r\n') + 2;
        request._header = head.slice(0, headers) + lineFor(request) + head.slice(headers);
      }
      return addRequest.call(this, request, options, ...rest);
    };
    // Each hop of a redirect is another one.
    diagnostics.subscribe('undici:request:create', ({ request }) => {
      const host = /^https?:\/\/([^/?#]+)/i.exec(String(request.origin))?.[1];
      const mark = host && this.#markFor({ host, isOther: isOther(request.host, host) });
      // Not undici's public interface: a version without it sends no mark.
      if (mark !== undefined) request.addHeader?.(HEADER, mark);
    });
  }

  /**
   * Undefined where the render that sends to `host` has not been asked for it, or there is none.
   * @param isOther the head says another host: behind one address there may be other sites, but not behind this pod's
   */
  #markFor({ host, isOther }) {
    const wanted = plain(host);
    const isIts = ({ site }) => site?.mark !== undefined && this.#isOf(isOther ? {} : site, wanted);
    const asker = this.#own.askerFor(isIts);
    if (asker === undefined) return undefined;
    this.#metrics.ownSiteSent[0] += 1;
    return asker.site.mark;
  }

  #isOf({ hosts = [] }, wanted) {
    if (wanted === '') return false;
    return hosts.some((host) => host !== undefined && plain(host) === wanted) || this.#aliases.has(wanted);
  }
}

/**
 * The host that a request of node:http goes to, with its port; undefined where that is not known, or it goes over a
 * socket in the file system.
 * @param list its headers, if they are one
 * @param port undefined while no agent has it
 */
function targetOf(request, list, port) {
  const { host, socketPath } = request;
  const said = list ? hostIn(list) : [request.getHeader('host')].flat()[0];
  if (socketPath || typeof host !== 'string' || typeof said !== 'string') return undefined;
  if (!isOther(said, host)) return { host: said };
  return port && { host: `${host.includes(':') ? `[${nameOf(host)}]` : host}:${port}`, isOther: true };
}

/** The first one: `[name, value, ...]`, or `[[name, value], ...]`. A value may be a list. */
function hostIn(list) {
  if (Array.isArray(list[0])) return list.find((pair) => isHost(pair?.[0]))?.[1];
  const at = list.findIndex((name, index) => index % 2 === 0 && isHost(name));
  return at < 0 ? undefined : list[at + 1];
}

function isHost(name) {
  return typeof name === 'string' && name.toLowerCase() === 'host';
}

/** Whether the host in a head, if there is one, is another than the one that a request goes to. */
function isOther(said, host) {
  return typeof said === 'string' && nameOf(said) !== nameOf(host);
}

module.exports = { OwnSite, takeSite };

/**
 * Requests that the program sends to its own PORT: Next asks itself for the page that a server action redirects to. The
 * render that waits for the answer has the place that such a request would wait for. So it must be known for certain
 * that one comes from this process, and which render has sent it.
 */
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const diagnostics = require('node:diagnostics_channel');
const http = require('node:http');
const net = require('node:net');
const { isSocketOf } = require('./processes.cjs');

/** Beyond these, requests that begin before contexts are kept send no marks. */
const EARLY_MAX = 64;

class OwnRequests {
  #port;
  /** In the environment of all processes of this worker. */
  #entry;
  /** Client sockets of this process that are connected to PORT, by their own port. */
  #connected = new Map();
  /** By client socket: the render that has sent the latest request over it. */
  #senders = new WeakMap();
  /** By request of undici (`fetch`), which may be sent in another turn than it was made in. */
  #fetching = new WeakMap();
  /**
   * The request that code runs for: a render, or another one. None until the program asks itself: before Node.js 24 it
   * slows promises down.
   */
  #context;
  /** Those with a mark for their own site (own-site.cjs) that began before. */
  #early = new Set();

  constructor(port, entry) {
    this.#port = port;
    this.#entry = entry;
    this.#watchSockets();
    this.#watchRequests();
  }

  /** Runs what is done for a request. */
  run(asker, work) {
    if (this.#context === undefined) {
      this.#noteEarly(asker);
      return work();
    }
    asker.hasContext = true;
    return this.#context.run(asker, work);
  }

  #noteEarly(asker) {
    if (asker.site?.mark === undefined) return;
    this.#forgetEnded();
    if (this.#early.size < EARLY_MAX) this.#early.add(asker);
  }

  #forgetEnded() {
    for (const early of this.#early) if (hasEnded(early)) this.#early.delete(early);
  }

  /**
   * The request in progress that sends what is sent now, if `isIts` says that it may be. Of those that began before
   * contexts were kept it is the first that may be; from then on they are kept.
   */
  askerFor(isIts) {
    const asker = this.#context?.getStore();
    if (asker !== undefined) return !hasEnded(asker) && isIts(asker) ? asker : undefined;
    if (this.#early.size === 0) return undefined;
    this.#forgetEnded();
    const early = [...this.#early].find(isIts);
    if (early !== undefined) this.#context ??= new AsyncLocalStorage();
    return early;
  }

  /**
   * Whether the other end of a server's connection is a socket of this process. Two ends that are open, each with the
   * other's address, are one connection: the kernel gives that pair of addresses to nobody else meanwhile. Asked of the
   * kernel now, not of what Node.js remembers: a socket that has been reset has no peer, and its port may be another's.
   */
  isOwn(socket) {
    if (this.#connected.size === 0) return false;
    const there = endsOf(socket);
    const here = endsOf(this.#connected.get(socket.remotePort));
    return there !== undefined && here !== undefined && there.peer === here.own && there.own === here.peer;
  }

  /** The render that sent the request which has just come over a connection of this process, if one is known. */
  senderOf(socket) {
    return this.#senders.get(this.#connected.get(socket.remotePort));
  }

  /**
   * Whether the other end of a connection is a socket of another process of this worker, or of another thread of this
   * one. The kernel says so, in files: it takes some milliseconds.
   */
  isRelative(socket) {
    if (!socket || this.isOwn(socket)) return false;
    const ends = endsOf(socket);
    return ends !== undefined && isSocketOf(this.#entry, ends.peer, ends.own);
  }

  #watchSockets() {
    const { connect } = net.Socket.prototype;
    const own = this;
    net.Socket.prototype.connect = function connectAndNote(...args) {
      if (portOf(args) === own.#port) own.#note(this);
      return connect.apply(this, args);
    };
  }

  #note(socket) {
    this.#context ??= new AsyncLocalStorage();
    this.#senders.set(socket, this.#context.getStore());
    let port;
    // Before any byte of a request is sent.
    socket.once('connect', () => {
      port = socket.localPort;
      this.#connected.set(port, socket);
    });
    socket.once('close', () => {
      if (this.#connected.get(port) === socket) this.#connected.delete(port);
    });
  }

  /** A connection is kept, and used by one render after the other. */
  #watchRequests() {
    const { onSocket } = http.ClientRequest.prototype;
    const own = this;
    http.ClientRequest.prototype.onSocket = function onSocketAndNote(socket, ...rest) {
      if (own.#senders.has(socket)) own.#senders.set(socket, own.#context.getStore());
      return onSocket.call(this, socket, ...rest);
    };
    diagnostics.subscribe('undici:request:create', ({ request }) => {
      if (this.#context !== undefined) this.#fetching.set(request, this.#context.getStore());
    });
    diagnostics.subscribe('undici:client:sendHeaders', ({ request, socket }) => {
      if (this.#senders.has(socket) && this.#fetching.has(request))
        this.#senders.set(socket, this.#fetching.get(request));
    });
  }
}

/** Nobody waits for it any more. */
function hasEnded({ response }) {
  return response.writableFinished || response.destroyed;
}

/** The port in the arguments of `connect`, which `net` calls with one array of them. */
function portOf(args) {
  const [first] = Array.isArray(args[0]) ? args[0] : args;
  return Number(typeof first === 'object' && first !== null ? first.port : first);
}

/** Addresses and ports of a connection as the kernel has them now; undefined if it has none. */
function endsOf(socket) {
  const handle = socket?._handle;
  if (typeof handle?.getsockname !== 'function' || typeof handle.getpeername !== 'function') return undefined;
  const own = {};
  const peer = {};
  if (handle.getsockname(own) !== 0 || handle.getpeername(peer) !== 0) return undefined;
  return { own: `${own.address} ${own.port}`, peer: `${peer.address} ${peer.port}` };
}

module.exports = { OwnRequests };

/**
 * The concurrency limiter of a worker's HTTP server: no more than `limit` requests at a time reach the program,
 * whatever the proxy does. The next one waits here: after a time-out of the proxy, say, which frees the proxy's slot
 * but ends no render.
 */
'use strict';

const { DURATION_BUCKETS, LEVELS_MAX, observe, putId } = require('./shared-metrics.cjs');
const { BackgroundWork } = require('./background.cjs');
const { watchBasePath } = require('./base-path.cjs');
const { ClassPlaces } = require('./class-places.cjs');
const { CLASSES_MAX, OWN_SITE_POOLS } = require('./classes.cjs');
const { CUT_MS, untilEnded } = require('./given-up.cjs');
const { Handlers } = require('./handlers.cjs');
const { keepLength } = require('./length.cjs');
const { takeSite } = require('./own-site.cjs');
const { isRefused } = require('./refused.cjs');
const { SetAside } = require('./set-aside.cjs');
const { WithoutSlot } = require('./without-slot.cjs');

/** As they are before a test or a library replaces them. */
const { setTimeout, clearTimeout } = globalThis;
/** HAProxy gives a render up so long after timeouts.render. */
const PROXY_MS = 1_000;
/** One that ends a moment too late costs no restart. */
const OVERDUE_MS = 2_000;
/**
 * HAProxy gives up idle connections long before, and knows when it does. Node.js or the program would do so in the
 * midst of a request.
 */
const KEEP_ALIVE_MS = 60_000;
/**
 * Requests of one render to its own process that are rendered at a time. A page that asks for itself without end has
 * its end here: the next one waits.
 */
const PARTS_MAX = 16;
/**
 * Methods that ask for nothing to be changed, as HAProxy has them (operator/src/api/handler-timeout.ts): other requests
 * have timeouts.handler.
 */
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];
/**
 * A request that has come through no proxy waits for so long before the kernel is asked whether this worker has sent
 * it, which takes some milliseconds: most renders have ended by then.
 */
const RELATIVE_MS = 250;
/** `checkContinue` and `checkExpectation` stand in for `request` where a program listens to them. */
const REQUESTS = ['request', 'checkContinue', 'checkExpectation'];

class ConcurrencyLimiter {
  /** Requests at a time; HAProxy's agent check tells it. */
  limit = Number.POSITIVE_INFINITY;
  #active = 0;
  /** Renders whose connection has gone, and since when: the proxy thinks that their place is free. */
  #abandoned = new Map();
  /** Of these, those that have no place here either. */
  #setAside;
  /** Renders that go on without a place, which the proxy knows. */
  #withoutSlot;
  /** What is being rendered: since when, and its response. */
  #renders = new Set();
  #waiting = [];
  /** Places of requests that are no renders, by the name of their class. */
  #classes;
  /** Of requests that renders have sent to their own site, by how many such requests led to one, less 1. */
  #ownSite;
  /** By request: what its handler may mark (own-site.cjs). */
  #sites = new WeakMap();
  #handlers = new Handlers();
  #childWaits;
  #background;
  #metrics;
  #notes;
  #own;
  #renderMs;
  #handlerMs;
  #abandonedMs;
  #webSocketMs;
  #giveTag;
  #levels;
  #hasRendered = false;

  /**
   * @param own tells which requests come from this process, and from which render of it
   * @param renderMs timeouts.render; the proxy waits a second longer
   * @param handlerMs timeouts.handler; 0 where every request is a render
   * @param abandonedMs how long a render without connection keeps its place at most
   * @param webSocketMs how long a WebSocket may last
   * @param giveTag gives a response an ETag, or nothing
   * @param classes `{ name, limit }` of each class of requests that are no renders
   * @param levels notes how many renders there were for how long (loop-levels.cjs), or nothing
   * @param withoutSlotMax how many renders may go on without a place
   * @param tellWithoutSlot called with their number when it changes
   * @param childWaits looks at renders that wait beside a child process (child-waits.cjs), or nothing
   */
  constructor(metrics, notes, own, options) {
    const { renderMs, handlerMs = 0, abandonedMs, webSocketMs, giveTag, classes = [], levels } = options;
    const { withoutSlotMax = 0, tellWithoutSlot = () => {}, childWaits } = options;
    this.#childWaits = childWaits;
    this.#metrics = metrics;
    this.#notes = notes;
    this.#own = own;
    this.#renderMs = renderMs;
    this.#handlerMs = handlerMs;
    this.#abandonedMs = abandonedMs;
    this.#webSocketMs = webSocketMs;
    this.#giveTag = giveTag;
    this.#levels = levels;
    this.#setAside = new SetAside(levels, () => this.#countAbandoned());
    this.#withoutSlot = new WithoutSlot(metrics, withoutSlotMax, tellWithoutSlot);
    this.#background = new BackgroundWork(metrics);
    const places = (options) => new ClassPlaces({ metrics, abandonedMs, giveTag, ...options });
    const begin = (request, response) => this.#note(request, response);
    this.#classes = new Map(classes.map(({ name, limit }, index) => [name, places({ limit, index, begin })]));
    const beginNamed = (request, response) => this.#noteNamed(request, response);
    this.#ownSite = Array.from({ length: OWN_SITE_POOLS }, (_unused, pool) =>
      // HAProxy has fewer: some go on when their client has gone.
      places({ limit: PARTS_MAX, index: CLASSES_MAX + pool, begin: beginNamed }),
    );
  }

  /** At each beat. */
  beat() {
    // Nothing begins or ends while all that there is hangs.
    this.#levels?.note(this.#active);
    this.#background.look();
    for (const render of this.#renders) if (this.#hasSlot(render)) this.#lookAt(render);
  }

  /** Who reads slowly is cut where its slot is needed, and cannot be given back. */
  #lookAt(render) {
    if (this.#active >= this.limit) this.#childWaits?.look(render);
    if (this.#withoutSlot.isDue(render)) this.#release(render);
    else if (this.#active >= this.limit && this.#withoutSlot.isHeld(render)) render.response.destroy();
  }

  /** Renders that go on without a place. */
  get withoutSlot() {
    return this.#withoutSlot.count;
  }

  /** All places are taken, and one would be free if the client of its render had gone: it is worth a question. */
  get hasWaiting() {
    return this.#active >= this.limit && [...this.#renders].some((render) => this.#isDueWithoutClient(render));
  }

  /**
   * The client of the request with this id has gone; the proxy keeps its connection to this worker. Nobody reads what
   * is left of a response: it ends now instead of at its next piece.
   */
  giveUp(id) {
    for (const render of this.#renders) {
      if (render.id !== id || !this.#isDueWithoutClient(render)) continue;
      if (render.response.headersSent) render.response.destroy();
      else this.#release(render);
    }
  }

  #isDueWithoutClient(render) {
    return this.#hasSlot(render) && this.#withoutSlot.isDueWithoutClient(render);
  }

  /** It has a place here, and one of the proxy. */
  #hasSlot(render) {
    return render.hasPlace && !this.#abandoned.has(render);
  }

  /** Whether there was a render since the last call, where somebody keeps account of them. */
  takeHasRendered() {
    const has = this.#hasRendered || this.#active > 0;
    this.#hasRendered = false;
    return this.#levels !== undefined && has;
  }

  /** A request that may change something is in progress, and has not had its time. */
  get runsHandler() {
    return this.#handlers.isBusy;
  }

  /** Nobody renders or waits, but for those that will never end and those that they keep waiting. */
  get isIdle() {
    // Also one that has begun to answer: its client may read slowly, and its work is not done.
    if (this.runsHandler) return false;
    for (const places of [...this.#classes.values(), ...this.#ownSite]) if (places.isBusy) return false;
    if (this.#withoutSlot.isBusy) return false;
    const overdue = this.#overdue().filter(({ hasPlace }) => hasPlace).length;
    if (this.#active > overdue) return false;
    return this.#waiting.length === 0 || (overdue > 0 && this.#active >= this.limit);
  }

  /** All places are taken, and the proxy does not know it, or will take one for free in a moment. */
  get isBlocked() {
    return this.#active >= this.limit && (this.#hasAbandonedPlace() || this.#isLate());
  }

  #hasAbandonedPlace() {
    return [...this.#abandoned.keys()].some(({ hasPlace }) => hasPlace);
  }

  /** A render that nobody waits for has had its time, and more: it will hardly ever end. */
  get isOverdue() {
    return this.#overdue().length > 0;
  }

  #overdue() {
    const now = performance.now();
    return [...this.#abandoned].flatMap(([render, goneAt]) => {
      const { beganAt, response, renderMs } = render;
      const isOver = now - beganAt >= renderMs + PROXY_MS + OVERDUE_MS && now - goneAt >= OVERDUE_MS;
      return isOver && !response.headersSent ? [render] : [];
    });
  }

  /**
   * Whether the proxy is about to give a render up. Said before it does: else the next request would come here within a
   * millisecond, and wait behind that render until its own time is over. One that will be set aside frees its place.
   */
  #isLate() {
    const now = performance.now();
    let { room } = this.#setAside;
    for (const render of this.#renders) {
      if (!render.hasPlace || now - render.beganAt < render.renderMs || render.response.headersSent) continue;
      if (room === 0 || !this.#setAside.waits(render)) return true;
      room -= 1;
    }
    return false;
  }

  /** For renders that begin from now on. */
  setRenderMs(renderMs, abandonedMs) {
    this.#renderMs = renderMs;
    this.#abandonedMs = abandonedMs;
  }

  /** How long a request may take, and how long it keeps its place at most when its connection has gone. */
  #limitsOf(request) {
    const handlerMs = this.#isHandler(request) ? this.#handlerMs : 0;
    return { renderMs: Math.max(this.#renderMs, handlerMs), abandonedMs: Math.max(this.#abandonedMs, handlerMs) };
  }

  #isHandler({ method }) {
    return this.#handlerMs > 0 && !SAFE_METHODS.includes(method);
  }

  /** How many renders that were given up may go on without a place. */
  setAsideMax(count) {
    this.#setAside.max = count;
  }

  setLimit(limit) {
    this.limit = limit;
    this.#next();
  }

  /** Lets requests of `server` pass one by one. Upgrades (WebSocket) are not requests in this sense. */
  guard(server) {
    const emit = server.emit;
    const limiter = this;
    server.emit = function gated(event, ...args) {
      if (event === 'upgrade') limiter.#limitAge(args[1]);
      if (!REQUESTS.includes(event)) return emit.call(this, event, ...args);
      const [request, response] = args;
      if (typeof response?.once !== 'function') return emit.call(this, event, ...args);
      // Here, because programs set it after they listen. 0 stands for the time-out of a request.
      if (!(this.keepAliveTimeout >= KEEP_ALIVE_MS)) this.keepAliveTimeout = KEEP_ALIVE_MS;
      const run = () => emit.call(this, event, ...args);
      const site = takeSite(request);
      const places = limiter.#placesOf(request, site);
      if (places) return limiter.#enterPlaces(places, { run, request, response, site });
      if (site.mark !== undefined) limiter.#sites.set(request, site);
      return limiter.#enter(run, request, response);
    };
  }

  /**
   * Of its class. The proxies take this header from what comes from outside, and only they reach the worker, and the
   * program itself: what that asks for while it answers one of a class may be a page, and has the header only because
   * programs copy what they were sent. What it asks for while it answers one that a render has sent is like that one.
   */
  #placesOf({ headers, socket }, { depth }) {
    if (socket && this.#own.isOwn(socket)) return this.#own.senderOf(socket)?.places;
    return this.#ownSite[depth - 1] ?? this.#classes.get(headers?.['x-corelane-class']);
  }

  #enterPlaces(places, { run, request, response, site }) {
    const asker = { response, site, places: this.#ownSite.includes(places) ? places : undefined };
    return places.enter(() => this.#own.run(asker, run), request, response);
  }

  /**
   * No proxy can: HAProxy knows silence only. What was written before is still sent; who does not read it is silent.
   */
  #limitAge(socket) {
    if (!this.#webSocketMs || typeof socket?.destroySoon !== 'function') return;
    const timer = setTimeout(() => socket.destroySoon(), this.#webSocketMs);
    timer.unref?.();
    socket.once('close', () => clearTimeout(timer));
  }

  #enter(run, request, response) {
    const sender = this.#senderOf(request);
    if (sender !== undefined) return this.#enterPart(sender, { run, request, response });
    if (this.#active < this.limit) return this.#begin(run, request, response);
    this.#metrics.overlaps[0] += 1;
    const entering = { run, request, response };
    this.#waiting.push(entering);
    // Few enough for the looks to cost little, whatever another container of the pod sends.
    if (this.#waiting.length <= PARTS_MAX && isDirect(request)) this.#watchRelative(entering);
    return true;
  }

  /**
   * A process or thread that a render has started, and waits for, may ask this port. No proxy names its request, and no
   * context reaches it. It is a part of the oldest render, if that began before the request came.
   */
  #watchRelative(entering) {
    const cameAt = performance.now();
    const look = () => {
      const sender = [...this.#renders].find(({ hasPlace }) => hasPlace);
      const index = this.#waiting.indexOf(entering);
      if (index < 0 || sender === undefined || sender.beganAt > cameAt) return;
      if (!this.#own.isRelative(entering.request.socket)) return;
      this.#waiting.splice(index, 1);
      this.#enterPart(sender, entering);
    };
    setTimeout(look, RELATIVE_MS).unref?.();
  }

  /**
   * The render that waits for this request: it has come from this process, and the render that sent it still runs, and
   * has a place. One that began before contexts were kept is taken for the sender of what has none.
   */
  #senderOf({ socket }) {
    if (!socket || !this.#own.isOwn(socket)) return undefined;
    const isPossible = ({ hasContext, hasPlace }) => !hasContext && hasPlace;
    const sender = this.#own.senderOf(socket) ?? [...this.#renders].find(isPossible);
    return this.#renders.has(sender) && sender.hasPlace ? sender : undefined;
  }

  /** A part of the render that sent it: it takes that one's place, and no other. */
  #enterPart(sender, entering) {
    if (sender.parts.size < PARTS_MAX) return this.#beginPart(sender, entering);
    sender.waiting.push(entering);
    return true;
  }

  #beginPart(sender, { run, request, response }) {
    const part = { beganAt: performance.now(), ...this.#limitsOf(request), response, hasPlace: true };
    part.end = () => {
      if (!sender.parts.delete(part)) return;
      const next = sender.waiting.shift();
      if (next) setImmediate(() => this.#reenter(sender, next));
      if (sender.parts.size === 0) sender.leave?.();
    };
    sender.parts.add(part);
    this.#metrics.own[0] += 1;
    keepLength(request, response);
    response.once('finish', part.end);
    response.once('close', () => {
      if (response.writableEnded) part.end();
      else if (!this.#abandoned.has(part)) untilEnded(response, part.abandonedMs, part.end);
    });
    return this.#own.run(sender, run);
  }

  /** The sender may have ended since. */
  #reenter(sender, { run, request, response }) {
    if (isGone(request, response)) this.#metrics.dropped[0] += 1;
    else if (this.#renders.has(sender)) this.#enterPart(sender, { run, request, response });
    else this.#enter(run, request, response);
  }

  /**
   * A render has ended, and parts of it go on: they have its place, and the proxy thinks that it is free. What of it
   * has not begun waits like any request.
   */
  #leaveParts({ parts, waiting }) {
    for (const part of parts) this.#abandon(part, part.abandonedMs, part.end);
    for (const { run, request, response } of waiting.splice(0)) this.#enter(run, request, response);
  }

  #next() {
    while (this.#waiting.length > 0 && this.#active < this.limit) {
      const { run, request, response } = this.#waiting.shift();
      if (isGone(request, response)) this.#metrics.dropped[0] += 1;
      else this.#begin(run, request, response);
    }
  }

  #begin(run, request, response) {
    const metrics = this.#metrics;
    const noteEnd = this.#note(request, response);
    if (noteEnd === undefined) return true;
    const beganAt = performance.now();
    const limits = this.#limitsOf(request);
    const render = { beganAt, ...limits, response, parts: new Set(), waiting: [], hasContext: false };
    render.isHandler = this.#isHandler(request);
    render.hasPlace = true;
    render.site = this.#sites.get(request);
    this.#renders.add(render);
    this.#levels?.note(this.#active);
    render.idleMs = this.#setAside.begin();
    this.#hasRendered = true;
    this.#active += 1;
    const level = Math.min(this.#active, LEVELS_MAX);
    metrics.requests[0] += 1;
    metrics.inFlight[0] = this.#active;
    render.id = request.headers?.['x-request-id'];
    render.forgetName = this.#putName(request);
    let ended = false;
    const end = () => {
      if (ended) return;
      ended = true;
      this.#renders.delete(render);
      noteEnd();
      render.forgetName();
      const offset = (level - 1) * (DURATION_BUCKETS.length + 2);
      observe(metrics.duration, DURATION_BUCKETS, (performance.now() - beganAt) / 1000, offset);
      if (render.parts.size === 0) return this.#leave(render);
      render.leave = () => this.#leave(render);
      this.#leaveParts(render);
    };
    watchBasePath(request, response);
    keepLength(request, response);
    this.#giveTag?.(request, response);
    response.once('finish', end);
    response.once('close', () => {
      if (ended || response.writableEnded || (response.headersSent && !render.hasPlace)) end();
      else if (this.#isToSetAside(render)) this.#setRenderAside(render, end);
      else this.#abandon(render, response.headersSent ? CUT_MS : render.abandonedMs, end);
    });
    return this.#own.run(render, run);
  }

  /** A render has ended. */
  #leave(render) {
    if (render.hasPlace) this.#freePlace();
    else this.#withoutSlot.delete(render);
  }

  /**
   * A render goes on without a place: it waits, and has begun to answer or has no client. The watchdog does not blame
   * an open response for an event loop that is stuck.
   */
  #release(render) {
    render.hasPlace = false;
    if (render.response.headersSent) render.forgetName();
    this.#withoutSlot.add(render);
    this.#freePlace();
  }

  #freePlace() {
    this.#levels?.note(this.#active);
    this.#active -= 1;
    this.#metrics.inFlight[0] = this.#active;
    // Not in the midst of what the program does now.
    if (this.#waiting.length > 0) setImmediate(() => this.#next());
  }

  /**
   * Notes a request that begins. Gives what is to be called when it has ended, or undefined if it must not begin: then
   * it is dropped.
   */
  #note(request, response) {
    const { refused } = this.#metrics;
    const token = request.headers?.['x-corelane-request'];
    if (isRefused(refused, token)) return this.#drop(request);
    // Noted before the second look: who has refused it in between finds the note.
    // By nginx' name for it: clients give several requests one id.
    const note = this.#notes.begin(token ?? request.headers?.['x-request-id']);
    if (isRefused(refused, token)) {
      this.#notes.end(note);
      return this.#drop(request);
    }
    this.#background.begin();
    if (this.#isHandler(request)) this.#handlers.add(response, this.#limitsOf(request).renderMs);
    return () => {
      this.#notes.end(note);
      this.#background.end();
    };
  }

  /** As `#note`. The request is among those that a kill of the watchdog is put down to. */
  #noteNamed(request, response) {
    const noteEnd = this.#note(request, response);
    if (noteEnd === undefined) return undefined;
    const forgetName = this.#putName(request);
    return () => {
      noteEnd();
      forgetName();
    };
  }

  /** Notes which request it is, for the case that the event loop gets stuck. Gives what is to be called at its end. */
  #putName({ method, url, headers }) {
    const { begunAtMs } = this.#metrics;
    const place = putId(this.#metrics, { id: headers?.['x-request-id'], method, url }, Date.now());
    let isKept = place >= 0;
    return () => {
      if (isKept) begunAtMs[place] = 0;
      isKept = false;
    };
  }

  /** Another try has been given to somebody, be it this worker. */
  #drop(request) {
    this.#metrics.dropped[0] += 1;
    request.socket?.destroy();
    return undefined;
  }

  #isToSetAside(render) {
    this.#levels?.note(this.#active);
    return this.#setAside.room > 0 && this.#setAside.waits(render);
  }

  /** Nobody waits for it, and it goes on without a place: it needs no CPU, and what comes next does. */
  #setRenderAside({ response }, end) {
    this.#setAside.add(response);
    end();
  }

  #countAbandoned() {
    this.#metrics.setAside[0] = this.#setAside.count;
    this.#metrics.abandoned[0] = this.#abandoned.size + this.#setAside.count;
  }

  /** Nobody waits for it, and it goes on: its place is free when the program ends the response, or after `ms`. */
  #abandon(render, ms, end) {
    // Without its connection the proxy does not count it any more.
    this.#withoutSlot.delete(render);
    this.#abandoned.set(render, performance.now());
    this.#countAbandoned();
    untilEnded(render.response, ms, () => {
      this.#abandoned.delete(render);
      this.#countAbandoned();
      end();
    });
  }
}

/** Whether it has come past the proxies: they give each request, also of another pod, one of these headers. */
function isDirect({ headers = {} }) {
  return !('x-corelane-request' in headers || 'x-corelane-handed-over' in headers);
}

/** Who has waited may have gone. */
function isGone(request, response) {
  return response.destroyed || response.closed || request.destroyed || request.socket?.destroyed;
}

module.exports = { ConcurrencyLimiter };

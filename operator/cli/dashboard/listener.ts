/** The port of `corelane dashboard`: the page, what it is told, stacks, profiles. Only its user's browser gets them. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Source } from '../../live/source.ts';
import { workerName } from '../../src/api/names.ts';
import { type CpuProfile, flameGraph } from '../flame-graph.ts';
import { visible } from '../visible.ts';
import { Feed } from './feed.ts';
import { judged } from './guard.ts';
import type { PageFiles } from './page-files.ts';

const ADDRESS = '127.0.0.1';
const TOKEN_BYTES = 32;
/** Pages that watch at the same time. */
const PAGES_MAX = 8;
/** Connections over which nobody has shown the key: who has such a one for the longest makes room for who comes. */
const STRANGERS_MAX = 64;
/** A page that does not read, because its browser sleeps: it comes again by itself. */
const UNREAD_BYTES_MAX = 16 * 1024 ** 2;
const PROFILE_SECONDS = 10;
/** The last ones. A profile of 10 s has some 2 MB. */
const PROFILES_MAX = 10;

/** `Trusted Types`: no text becomes markup, whatever a library does with it. */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'",
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
].join('; ');

const HEADERS = {
  'Content-Security-Policy': POLICY,
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // The address has the token in it.
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

interface Profile {
  title: string;
  json: string;
}

export interface ListenerOptions {
  source: Source;
  files: PageFiles;
  intervalMs: number;
  /** Busy workers that are asked what they render. */
  askedMax: number;
  /** 0: any. */
  port: number;
}

export class Listener {
  readonly #source: Source;
  readonly #files: PageFiles;
  readonly #feed: Feed;
  readonly #token = randomBytes(TOKEN_BYTES).toString('base64url');
  readonly #server: http.Server;
  readonly #profiles = new Map<string, Profile>();
  /** The oldest first. */
  readonly #strangers = new Set<Socket>();
  #pages = 0;

  private constructor({ source, files, ...pace }: ListenerOptions) {
    this.#source = source;
    this.#files = files;
    this.#feed = new Feed(source, pace);
    this.#server = http.createServer((request, response) => this.#answer(request, response));
    this.#server.on('connection', (socket) => this.#makeRoomFor(socket));
  }

  /** Listens on loopback until `close`. @throws Error when the port is taken */
  static async start(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options);
    await once(listener.#server.listen(options.port, ADDRESS), 'listening').catch((error) => {
      if (error.code === 'EADDRINUSE') throw new Error(`port ${options.port} is taken by another program`);
      throw error;
    });
    return listener;
  }

  /** For the user's eyes: who has it may look. */
  get url(): string {
    return `http://${ADDRESS}:${this.#port}/${this.#token}/`;
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#feed.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Every program and user of the machine may open connections, and would keep the page from its user by that. */
  #makeRoomFor(socket: Socket): void {
    this.#strangers.add(socket);
    socket.once('close', () => this.#strangers.delete(socket));
    const [oldest] = this.#strangers;
    if (this.#strangers.size <= STRANGERS_MAX || !oldest) return;
    this.#strangers.delete(oldest);
    oldest.destroy();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    // What a client sends beyond its head is nothing that anybody wants.
    request.resume();
    response.on('error', () => {});
    const { method = '', url = '', headers } = request;
    const answer = judged({ method, url, headers }, this.#port, this.#token);
    if ('status' in answer) {
      send(response, answer.status, 'text/plain', `${answer.why}\n`);
      return;
    }
    this.#strangers.delete(request.socket);
    this.#route(`${method === 'HEAD' ? 'GET' : method} ${answer.path}`, answer.query, response).catch((error: Error) =>
      send(response, 502, 'text/plain', `${visible(error.message)}\n`),
    );
  }

  async #route(what: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const { html, script, style } = this.#files;
    if (what === 'GET ') response.writeHead(308, { ...HEADERS, Location: `/${this.#token}/` }).end();
    else if (what === 'GET /') send(response, 200, 'text/html', html);
    else if (what === 'GET /page.js') send(response, 200, 'text/javascript', script);
    else if (what === 'GET /page.css') send(response, 200, 'text/css', style);
    else if (what === 'GET /told') this.#tell(response);
    else if (what === 'GET /stalls') await this.#stalls(query, response);
    else if (what === 'POST /profiles') await this.#profile(query, response);
    else if (!this.#givesProfile(what, response)) send(response, 404, 'text/plain', 'there is no such page\n');
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html */
  #tell(response: ServerResponse): void {
    if (this.#pages >= PAGES_MAX) {
      send(response, 503, 'text/plain', `${PAGES_MAX} pages are open already\n`);
      return;
    }
    this.#pages += 1;
    response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
    const unlisten = this.#feed.listen((name, value) => {
      if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
      else response.write(`event: ${name}\ndata: ${jsonOf(value)}\n\n`);
    });
    response.once('close', () => {
      this.#pages -= 1;
      unlisten();
    });
  }

  async #stalls(query: URLSearchParams, response: ServerResponse): Promise<void> {
    const { pod, worker } = this.#workerOf(query);
    send(response, 200, 'application/json', jsonOf(await this.#source.stalls(pod, worker)));
  }

  async #profile(query: URLSearchParams, response: ServerResponse): Promise<void> {
    const { pod, worker } = this.#workerOf(query);
    const json = await this.#source.profile(pod, worker, PROFILE_SECONDS);
    const title = `${workerName(worker)} of ${pod}`;
    // Fails for what is none, before somebody follows the link.
    flameGraph(JSON.parse(json) as CpuProfile, title);
    const id = randomBytes(8).toString('hex');
    this.#profiles.set(id, { title, json });
    for (const old of [...this.#profiles.keys()].slice(0, -PROFILES_MAX)) this.#profiles.delete(old);
    send(response, 200, 'application/json', jsonOf({ id, title }));
  }

  /** @throws Error for one that is not there: nothing that a page says becomes part of a path unseen */
  #workerOf(query: URLSearchParams): { pod: string; worker: number } {
    const [pod, number] = [query.get('pod') ?? '', query.get('worker') ?? ''];
    const worker = Number(number);
    if (!/^[0-9]{1,3}$/.test(number) || !this.#feed.knows(pod, worker)) throw new Error('there is no such worker');
    return { pod, worker };
  }

  /** A flame graph has a script in line, and names that the user's program has chosen: it gets an origin of its own. */
  #givesProfile(what: string, response: ServerResponse): boolean {
    const [, id = '', kind] = /^GET \/profiles\/([0-9a-f]+)\.(html|cpuprofile)$/.exec(what) ?? [];
    const profile = this.#profiles.get(id);
    if (!profile) return false;
    const { json, title } = profile;
    if (kind === 'cpuprofile') {
      const name = `${title.replaceAll(/[^a-z0-9.-]+/gi, '-')}.cpuprofile`;
      send(response, 200, 'application/json', json, { 'Content-Disposition': `attachment; filename="${name}"` });
      return true;
    }
    const nonce = randomBytes(16).toString('base64');
    const policy = `sandbox allow-scripts; default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'`;
    send(response, 200, 'text/html', flameGraph(JSON.parse(json), title, nonce), {
      'Content-Security-Policy': `${policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    });
    return true;
  }
}

/** Names of functions and URLs are of strangers: none turns the direction of what stands beside it. */
function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_key, one) => (typeof one === 'string' ? visible(one) : one));
}

function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent) return;
  response.writeHead(status, { ...HEADERS, 'Content-Type': `${type}; charset=utf-8`, ...headers }).end(body);
}

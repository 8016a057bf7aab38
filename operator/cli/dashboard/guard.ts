/**
 * Who may ask the listener of `corelane dashboard`: the browser of its user, from the page that it was given. Computes
 * only.
 *
 * The port is on loopback, which keeps other machines away, and nobody else: each program and each user of this
 * machine, and through the browser each web page that the user visits. A page can send requests here (the token in the
 * path is what it does not know), let a name of its own lead here (the Host is what it cannot change), and have the
 * browser send along what it keeps (there is nothing to keep: no cookie, for a cookie of 127.0.0.1 goes to every port).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface Asked {
  method: string;
  /** Path and query. */
  url: string;
  headers: IncomingHttpHeaders;
}

export type Answer = { path: string; query: URLSearchParams } | { status: 403 | 404 | 405 | 421; why: string };

/** Chosen by a browser, never by a page: where the request comes from. */
const FETCH_SITES = new Set<string | string[] | undefined>([undefined, 'same-origin', 'none']);

/**
 * What is asked for below the token, or why not.
 * @param token of this process
 */
export function judged({ method, url, headers }: Asked, port: number, token: string): Answer {
  if (!['GET', 'HEAD', 'POST'].includes(method)) return { status: 405, why: 'GET and POST only' };
  const { host = '', origin } = headers;
  if (!hostsOf(port).includes(host)) return { status: 421, why: `ask 127.0.0.1:${port}` };
  if (origin !== undefined && origin !== `http://${host}`) return { status: 403, why: 'asked by another page' };
  const [, given = '', path = '', query = ''] = /^\/([^/?]*)(\/[^?]*)?(?:\?(.*))?$/s.exec(url) ?? [];
  if (!FETCH_SITES.has(headers['sec-fetch-site']) && !isVisit({ method, headers }, path))
    return { status: 403, why: 'asked by another page' };
  // A form of another page has an Origin; a browser that tells neither is not one of today.
  if (method === 'POST' && origin === undefined) return { status: 403, why: 'a POST has an Origin' };
  if (!isSame(given, token)) return { status: 404, why: 'the address that corelane has printed has a token' };
  return { path, query: new URLSearchParams(query) };
}

/**
 * The whole window goes to the page, from wherever: from a file (`--open`), from a chat. It gets the document, which is
 * the same for everybody, and whoever sent it cannot look into it.
 */
function isVisit({ method, headers }: Pick<Asked, 'method' | 'headers'>, path: string): boolean {
  const isWindow = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return isWindow && method === 'GET' && (path === '' || path === '/');
}

function hostsOf(port: number): string[] {
  return [`127.0.0.1:${port}`, `localhost:${port}`];
}

/** Takes as long for a token that is nearly right. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}

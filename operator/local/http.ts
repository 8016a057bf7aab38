/** One request to a port of this machine, and waiting for what comes true. */
import http from 'node:http';

/** Generous: other work may keep the machine busy. */
const WAIT_MS = 120_000;
/** No request takes as long, so that what hangs fails instead. */
const ANSWER_MS = 60_000;
/** More than any page of the proxies and supervisors has; a program may send without end. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** No pod has a longer one. */
const HEAD_BYTES_MAX = 132 * 1024;

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
  elapsedMs: number;
}

export interface Call {
  port?: number;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  agent?: http.Agent;
  signal?: AbortSignal;
  /** Nobody wants the body: it is read to its end, and not kept. */
  isForgotten?: boolean;
}

/** One request, on a connection of its own unless there is an agent. */
export function request(
  port: number,
  path: string,
  { body, agent, isForgotten = false, signal = AbortSignal.timeout(ANSWER_MS), ...options }: Omit<Call, 'port'> = {},
): Promise<Answer> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const sent = http.request(
      { host: '127.0.0.1', port, path, agent: agent ?? false, signal, maxHeaderSize: HEAD_BYTES_MAX, ...options },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk) => {
          bytes += chunk.length;
          if (isForgotten) return;
          if (bytes > BODY_BYTES_MAX) response.destroy(new Error(`${path}: more than ${BODY_BYTES_MAX} bytes`));
          else chunks.push(chunk);
        });
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
            elapsedMs: performance.now() - began,
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Waits until `condition` gives something true, and gives that. `what` may tell what there was instead. */
export async function until<T>(
  what: string | (() => string),
  condition: () => T | Promise<T>,
  limitMs = WAIT_MS,
): Promise<NonNullable<T>> {
  const end = Date.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value) return value as NonNullable<T>;
    if (Date.now() > end) throw new Error(`Waited ${limitMs} ms in vain: ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Clients of pods whose workers run apps/streams.mjs: they see how much of a response has come, and when it ends. */
import http from 'node:http';
import { createGunzip } from 'node:zlib';
import type { Pod, WorkerOptions } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** For Pod.start. */
export const STREAMS: WorkerOptions = { command: ['node', '/app/streams.mjs'] };

export interface Stream {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** Bytes of the body that have come, or with `gunzip` what could be read of them. */
  bytes(): number;
  /** Whether all of it has come; false if it was cut off. */
  ended: Promise<boolean>;
  /** Begins to read, if it was opened with `paused`. */
  resume(): void;
  destroy(): void;
}

/** The path of a response in these steps. */
export function inSteps(id: string, steps: string[], more = ''): string {
  return `/?id=${id}${steps.map((step) => `&step=${encodeURIComponent(step)}`).join('')}${more}`;
}

/**
 * Begins with a request, and gives what comes once its head is here. `paused`: until `resume`. `direct`: not by the
 * published port, where Docker's own program takes what nginx writes.
 */
export async function openStream(
  pod: Pod,
  path: string,
  { paused = false, direct = false, gunzip = false } = {},
): Promise<Stream> {
  const headers = gunzip ? { 'accept-encoding': 'gzip' } : {};
  const to = direct
    ? { host: await pod.address(), port: PORTS.http }
    : { host: '127.0.0.1', port: pod.port(PORTS.http) };
  return new Promise((resolve, reject) => {
    const request = http.get({ ...to, path, headers, agent: false }, (response) => {
      let bytes = 0;
      const body = gunzip ? response.pipe(createGunzip()) : response;
      body.on('error', () => {}); // cut off
      body.on('data', (chunk) => {
        bytes += chunk.length;
      });
      if (paused) response.pause();
      response.on('error', () => {}); // cut off
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        bytes: () => bytes,
        ended: new Promise((done) => response.on('close', () => done(response.complete))),
        resume: () => response.resume(),
        destroy: () => response.destroy(),
      });
    });
    request.on('error', reject);
  });
}

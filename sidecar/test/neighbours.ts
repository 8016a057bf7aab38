/**
 * Clients in a worker's container of another pod: nearer than those behind a published port, which is Docker's own
 * program and takes what nginx writes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { docker } from '../../e2e/harness/engine/docker.ts';
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** A pause longer than any test. */
const NEVER_MS = 3_600_000;
const KIB = 1024;

/** How much a client reads at a time, and how long it then pauses. */
export interface Pace {
  bytes: number;
  pauseMs: number;
}
/** A beginning, and no more. */
export const NOTHING: Pace = { bytes: KIB, pauseMs: NEVER_MS };
export const TEN_KB_PER_SECOND: Pace = { bytes: KIB, pauseMs: 100 };

/** Runs a program in the first worker's container of `there`. Gives what ends it. */
export function program(there: Pod, script: string): () => Promise<void> {
  const ends = "process.stdin.resume().on('end', () => process.exit());";
  const options = ['--interactive', '--env', 'NODE_OPTIONS=', there.workers[0] ?? ''];
  const child = spawn('docker', ['exec', ...options, 'node', '-e', script + ends]);
  const ended = once(child, 'close');
  return async () => {
    child.stdin.end();
    await ended;
  };
}

/**
 * `count` requests for `path` from pod `from` to pod `there`, whose answers are read at that pace. Who reads 64 KiB at
 * once, after a while without CPU, gets a window of more than 1 MB from Linux (tcp_rcv_space_adjust), into which a
 * whole page goes: nobody would wait for that client.
 */
export async function readers(there: Pod, from: Pod, count: number, path: string, { bytes, pauseMs }: Pace) {
  return program(
    from,
    `const net = require('node:net');
    const next = (n) => {
      if (n >= ${count}) return;
      let isFirst = true;
      const callback = () => {
        if (isFirst) next(n + 50);
        isFirst = false;
        setTimeout(() => socket.resume(), ${pauseMs}).unref();
        return false;
      };
      const onread = { buffer: Buffer.alloc(${bytes}), callback };
      const socket = net.connect({ host: '${await there.address()}', port: ${PORTS.http}, onread });
      socket.on('connect', () => socket.write(${JSON.stringify(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)}));
      socket.on('error', () => {});
    };
    for (let n = 0; n < 50; n += 1) next(n);`,
  );
}

/** Bytes that have come to a pod: from others, or over its loopback device. */
export async function received(there: Pod, device: 'others' | 'lo' = 'others'): Promise<number> {
  const devices = await docker('exec', there.nginx, 'cat', '/proc/net/dev');
  return [...devices.matchAll(/^ *(\w+): *(\d+)/gm)]
    .filter(([, name]) => (name === 'lo') === (device === 'lo'))
    .reduce((total, [, , bytes]) => total + Number(bytes), 0);
}

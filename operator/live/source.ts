/** Where a service can be looked at: a cluster, or this machine. */
import { z } from 'zod';
import type { ServiceEvent } from './events.ts';
import type { Snapshot } from './snapshot.ts';

/** A request that a worker has at the moment. */
export interface RequestNow {
  id: string;
  /** Method and path. */
  what: string;
  ms: number;
}

/** A stuck event loop, with the functions that it was in, the innermost first. */
export interface WholeStall {
  time: string;
  seconds: number;
  in: string;
  requests: string[];
  stack: string[];
}

export interface Source {
  /** @throws Error that says what is missing; a pod that does not answer is part of the snapshot */
  look(): Promise<Snapshot>;
  /** Pods that may have logs, those that serve first. @throws Error if there is no such service */
  podNames(): Promise<string[]>;
  /** What a worker renders now, the oldest first; none where nobody can say. */
  requests(pod: string, worker: number): Promise<RequestNow[]>;
  /** The last stalls of a worker, the newest last. */
  stalls(pod: string, worker: number): Promise<WholeStall[]>;
  /** A CPU profile of a worker, as JSON. */
  profile(pod: string, worker: number, seconds: number): Promise<string>;
  /** Calls `onLine` for each line of the access log of a pod since so many seconds, as far as it is kept. */
  accessLog(pod: string, sinceSeconds: number, onLine: (line: string) => void): Promise<void>;
  /** What the operator has recorded, the oldest first; undefined where nobody may say. @throws Error of the network */
  events(): Promise<ServiceEvent[] | undefined>;
  close(): Promise<void>;
}

const TEXTS_MAX = 64;

/** Page /now of a supervisor. It runs in the user's container, so nothing in it is trusted. */
const nowPage = z.object({
  requests: z.array(z.object({ id: z.string(), what: z.string(), ms: z.number() })).max(TEXTS_MAX),
});

const frame = z.object({ function: z.string(), file: z.string(), line: z.number() });
/** Page /stalls of a supervisor, likewise. */
const stallsPage = z.object({
  stalls: z
    .array(
      z.object({
        time: z.iso.datetime(),
        seconds: z.number(),
        in: z.string(),
        requests: z.array(z.string()).max(TEXTS_MAX),
        stack: z.array(frame.or(z.string())).max(TEXTS_MAX),
      }),
    )
    .max(20),
});

/** @throws Error for another text */
export function readNow(text: string): RequestNow[] {
  return nowPage.parse(JSON.parse(text)).requests;
}

/** @throws Error for another text */
export function readStalls(text: string): WholeStall[] {
  return stallsPage.parse(JSON.parse(text)).stalls.map((stall) => ({
    ...stall,
    stack: stall.stack.map((one) => (typeof one === 'string' ? one : `${one.function} ${one.file}:${one.line}`)),
  }));
}

/** One line of a pod's access log (docs/access-log.md). Strangers choose what is in it. Computes only. */
import { z } from 'zod';

const line = z.object({
  time: z.string(),
  requestId: z.string(),
  samplingPercent: z.number().optional(),
  method: z.string(),
  uri: z.string(),
  status: z.number(),
  error: z.string(),
  stuckIn: z.string(),
  servedAs: z.string().optional(),
  cache: z.string().optional(),
  worker: z.string(),
  pod: z.string(),
  queueMs: z.number().nullable(),
  renderMs: z.number().nullable(),
  firstByteMs: z.number().nullable(),
  totalSeconds: z.number(),
  tries: z.string(),
});

export interface Request {
  /** When it ended, ISO 8601. */
  time: string;
  id: string;
  /** Percentage of such requests that have a line; undefined: all have. */
  samplingPercent?: number | undefined;
  method: string;
  uri: string;
  status: number;
  /** `X-Corelane-Error`, or empty. */
  error: string;
  /** Function, file and line that its worker was stuck in, or empty. */
  stuckIn: string;
  /** Class of a request that is no render, or empty. */
  servedAs: string;
  /** What the cache had to do with it, or empty. */
  cache: string;
  /** Whose log has it. */
  loggedBy: string;
  /** Pod and worker that answered; the pod is an address where it is another one. Empty: none. */
  pod: string;
  worker: string;
  queueMs: number | undefined;
  renderMs: number | undefined;
  firstByteMs: number | undefined;
  totalMs: number;
  /** Workers that have had it before the one that answered, and died of it or with it. */
  died: number;
}

/** Undefined for what is no such line: nginx' errors stand between them. */
export function readLine(text: string, loggedBy: string): Request | undefined {
  if (!text.startsWith('{')) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = line.safeParse(value);
  if (!parsed.success) return undefined;
  const {
    requestId,
    servedAs = '',
    cache = '',
    queueMs,
    renderMs,
    firstByteMs,
    totalSeconds,
    tries,
    ...rest
  } = parsed.data;
  return {
    ...{ ...rest, id: requestId, servedAs, cache, loggedBy, pod: rest.pod || (rest.worker && loggedBy) },
    queueMs: queueMs ?? undefined,
    renderMs: renderMs ?? undefined,
    firstByteMs: firstByteMs ?? undefined,
    totalMs: Math.round(1000 * totalSeconds),
    died: Math.max(
      0,
      tries.split(/[,:] ?/).filter((one) => one.trim() === '502').length - (rest.status === 502 ? 1 : 0),
    ),
  };
}

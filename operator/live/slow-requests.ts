/**
 * Who waited, for which worker, and why: from access logs, one line after the other, of which only the slowest are
 * kept. Computes only.
 */
import { type Request, readLine } from './access-log.ts';
import { aligned, clip, count, counted, milliseconds, seconds } from './text.ts';

/** Where the time of a request has gone for the most part. */
export type Reason = 'failed' | 'queue' | 'render' | 'client' | 'died' | 'cache';

export interface SlowRequest {
  request: Request;
  reason: Reason;
  /** The one that had the worker before it: what it has waited for. Unknown where not each request has a line. */
  behind: Request | undefined;
}

export interface SlowOptions {
  /** Slower ones are told of. */
  thanMs: number;
  /** How many of them are kept: the slowest. */
  kept: number;
}

/** What only a client that sends or reads slowly can have taken. */
const CLIENT_SHARE = 0.5;
/** Of the time that is not the client's. */
const QUEUE_SHARE = 0.5;

export class SlowRequests {
  readonly #options: SlowOptions;
  /** By pod and worker: what it has answered last. */
  readonly #last = new Map<string, Request>();
  readonly #reasons = new Map<Reason, number>();
  #slowest: SlowRequest[] = [];
  #all = 0;
  #slow = 0;
  #isSample = false;

  constructor(options: SlowOptions) {
    this.#options = options;
  }

  /** Takes a line of the log of a pod. A pod's lines come in their order. */
  add(text: string, pod: string): void {
    const request = readLine(text, pod);
    if (!request) return;
    this.#all += 1;
    this.#isSample ||= request.samplingPercent !== undefined;
    const behind = this.#before(request);
    if (request.totalMs < this.#options.thanMs) return;
    this.#slow += 1;
    const reason = reasonOf(request);
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
    this.#keep({ request, reason, behind });
  }

  #before(request: Request): Request | undefined {
    if (!request.worker || request.servedAs || request.samplingPercent !== undefined) return undefined;
    const key = `${request.loggedBy} ${request.pod} ${request.worker}`;
    const last = this.#last.get(key);
    this.#last.set(key, request);
    return last;
  }

  #keep(slow: SlowRequest): void {
    this.#slowest.push(slow);
    if (this.#slowest.length < 2 * this.#options.kept) return;
    this.#slowest = this.slowest;
  }

  /** The slowest first. */
  get slowest(): SlowRequest[] {
    const sorted = this.#slowest.toSorted((one, other) => other.request.totalMs - one.request.totalMs);
    return sorted.slice(0, this.#options.kept);
  }

  /** Requests seen, those that were slow, how many for which reason, and whether there were others without a line. */
  get counts(): { all: number; slow: number; reasons: ReadonlyMap<Reason, number>; isSample: boolean } {
    return { all: this.#all, slow: this.#slow, reasons: this.#reasons, isSample: this.#isSample };
  }
}

function reasonOf({ error, queueMs = 0, renderMs = 0, firstByteMs, totalMs, died, cache }: Request): Reason {
  if (error) return 'failed';
  if (died > 0) return 'died';
  if (cache === 'waited') return 'cache';
  const ours = firstByteMs ?? queueMs + renderMs;
  // Until its head was there a client has sent; after it he, or a stream, has taken the rest.
  const client = Math.max(0, totalMs - Math.min(totalMs, queueMs + renderMs));
  if (client > CLIENT_SHARE * totalMs && ours < totalMs) return 'client';
  return queueMs >= QUEUE_SHARE * (queueMs + renderMs) && queueMs > 0 ? 'queue' : 'render';
}

const WORDS: Record<Reason, string> = {
  queue: 'waited for a worker',
  render: 'rendered for long',
  client: 'sent or taken slowly by the client, or a stream',
  failed: 'failed',
  died: 'lost a worker on the way',
  cache: 'waited for a page that was just being rendered',
};

/** A sentence, and a table of the slowest. */
export function slowLines(
  found: SlowRequests,
  { thanMs, since, pods }: { thanMs: number; since: string; pods: number },
): string[] {
  const { all, slow, reasons, isSample } = found.counts;
  const sample = isSample ? ' (a sample: accessLog.samplingPercent)' : '';
  const where = `in the last ${since} of ${counted(pods, 'pod')}${sample}`;
  const percent = all > 0 ? (100 * slow) / all : 0;
  const share = percent > 0 && percent < 0.1 ? '< 0.1' : percent.toFixed(1);
  const head = `${counted(all, 'request')} ${where}; ${count(slow)} took ${milliseconds(thanMs)} or more (${share} %)`;
  const parts = [...reasons]
    .sort(([, one], [, other]) => other - one)
    .map(([reason, number]) => `${count(number)} ${WORDS[reason]}`);
  if (all === 0) return [head, 'Pods with accessLog.enabled: false log no requests.'];
  if (slow === 0) return [head];
  const rows = found.slowest.map(({ request, reason, behind }) => [
    request.time.slice(11, 19),
    String(request.status),
    clip(workerOf(request), 44),
    clip(whyOf(request, reason, behind), 72),
    clip(`${request.method} ${request.uri}`, 120),
    seconds(request.totalMs),
    milliseconds(request.queueMs),
    milliseconds(request.renderMs),
  ]);
  const table = [['ENDED', 'STATUS', 'WORKER', 'WHY', 'REQUEST', 'TOTAL', 'QUEUE', 'RENDER'], ...rows];
  // Numbers to the right of a column each; the request, which may be long, last.
  const order = [0, 5, 6, 7, 1, 2, 3, 4];
  const columns = table.map((row) => order.map((column) => row[column] ?? ''));
  return [`${head}: ${parts.join(', ')}`, '', ...rightAligned(columns)];
}

/** The first five columns to the right, but for the time. */
function rightAligned(rows: string[][]): string[] {
  const numbers = aligned(
    rows.map((row) => row.slice(0, 4)),
    1,
  );
  const width = Math.max(...numbers.map((line) => line.length));
  const texts = aligned(
    rows.map((row) => row.slice(4)),
    4,
  );
  return rows.map((_row, index) => `${(numbers[index] ?? '').padEnd(width)}  ${texts[index]}`);
}

function workerOf({ pod, worker, loggedBy }: Request): string {
  if (!worker) return '-';
  return pod === loggedBy ? `${pod}/${worker}` : `${loggedBy} -> ${pod}/${worker}`;
}

function whyOf(request: Request, reason: Reason, behind: Request | undefined): string {
  const { error, stuckIn, died, pod, loggedBy } = request;
  const handed = pod && pod !== loggedBy ? ', handed over' : '';
  const lost = died > 0 ? `${died === 1 ? 'a worker' : `${died} workers`} died with it` : '';
  if (reason === 'failed') return [error, stuckIn && `stuck in ${stuckIn}`, lost].filter(Boolean).join(', ');
  if (reason === 'queue' && behind)
    return `behind ${behind.error || milliseconds(behind.renderMs)} of ${behind.method} ${behind.uri.split('?')[0]}${handed}`;
  const words = {
    queue: 'waited for a worker',
    render: 'rendered',
    client: 'client, or a stream',
    died: lost,
    cache: 'waited for the same page',
  };
  return `${words[reason]}${handed}`;
}

/** Plans for the client (inside/client.mjs), and running one in a container. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { LABEL, NODE_IMAGE, RUN_ID } from '../../e2e/harness/engine/docker.ts';
import { INSIDE } from './inside.ts';

export interface Target {
  host: string;
  port: number;
}

export interface PlannedRequest {
  /** `{id}` stands for the request's name. */
  path: string;
  /** Number of the target, 0 unless given. */
  target?: number;
  /** Uniform in [0, 1): which of the targets that are ready. */
  choice?: number;
  /** Open loop: when, in milliseconds after the phase began. */
  atMs?: number;
  /** The client leaves by then. */
  abortAfterMs?: number;
  /** The body arrives little by little over this time. */
  bodyOverMs?: number;
}

/** A readiness check as kubelet and the Service would do it: what is not ready gets no new requests. */
export interface Readiness {
  /** Where HAProxy tells its figures. */
  port: number;
  /** A pod with so many waiting requests is not ready. */
  queueLengthMax: number;
  everyMs: number;
}

/** Requests that are sent in one way. They are named `GROUP-0`, `GROUP-1` ... */
export interface Group {
  name: string;
  /**
   * Closed loop: this many clients, each of which waits for its answer; `requests` are taken in turn, over and over.
   */
  concurrency?: number;
  /** Closed loop: it ends after so many requests or seconds. */
  count?: number;
  seconds?: number;
  /** A connection is used again: closed loop by its client, open loop by the next request that finds one idle. */
  keepAlive?: boolean;
  /** Closed loop: each request goes to a target that has none, and waits for one in a FIFO queue of the clients. */
  deal?: boolean;
  /** Sent with each request. */
  headers?: { [name: string]: string };
  /** Headers of responses, in lower case, that the records have. */
  keeps?: string[];
  /** When so many bytes of a body were there is told, and when the first one was. */
  markBytes?: number;
  /** Open loop: for requests with a `choice`. */
  readiness?: Readiness;
  /**
   * Open loop, evenly, until the client is told to end: so many requests a second, to the endpoints in turn; `requests`
   * are taken in turn, over and over.
   */
  perSecond?: number;
  requests: PlannedRequest[];
}

export interface Plan {
  targets: Target[];
  /** What all of them are called in `Host`; else each has its address. */
  host?: string;
  bodyBytes: number;
  timeoutMs: number;
  /** Asked for at the first target until it is answered so, before anything else; the client fails where it is not. */
  hello?: { path: string; status: number };
  /** One after the other; the groups of a phase at once. */
  phases: Group[][];
}

/** What became of a request. */
export interface Record {
  group: string;
  id: string;
  /** Milliseconds of the wall clock when it was sent. */
  at: number;
  ms: number;
  /** 0 when no response has begun. */
  status: number;
  error?: string;
  /** Of groups with `perSecond`: the host of the endpoint. */
  to?: string;
  headers?: { [name: string]: string | undefined };
  /** Of groups with `markBytes`: milliseconds until the first byte of the body, and until so many. */
  firstMs?: number;
  markMs?: number;
}

/** A client that runs. */
export interface RunningClient {
  /** From now on these are the endpoints. */
  tell(endpoints: Target[]): void;
  /** Nothing more is told, so groups with `perSecond` end. */
  end(): void;
  /** The result of every request, once the load has ended. */
  records: Promise<Record[]>;
}

/** Starts the client in the network `network`; `onPhase` is called when a phase begins. */
export function startLoad(network: string, plan: Plan, onPhase: (phase: number) => void = () => {}): RunningClient {
  const options = ['run', '--rm', '--interactive', '--init', '--label', `${LABEL}=${RUN_ID}`, '--network', network];
  const command = ['--volume', `${INSIDE}:/bench:ro`, '--entrypoint', 'node', NODE_IMAGE, '/bench/client.mjs'];
  const client = spawn('docker', [...options, ...command], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => client.once('exit', resolve));
  // A client that has failed reads no more: its exit code is told below.
  client.stdin.on('error', () => {});
  client.stdin.write(`${JSON.stringify(plan)}\n`);
  const read = async () => {
    let records: Record[] | undefined;
    for await (const line of createInterface({ input: client.stdout })) {
      if (line.startsWith('phase ')) onPhase(Number(line.slice(6)));
      else records = JSON.parse(line) as Record[];
    }
    const code = await ended;
    if (!records) throw new Error(`the load client ended with ${code} and told nothing`);
    return records;
  };
  const records = read();
  records.catch(() => {}); // whoever waits for them is told
  return {
    tell: (endpoints) => void client.stdin.write(`${JSON.stringify(endpoints)}\n`),
    end: () => void client.stdin.end(),
    records,
  };
}

/** Runs the client to its end. */
export function runLoad(network: string, plan: Plan, onPhase?: (phase: number) => void): Promise<Record[]> {
  const client = startLoad(network, plan, onPhase);
  client.end();
  return client.records;
}

/**
 * A proxy in front of a real API server that fails as they do in the field: refuses (429, 500, 502, 503), answers what
 * it has done with an error or half an answer, does things late and after it has said that it cannot, does them twice,
 * cuts watches in the middle, repeats, reorders and delays what they say, and forgets their history. Its choices come
 * from a seed, in the order in which requests arrive.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import type { AccessLog } from './access-log.ts';
import type { Json } from './api-client.ts';
import type { ApiServer } from './api-server.ts';
import { Random } from './random.ts';

const LATE_MS_MAX = 800;
/** Of a watch: changes until something happens to it. */
const WATCH_LINES_MAX = 3;
const GONE = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 410, reason: 'Expired', message: 'too old' };
const PAGE = '<html><body><h1>502 Bad Gateway</h1></body></html>';

/** What can happen to a request that is no watch. */
const FAULTS = ['429', '500', '502', '503', 'late', 'slow', 'unknown', 'half', 'after-all', 'twice'] as const;
/** What can happen to a watch. */
const WATCH_FAULTS = ['429', '500', '410', 'cut', 'torn', 'repeated', 'reordered', 'delayed', 'expired'] as const;
type Fault = (typeof FAULTS)[number] | (typeof WATCH_FAULTS)[number];

interface Answer {
  status: number;
  headers: http.OutgoingHttpHeaders;
  body: Buffer;
}

/** A request that is kept back; `isGivenUp` once its sender has gone. */
export interface Held {
  readonly method: string;
  readonly path: string;
  readonly isGivenUp: boolean;
}

/** The operator behind a proxy, and where its writes are noted. */
interface Noted {
  by: string;
  log: AccessLog;
}

export class FailingApi {
  /** Share of requests that something happens to, and of watches, which are far fewer. */
  share = 0;
  watchShare = 0;
  /** How often each has happened. */
  readonly happened: Partial<Record<Fault, number>> = {};
  /** Requests that have come. */
  came = 0;
  /** Requests that match are never answered, and never reach the server. */
  holds: (method: string, path: string) => boolean = () => false;
  readonly held: Held[] = [];
  /** The only token that is taken (the server gets the user's); undefined: the user's own. */
  token: string | undefined;
  /** The user's, through this proxy. */
  kubeconfig = '';
  /** Of its own, gone with it. */
  folder = '';

  readonly #faults: Fault[] = [];
  readonly #watchFaults: Fault[] = [];
  readonly #watches = new Set<ServerResponse>();
  readonly #random: Random;
  readonly #target: https.RequestOptions;
  readonly #user: { token: string };
  readonly #noted: Noted | undefined;
  readonly #server = http.createServer((request, response) => {
    this.#take(request, response).catch(() => response.destroy());
  });

  private constructor(seed: number, kubeconfig: Json, noted?: Noted) {
    this.#random = new Random(seed);
    this.#noted = noted;
    const { server, 'certificate-authority-data': authority } = kubeconfig.clusters[0].cluster;
    const { hostname, port } = new URL(server);
    const agent = new https.Agent({ keepAlive: true });
    this.#target = { hostname, port, ca: Buffer.from(authority, 'base64'), agent };
    this.#user = kubeconfig.users[0].user;
  }

  /** Listens on loopback until `close`, and forwards to `server` what its user `operator` asks for. */
  static async start(server: ApiServer, seed: number, noted?: Noted): Promise<FailingApi> {
    const api = new FailingApi(seed, parse(await readFile(server.operatorKubeconfig, 'utf8')), noted);
    await once(api.#server.listen(0, '127.0.0.1'), 'listening');
    api.folder = await mkdtemp(join(tmpdir(), 'failing-api-'));
    api.kubeconfig = await api.kubeconfigOf(api.#user);
    return api;
  }

  /** A kubeconfig through this proxy with another user in it. */
  async kubeconfigOf(user: object, name = 'operator'): Promise<string> {
    const path = join(this.folder, name);
    const server = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const text = stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'failing', cluster: { server, 'insecure-skip-tls-verify': true } }],
      users: [{ name, user }],
      contexts: [{ name, context: { cluster: 'failing', user: name } }],
      'current-context': name,
    });
    await writeFile(path, text, { mode: 0o600 });
    return path;
  }

  /** The credentials that the server takes. */
  get user(): { token: string } {
    return this.#user;
  }

  /** Ends all watches, which else last for half an hour: what is asked for anew may fail. */
  cutWatches(): void {
    for (const watch of this.#watches) watch.destroy();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    (this.#target.agent as https.Agent).destroy();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.came += 1;
    const { method = '', url = '' } = request;
    response.on('error', () => {});
    if (this.#noted) response.once('close', this.#noted.log.begin(this.#noted.by, method, url));
    if (this.token !== undefined) {
      if (request.headers.authorization !== `Bearer ${this.token}`) return send(response, UNAUTHORIZED);
      request.headers.authorization = `Bearer ${this.#user.token}`;
    }
    if (this.holds(method, url)) return this.#hold(request, response);
    const isWatch = url.includes('watch=true');
    const fault = this.#random.chance(isWatch ? this.watchShare : this.share) ? this.#next(isWatch) : undefined;
    if (fault) this.happened[fault] = (this.happened[fault] ?? 0) + 1;
    const refused = refusal(fault);
    const body = Buffer.concat(await request.toArray());
    if (refused) return send(response, refused);
    if (isWatch) return await this.#watch(request, response, fault);
    await this.#answer(request, body, response, fault);
  }

  /** Each comes before one comes again: a short run has them all. */
  #next(isWatch: boolean): Fault {
    const left = isWatch ? this.#watchFaults : this.#faults;
    if (left.length === 0) left.push(...(isWatch ? WATCH_FAULTS : FAULTS));
    return left.splice(this.#random.whole(0, left.length - 1), 1)[0] as Fault;
  }

  #hold(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url: path = '' } = request;
    this.held.push({
      method,
      path,
      get isGivenUp() {
        return response.destroyed;
      },
    });
  }

  async #answer(request: IncomingMessage, body: Buffer, response: ServerResponse, fault?: Fault): Promise<void> {
    const lateMs = LATE_MS_MAX * this.#random.fraction();
    if (fault === 'after-all') {
      send(response, status(504, 'Timeout', 'the server was unable to return a response in time'));
      await delay(lateMs);
      await this.#forward(request, body);
      return;
    }
    if (fault === 'late') await delay(lateMs);
    const first = await this.#forward(request, body);
    const answer = fault === 'twice' ? await this.#forward(request, body) : first;
    if (fault === 'slow') await delay(lateMs);
    if (fault === 'unknown') response.destroy();
    else if (fault === 'half') {
      response.writeHead(answer.status, { ...answer.headers, 'content-length': answer.body.length });
      response.write(answer.body.subarray(0, answer.body.length / 2), () => response.destroy());
    } else send(response, answer);
  }

  #forward({ method, url, headers }: IncomingMessage, body: Buffer): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const options = {
      ...this.#target,
      method,
      path: url,
      headers: { ...headers, 'accept-encoding': 'identity', 'content-length': body.length },
    };
    const forwarded = https.request(options, async (answer) => {
      try {
        const bytes = Buffer.concat(await answer.toArray());
        const { 'content-type': type = 'application/json' } = answer.headers;
        if (answer.statusCode === 200 || answer.statusCode === 201)
          this.#noted?.log.accepted(method ?? '', url ?? '', bytes);
        resolve({ status: answer.statusCode ?? 0, headers: { 'content-type': type }, body: bytes });
      } catch (error) {
        reject(error);
      }
    });
    forwarded.on('error', reject);
    forwarded.end(body);
    return promise;
  }

  async #watch({ url, headers }: IncomingMessage, response: ServerResponse, fault?: Fault): Promise<void> {
    // Its client has gone already, and nothing would end this one.
    if (response.destroyed) return;
    const forwarded = https.request({ ...this.#target, agent: false, path: url, headers }).end();
    this.#watches.add(response);
    response.on('close', () => {
      this.#watches.delete(response);
      forwarded.destroy();
    });
    forwarded.on('error', () => response.destroy());
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
    answer.on('error', () => response.destroy());
    response.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' });
    response.flushHeaders();
    const last = new Map<string, string>();
    let left = fault ? this.#random.whole(1, WATCH_LINES_MAX) : Number.POSITIVE_INFINITY;
    let rest = '';
    for await (const chunk of answer.setEncoding('utf8')) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        left -= 1;
        if (left > 0) response.write(`${line}\n`);
        else if (await this.#isOver(line, last, response, fault)) return void forwarded.destroy();
      }
    }
    response.end();
  }

  /** What becomes of a watch at this change; true where nothing comes after it. */
  async #isOver(line: string, last: Map<string, string>, response: ServerResponse, fault?: Fault): Promise<boolean> {
    switch (fault) {
      case 'cut':
        response.end(`${line}\n`);
        return true;
      case 'torn':
        response.write(line.slice(0, line.length / 2), () => response.destroy());
        return true;
      case 'expired':
        response.end(`${JSON.stringify({ type: 'ERROR', object: GONE })}\n`);
        return true;
      case 'repeated':
        response.write(`${line}\n${line}\n`);
        return false;
      case 'reordered':
        // The earlier change comes once more, after its successor: one that is only late would be lost with a cut.
        response.write(`${line}\n${replaceLast(last, line)}`);
        return false;
      default:
        // One that is well again catches up: each line waits for those before it.
        if (this.watchShare > 0) await delay(LATE_MS_MAX * this.#random.fraction());
        response.write(`${line}\n`);
        return false;
    }
  }
}

/** The line about the same object before this one, or ''. */
function replaceLast(last: Map<string, string>, line: string): string {
  const { namespace = '', name = '' } = (JSON.parse(line) as Json).object.metadata ?? {};
  const key = `${namespace}/${name}`;
  const earlier = last.get(key) ?? '';
  last.set(key, `${line}\n`);
  return earlier;
}

const UNAUTHORIZED = status(401, 'Unauthorized', 'Unauthorized');

/** What is answered without a question to the server. */
function refusal(fault?: Fault): Answer | undefined {
  switch (fault) {
    case '429':
      return status(429, 'TooManyRequests', 'too many requests, please try again later', { 'retry-after': '1' });
    case '500':
      return status(500, 'InternalError', 'etcdserver: request timed out');
    case '502':
      return { status: 502, headers: { 'content-type': 'text/html' }, body: Buffer.from(PAGE) };
    case '503':
      return status(503, 'ServiceUnavailable', 'apiserver is shutting down');
    case '410':
      return status(410, GONE.reason, GONE.message);
  }
}

function status(code: number, reason: string, message: string, headers: http.OutgoingHttpHeaders = {}): Answer {
  const body = JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message });
  return { status: code, headers: { 'content-type': 'application/json', ...headers }, body: Buffer.from(body) };
}

function send(response: ServerResponse, { status: code, headers, body }: Answer): void {
  response.writeHead(code, { ...headers, 'content-length': body.length }).end(body);
}

/**
 * A process that stands for an API server and the pods of a fleet, as far as an operator asks for them: lists in pages,
 * watches, writes, and port 8999 of each pod. Nothing is stored but what is in memory, and nobody is refused.
 * Its parent sends a shape and gets the address; what it sends after that are orders, each of which is answered.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { LIVE_FILE, PORTS } from '../../operator/src/api/names.ts';
import { kinds } from '../../operator/src/kube/kinds.ts';
import type { KubeObject } from '../../operator/src/kube/types.ts';
import { namespacesOf, type Shape, servicesOf } from './shape.ts';
import { statisticsPage } from './statistics-page.ts';
import { type StoredService, storedService } from './stored.ts';

/** What the parent may ask for. */
export type Order =
  /** Writes since the last time, by what was written. */
  | { what: 'writes' }
  /** Another number of replicas for one service; answered with the milliseconds until its Deployment was applied. */
  | { what: 'change'; service: number }
  /** From now on so many events of pods a second, of all services in turns. */
  | { what: 'events'; perSecond: number };

interface Watcher {
  response: ServerResponse;
}

const { promise: shapeSent, resolve: gotShape } = Promise.withResolvers<Shape>();
process.once('message', (shape: Shape) => {
  gotShape(shape);
});
process.on('disconnect', () => process.exit(0));

const shape = await shapeSent;
let version = 1_000_000;
/** Objects as text, by the plural of their kind and by namespace and name. */
const stored = new Map<string, Map<string, string>>();
const watchers = new Map<string, Set<Watcher>>();
const services: StoredService[] = [];
let writes: Record<string, number> = {};
/** Who waits for a Deployment to be applied, by its name. */
const awaited = new Map<string, () => void>();

const pluralOf = new Map(Object.values(kinds).map(({ kind, plural }) => [kind as string, plural as string]));
const keyOf = ({ metadata }: KubeObject) => `${metadata.namespace}/${metadata.name}`;

function put(object: KubeObject, type?: 'ADDED' | 'MODIFIED'): KubeObject {
  const plural = pluralOf.get(object.kind) ?? '';
  version += 1;
  object.metadata.resourceVersion = String(version);
  const objects = stored.get(plural) ?? new Map<string, string>();
  stored.set(plural, objects);
  const text = JSON.stringify(object);
  objects.set(keyOf(object), text);
  if (type) {
    const line = `${JSON.stringify({ type, object })}\n`;
    for (const { response } of watchers.get(plural) ?? []) response.write(line);
  }
  return object;
}

function addressOf(index: number): string {
  return `127.2.${(index + 256) >> 8}.${index & 255}`;
}

for (const [index, named] of servicesOf(shape).entries()) {
  const service = storedService(named, shape.pods);
  services.push(service);
  for (const object of [service.renderService, ...service.owned, service.replicaSet]) put(object);
  for (let pod = 0; pod < shape.pods; pod += 1) put(service.pod(pod, addressOf(index * shape.pods + pod)));
}

const status = (code: number, reason: string) => JSON.stringify({ kind: 'Status', status: 'Failure', code, reason });
let lease: KubeObject | undefined;

/** What is answered: a status, and an object or its text. */
type Answer = [code: number, body: object | string];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
  const { method = 'GET' } = request;
  const text = method === 'GET' ? '' : (await request.toArray()).join('');
  const body = (text === '' ? {} : JSON.parse(text)) as KubeObject;
  const [, namespace, plural = '', name, part] =
    /(?:\/namespaces\/([^/]+))?\/(\w+)(?:\/([^/]+))?(?:\/(status|scale))?$/.exec(
      pathname.replace(/^\/(api\/v1|apis\/[^/]+\/[^/]+)/, ''),
    ) ?? [];
  if (method === 'GET' && searchParams.has('watch')) return watch(plural, response);
  const objects = stored.get(plural) ?? new Map<string, string>();
  const live = objects.get(`${namespace}/${name}`);
  const find = (): Answer => {
    if (plural === 'leases') return ofLease(method, body);
    if (method !== 'GET') return write(method, { plural, part, live, body });
    if (pathname.startsWith('/openapi')) return [200, { components: { schemas: {} } }];
    if (name === undefined) return [200, page([...objects.values()], searchParams)];
    return live ? [200, live] : [404, status(404, 'NotFound')];
  };
  const [code, found] = find();
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(typeof found === 'string' ? found : JSON.stringify(found));
}

interface Written {
  plural: string;
  part: string | undefined;
  live: string | undefined;
  body: KubeObject;
}

function write(method: string, { plural, part, live, body }: Written): Answer {
  // There is one of each service.
  if (method === 'POST' && plural === 'secrets') return [409, status(409, 'AlreadyExists')];
  const what = `${method} ${plural}${part ? `/${part}` : ''}`;
  writes[what] = (writes[what] ?? 0) + 1;
  if (plural === 'events' || method === 'DELETE') return [200, body];
  return [200, put(merged(live ? JSON.parse(live) : {}, body, part), 'MODIFIED')];
}

function ofLease(method: string, body: KubeObject): Answer {
  if (method === 'GET') return lease ? [200, lease] : [404, status(404, 'NotFound')];
  lease = body;
  return [200, body];
}

function watch(plural: string, response: ServerResponse): void {
  const watcher = { response };
  const all = watchers.get(plural) ?? new Set();
  watchers.set(plural, all.add(watcher));
  response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
  response.on('close', () => all.delete(watcher));
}

function page(all: string[], query: URLSearchParams): string {
  const from = Number(query.get('continue') ?? 0);
  const to = from + Number(query.get('limit') ?? all.length);
  const more = to < all.length ? { continue: String(to) } : {};
  const metadata = JSON.stringify({ resourceVersion: String(version), ...more });
  return `{"kind":"List","metadata":${metadata},"items":[${all.slice(from, to).join(',')}]}`;
}

/** What an API server would make of a patch; of an object that is applied a later generation, of which it has heard. */
function merged(live: KubeObject, patch: KubeObject, part: string | undefined): KubeObject {
  const object = overlay(live, patch) as KubeObject;
  if (part === 'status' || object.kind === 'Pod') return object;
  object.metadata.generation = (live.metadata.generation ?? 0) + 1;
  if (object.kind !== 'Deployment') return object;
  awaited.get(object.metadata.name)?.();
  const { replicas } = object.spec as { replicas: number };
  const counts = { replicas, readyReplicas: replicas, updatedReplicas: replicas, availableReplicas: replicas };
  return {
    ...object,
    status: { ...(object.status as object), observedGeneration: object.metadata.generation, ...counts },
  };
}

function overlay(base: unknown, over: unknown): unknown {
  const isMap = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMap(base) || !isMap(over)) return over;
  const all = { ...(base as Record<string, unknown>) };
  for (const [key, value] of Object.entries(over as object)) {
    if (value === null) delete all[key];
    else all[key] = overlay(all[key], value);
  }
  return all;
}

async function change(index: number): Promise<number> {
  const service = services[index] as StoredService;
  const objects = stored.get(kinds.renderService.plural);
  const live = JSON.parse(objects?.get(keyOf(service.renderService)) ?? '') as KubeObject;
  const spec = live.spec as { replicas: number };
  const applied = new Promise<void>((resolve) =>
    awaited.set((service.owned.at(-1) as KubeObject).metadata.name, resolve),
  );
  const began = performance.now();
  put(
    {
      ...live,
      metadata: { ...live.metadata, generation: (live.metadata.generation ?? 0) + 1 },
      spec: { ...spec, replicas: spec.replicas === shape.pods ? shape.pods + 1 : shape.pods },
    },
    'MODIFIED',
  );
  await applied;
  awaited.clear();
  return performance.now() - began;
}

let timer: NodeJS.Timeout | undefined;
let next = 0;

/** Pods that become ready and unready, of another service each time. */
function events(perSecond: number): void {
  clearInterval(timer);
  if (perSecond === 0) return;
  const keys = [...(stored.get(kinds.pod.plural)?.keys() ?? [])];
  const everyMs = 20;
  timer = setInterval(() => {
    for (let n = 0; n < (perSecond * everyMs) / 1_000; n += 1) {
      next += shape.pods;
      if (next >= keys.length) next = (next % shape.pods) + 1;
      turn(keys[next % keys.length] as string);
    }
  }, everyMs);
}

function turn(key: string): void {
  const pod = JSON.parse(stored.get(kinds.pod.plural)?.get(key) ?? '') as KubeObject;
  const { conditions } = pod.status as { conditions: { type: string; status: string }[] };
  for (const one of conditions) if (one.type === 'Ready') one.status = one.status === 'True' ? 'False' : 'True';
  put(pod, 'MODIFIED');
}

async function obey(order: Order): Promise<unknown> {
  if (order.what === 'change') return await change(order.service);
  if (order.what === 'events') {
    events(order.perSecond);
    return null;
  }
  const counted = writes;
  writes = {};
  return counted;
}

/** Port 8999 of each pod. */
async function listen(): Promise<void> {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n';
  const chunked = (text: string) =>
    `${head}Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const metrics = Buffer.from(chunked(statisticsPage()));
  const runtime = Buffer.from(chunked('corelane_worker_up{worker="0"} 1\n'));
  for (const [index, service] of services.entries()) {
    const settings = service.owned.find(({ metadata }) => metadata.name.endsWith('-live')) as unknown as {
      data: Record<string, string>;
    };
    const [serial] = /^serial=\w+$/m.exec(settings.data[LIVE_FILE] ?? '') ?? [];
    const live = Buffer.from(chunked(`${serial}\ncanary=1\n`));
    for (let pod = 0; pod < shape.pods; pod += 1) {
      const server = createTcpServer((socket) => {
        socket.on('error', () => socket.destroy());
        socket.on('data', (question) => {
          const path = question.toString('latin1', 4, 12);
          socket.end(path.startsWith('/metrics') ? metrics : path.startsWith('/live') ? live : runtime);
        });
      });
      server.listen({ port: PORTS.stats, host: addressOf(index * shape.pods + pod), backlog: 16 });
      await once(server, 'listening');
    }
  }
}

await listen();
const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(`stand-in.ts: ${error.stack}`);
    process.exit(1);
  });
});
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.on('message', async (order: Order) => process.send?.({ answer: await obey(order) }));
  process.send?.({ port, namespaces: namespacesOf(shape).length });
});

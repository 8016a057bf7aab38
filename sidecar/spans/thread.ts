/**
 * The thread beside the supervisor of worker-0: takes what nginx tells of sampled requests, and sends spans. It has no
 * environment: what the program's OpenTelemetry is told there is not for this one.
 */
import { createSocket } from 'node:dgram';
import { parentPort, workerData } from 'node:worker_threads';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { parseRecord } from './record.ts';
import { COUNTS, type Count, headersOf, Sender } from './sender.ts';
import { spansOf } from './spans.ts';

/** bundle.sh puts it in. */
declare const __CORELANE_VERSION__: string;

interface Data {
  endpoint: string;
  headers: string;
  port: number;
  service: string;
  namespace: string;
  pod: string;
  revision: string;
  /** One float64 for each of COUNTS, which the supervisor reads. */
  counts: SharedArrayBuffer;
}

const SAY_EVERY_MS = 60_000;
const WHY_MAX = 256;

const { endpoint, headers, port, service, namespace, pod, revision, counts } = workerData as Data;
const numbers = new Float64Array(counts);
const count = (what: Count, spans: number) => {
  const index = COUNTS.indexOf(what);
  numbers[index] = (numbers[index] as number) + spans;
};
const sender = new Sender(endpoint, headersOf(headers), count);
let saidAtMs = Number.NEGATIVE_INFINITY;
sender.onFailure = (why) => {
  if (performance.now() - saidAtMs < SAY_EVERY_MS) return;
  saidAtMs = performance.now();
  parentPort?.postMessage({ failed: why.slice(0, WHY_MAX) });
};
const resource = resourceFromAttributes({
  'service.name': service,
  'service.namespace': namespace,
  'service.instance.id': pod,
  'k8s.namespace.name': namespace,
  'k8s.pod.name': pod,
  'corelane.revision': revision,
});
const origin = { resource, scope: { name: 'corelane', version: __CORELANE_VERSION__ }, pod };
/** Of the record that is to come next; a number below it is of an nginx that was started again. */
let expected: number | undefined;

const socket = createSocket('udp4');
socket.on('message', (bytes) => {
  const record = parseRecord(bytes.toString('latin1'), Date.now());
  if (!record) return count('invalid', 1);
  if (expected !== undefined && record.number > expected) count('lost', record.number - expected);
  expected = record.number + 1;
  sender.add(spansOf(record, origin));
});
socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => parentPort?.postMessage('ready'));
parentPort?.on('message', () => void sender.flush().then(() => parentPort?.postMessage('flushed')));

/**
 * Sends spans in batches, by OpenTelemetry's own exporter. Everything has a bound: what waits, a batch, the time of an
 * export, the life of a connection. What is beyond is counted and gone.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-base';

/** What has become of spans; sidecar/runtime/spans.cjs has the same order. */
export const COUNTS = ['exported', 'failed', 'full', 'lost', 'invalid'] as const;
export type Count = (typeof COUNTS)[number];

export interface Limits {
  /** Spans that wait, or are being sent. */
  queueMax: number;
  batchMax: number;
  delayMs: number;
  exportMs: number;
  connectionMs: number;
}

/** 2,048 spans are some 2 MB. */
export const LIMITS: Limits = { queueMax: 2048, batchMax: 256, delayMs: 1_000, exportMs: 10_000, connectionMs: 60_000 };
const CONNECTIONS_MAX = 2;
/** Each is one batch, so there are never more. */
const EXPORTS_MAX = 64;

/** Headers as OTEL_EXPORTER_OTLP_HEADERS has them: `NAME=VALUE,NAME=VALUE`, percent-encoded. None that is no header. */
export function headersOf(text: string): { [name: string]: string } {
  const headers: { [name: string]: string } = {};
  for (const one of text.split(',')) {
    const [, name = '', value = ''] = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=(.*)$/s.exec(one) ?? [];
    const decoded = decode(value.trim());
    if (name !== '' && /^[\t\x20-\x7e\x80-\xff]*$/.test(decoded)) headers[name] = decoded;
  }
  return headers;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** As the variable OTEL_EXPORTER_OTLP_ENDPOINT is meant: the path of the signal is appended. */
export function tracesUrl(endpoint: string): string {
  return `${endpoint.replace(/[/]+$/, '')}/v1/traces`;
}

export class Sender {
  readonly #processor: BatchSpanProcessor;
  readonly #count: (what: Count, spans: number) => void;
  readonly #queueMax: number;
  /** Why an export has failed. */
  onFailure: (why: string) => void = () => {};
  /** Spans that wait, or are being sent. */
  #pending = 0;

  /** @param count is told what has become of spans */
  constructor(
    endpoint: string,
    headers: { [name: string]: string },
    count: (what: Count, spans: number) => void,
    { queueMax, batchMax, delayMs, exportMs, connectionMs }: Limits = LIMITS,
  ) {
    this.#count = count;
    this.#queueMax = queueMax;
    const exporter = new OTLPTraceExporter({
      url: tracesUrl(endpoint),
      headers,
      timeoutMillis: exportMs,
      concurrencyLimit: EXPORTS_MAX,
      httpAgentOptions: (protocol) => agent(protocol, connectionMs),
    });
    this.#processor = new BatchSpanProcessor(this.#counting(exporter), {
      ...{ maxQueueSize: queueMax, maxExportBatchSize: batchMax },
      ...{ scheduledDelayMillis: delayMs, exportTimeoutMillis: exportMs },
    });
  }

  /** Takes spans; all of a request, or none. */
  add(spans: ReadableSpan[]): void {
    if (this.#pending + spans.length > this.#queueMax) {
      this.#count('full', spans.length);
      return;
    }
    this.#pending += spans.length;
    for (const span of spans) this.#processor.onEnd(span);
  }

  /** Sends what there is; resolves when that is done, or will not be. */
  flush(): Promise<void> {
    return this.#processor.forceFlush().catch(() => {});
  }

  #counting(exporter: OTLPTraceExporter): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done: (result: ExportResult) => void) =>
        exporter.export(spans, (result) => {
          this.#pending -= spans.length;
          this.#count(result.code === ExportResultCode.SUCCESS ? 'exported' : 'failed', spans.length);
          if (result.error) this.onFailure(printable(result.error.message));
          done(result);
        }),
      forceFlush: () => exporter.forceFlush(),
      shutdown: () => exporter.shutdown(),
    };
  }
}

/** What an endpoint says of its answer (the words beside its status) may be any bytes, and it goes into a log. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?');
}

/** No connection lives for long: an endpoint that answers one byte a second would have it for ever. */
function agent(protocol: string, connectionMs: number): HttpAgent | HttpsAgent {
  const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX };
  const made = protocol === 'http:' ? new HttpAgent(options) : new HttpsAgent(options);
  const connect = made.createConnection.bind(made) as (...args: unknown[]) => Socket;
  made.createConnection = ((...args: unknown[]) => {
    const socket = connect(...args);
    const timer = setTimeout(() => socket.destroy(), connectionMs).unref();
    socket.once('close', () => clearTimeout(timer));
    return socket;
  }) as typeof made.createConnection;
  return made;
}

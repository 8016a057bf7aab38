/** An OpenTelemetry Collector beside a pod, in its network: what it has received. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { logs, start } from '../harness/engine/docker.ts';
import { type Pod, until } from '../harness/engine/pod.ts';

const SCRIPT = fileURLToPath(new URL('../cluster/collector.sh', import.meta.url));
/** The first time on a machine it is compiled. */
export const BUILD_TIMEOUT_MS = 20 * 60_000;

/** As a pod says it: the Collector is in its network. */
export const ENDPOINT = 'http://127.0.0.1:4318';

type Value = { stringValue: string } | { intValue: string } | { boolValue: boolean };
interface Sent {
  resourceSpans: {
    resource: { attributes: { key: string; value: Value }[] };
    scopeSpans: { scope: { name: string; version?: string }; spans: SentSpan[] }[];
  }[];
}
interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: { key: string; value: Value }[];
  events?: { name: string; timeUnixNano: string }[];
  status?: { code?: number };
}

/** A span as the Collector has it. Times are in milliseconds since 1970. */
export interface Span {
  traceId: string;
  id: string;
  parentId: string;
  name: string;
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT';
  fromMs: number;
  toMs: number;
  attributes: Record<string, unknown>;
  events: { name: string; atMs: number }[];
  isError: boolean;
  resource: Record<string, unknown>;
  scope: string;
}

const KINDS = [undefined, 'INTERNAL', 'SERVER', 'CLIENT'];

let image: Promise<string> | undefined;

async function imageName(): Promise<string> {
  const { stdout } = await promisify(execFile)(SCRIPT, { timeout: BUILD_TIMEOUT_MS });
  const found = /^COLLECTOR_IMAGE=(.*)$/m.exec(stdout)?.[1];
  if (!found) throw new Error(`collector.sh names no image: ${stdout}`);
  return found;
}

export class Collector {
  readonly #container: string;

  private constructor(container: string) {
    this.#container = container;
  }

  static async start(pod: Pod): Promise<Collector> {
    image ??= imageName();
    return new Collector(await start('--network', pod.network, await image));
  }

  async spans(): Promise<Span[]> {
    const lines = (await logs(this.#container)).split('\n').filter((line) => line.startsWith('{"resourceSpans"'));
    return lines.map((line) => JSON.parse(line) as Sent).flatMap(spansOf);
  }

  /** Spans of a trace, when all of these are there, by the time at which they begin. */
  async trace(traceId: string, ...names: string[]): Promise<Span[]> {
    return until(`spans of ${traceId}: ${names}`, async () => {
      const all = (await this.spans()).filter((span) => span.traceId === traceId);
      const missing = names.filter((name) => !all.some((span) => span.name === name));
      return missing.length > 0 ? undefined : all.sort((a, b) => a.fromMs - b.fromMs || b.toMs - a.toMs);
    });
  }
}

function spansOf({ resourceSpans }: Sent): Span[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        ...{ traceId: span.traceId, id: span.spanId, parentId: span.parentSpanId ?? '', name: span.name },
        kind: KINDS[span.kind] as Span['kind'],
        ...{ fromMs: msOf(span.startTimeUnixNano), toMs: msOf(span.endTimeUnixNano) },
        attributes: valuesOf(span.attributes),
        events: (span.events ?? []).map(({ name, timeUnixNano }) => ({ name, atMs: msOf(timeUnixNano) })),
        isError: span.status?.code === 2,
        ...{ resource: valuesOf(resource.attributes), scope: scope.name },
      })),
    ),
  );
}

function msOf(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1_000_000n);
}

function valuesOf(all: { key: string; value: Value }[] = []): Record<string, unknown> {
  return Object.fromEntries(
    all.map(({ key, value }) => [key, 'intValue' in value ? Number(value.intValue) : Object.values(value)[0]]),
  );
}

/** Kubernetes Events about a RenderService, as `kubectl describe` shows them. */
import { randomUUID } from 'node:crypto';
import { MANAGER } from '../api/names.ts';
import type { ResourceMetadata } from '../api/resource.ts';
import { reference } from '../api/resource.ts';
import { collectionPath, kinds } from './kinds.ts';
import type { Rest } from './rest.ts';
import { TokenBucket } from './token-bucket.ts';

export interface EventDraft {
  type: 'Normal' | 'Warning';
  reason: string;
  /** What the operator did or tried, in one word. */
  action: string;
  note: string;
}

/** Of UTF-8. The API refuses an Event with more, so whoever may choose a long name could hide what he has done. */
const NOTE_BYTES_MAX = 1024;

/**
 * Events are objects in etcd for an hour. A resource that does wrong all the time must not fill it, nor must a thousand
 * of them: client-go bounds them by object, too (25, then one in five minutes).
 */
const EACH = { burst: 25, everyMs: 30_000 };
const ALL = { burst: 200, everyMs: 1_000 };

export interface EventRecorderOptions {
  rest: Rest;
  /** Name of this process in events. */
  instance: string;
  onError: (key: string, error: unknown) => void;
  /** One more than the bounds allow. */
  onDropped?: (key: string, event: EventDraft) => void;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #all = new TokenBucket(ALL.burst, ALL.everyMs);
  /** By key; those that have all their tokens are not kept. */
  readonly #each = new Map<string, TokenBucket>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  #mayRecord(key: string): boolean {
    for (const [other, bucket] of this.#each) if (bucket.isFull) this.#each.delete(other);
    const bucket = this.#each.get(key) ?? new TokenBucket(EACH.burst, EACH.everyMs);
    this.#each.set(key, bucket);
    return bucket.take() && this.#all.take();
  }

  /**
   * Records an event, after the write that it speaks of. Never rejects: what the event says stands in status, log or
   * metrics as well, and nothing that has been done may be forgotten because an event could not be written.
   */
  async record(metadata: ResourceMetadata, event: EventDraft): Promise<void> {
    const { rest, instance, onError, onDropped } = this.#options;
    const { namespace, name } = metadata;
    const key = `${namespace}/${name}`;
    if (!this.#mayRecord(key)) {
      onDropped?.(key, event);
      return;
    }
    const body = {
      apiVersion: kinds.event.apiVersion,
      kind: kinds.event.kind,
      metadata: { name: `${name}.${randomUUID().slice(0, 13)}`, namespace },
      eventTime: new Date().toISOString().replace('Z', '000Z'),
      reportingController: `corelane.dev/${MANAGER}`,
      reportingInstance: instance,
      regarding: { ...reference({ metadata }), namespace },
      ...event,
      note: shortened(event.note),
    };
    try {
      await rest.request('POST', collectionPath(kinds.event, namespace), { body });
    } catch (error) {
      onError(key, error);
    }
  }
}

/** As much as the API takes, without the half of a character at the end. */
function shortened(note: string): string {
  return new TextDecoder().decode(Buffer.from(note).subarray(0, NOTE_BYTES_MAX), { stream: true });
}

/** Kubernetes Events about a RenderService, as `kubectl describe` shows them. */
import { randomUUID } from 'node:crypto';
import { MANAGER } from '../api/names.ts';
import type { ResourceMetadata } from '../api/resource.ts';
import { reference } from '../api/resource.ts';
import { collectionPath, kinds } from './kinds.ts';
import type { Rest } from './rest.ts';

export interface EventDraft {
  type: 'Normal' | 'Warning';
  reason: string;
  /** What the operator did or tried, in one word. */
  action: string;
  note: string;
}

/** The API takes at most 1 KiB. */
const NOTE_LENGTH_MAX = 1024;

export class EventRecorder {
  readonly #rest: Rest;
  readonly #instance: string;
  readonly #onError: (key: string, error: unknown) => void;

  /** @param instance name of this process in events */
  constructor(rest: Rest, instance: string, onError: (key: string, error: unknown) => void) {
    this.#rest = rest;
    this.#instance = instance;
    this.#onError = onError;
  }

  /**
   * Records an event, after the write that it speaks of. Never rejects: what the event says stands in status, log or
   * metrics as well, and nothing that has been done may be forgotten because an event could not be written.
   */
  async record(metadata: ResourceMetadata, event: EventDraft): Promise<void> {
    const { namespace, name } = metadata;
    const body = {
      apiVersion: kinds.event.apiVersion,
      kind: kinds.event.kind,
      metadata: { name: `${name}.${randomUUID().slice(0, 13)}`, namespace },
      eventTime: new Date().toISOString().replace('Z', '000Z'),
      reportingController: `corelane.dev/${MANAGER}`,
      reportingInstance: this.#instance,
      regarding: { ...reference({ metadata }), namespace },
      ...event,
      note: event.note.slice(0, NOTE_LENGTH_MAX),
    };
    try {
      await this.#rest.request('POST', collectionPath(kinds.event, namespace), { body });
    } catch (error) {
      this.#onError(`${namespace}/${name}`, error);
    }
  }
}

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

/** Records an event. The caller does it after the write that the event speaks of has succeeded. */
export async function recordEvent(
  rest: Rest,
  instance: string,
  metadata: ResourceMetadata,
  event: EventDraft,
): Promise<void> {
  const { namespace, name } = metadata;
  await rest.request('POST', collectionPath(kinds.event, namespace), {
    body: {
      apiVersion: kinds.event.apiVersion,
      kind: kinds.event.kind,
      metadata: { name: `${name}.${randomUUID().slice(0, 13)}`, namespace },
      eventTime: new Date().toISOString().replace('Z', '000Z'),
      reportingController: `corelane.dev/${MANAGER}`,
      reportingInstance: instance,
      regarding: { ...reference({ metadata }), namespace },
      ...event,
      note: event.note.slice(0, NOTE_LENGTH_MAX),
    },
  });
}

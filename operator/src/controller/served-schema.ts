/**
 * What the cluster's CustomResourceDefinition knows, beside what this operator does. An API server drops what a
 * definition does not have, without a word, and the operator then works with defaults that nobody has chosen.
 */

import { GROUP, KIND, VERSION } from '../api/names.ts';
import { chosenFields, type FieldSchema, missingFields } from '../api/schema-fields.ts';
import type { Rest } from '../kube/rest.ts';

/** What every client may read that may log in: no right of the operator's own. */
const PATH = `/openapi/v3/apis/${GROUP}/${VERSION}`;
/** While it lacks something somebody waits. */
const OUTDATED_MS = 15_000;
const CURRENT_MS = 300_000;
/** A resource that is newer than what was read makes it look again, but no more often than so. */
const LOOK_AGAIN_MS = 2_000;

export interface ServedSchemaOptions {
  rest: Rest;
  /** Called when another definition is there than before, with the fields that it lacks. */
  onChange: (missing: string[]) => void;
  onError: (error: unknown) => void;
}

interface OpenApi {
  components?: { schemas?: Record<string, FieldSchema & { 'x-kubernetes-group-version-kind'?: { kind: string }[] }> };
}

export class ServedSchema {
  readonly #options: ServedSchemaOptions;
  #served: FieldSchema | undefined;
  #missing: string[] = [];
  #lookedMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: ServedSchemaOptions) {
    this.#options = options;
  }

  /** Whether the definition has been read. */
  get isKnown(): boolean {
    return this.#served !== undefined;
  }

  /** Fields that the definition lacks, as far as is known. */
  get missing(): string[] {
    return this.#missing;
  }

  /**
   * Of fields that this operator does not know, those that somebody has chosen. None as long as the definition that has
   * them has not been read: `onChange` is called when it has been.
   */
  chosen(resource: object, unknown: string[]): string[] {
    if (unknown.length === 0) return [];
    const chosen = this.#served && chosenFields(this.#served, resource, unknown);
    if (chosen === undefined && !this.#stopped) this.#lookIn(this.#lookedMs + LOOK_AGAIN_MS - performance.now());
    return chosen ?? [];
  }

  /** Looks at once, and from then on again and again; resolves after the first look. */
  async start(): Promise<void> {
    this.#lookedMs = performance.now();
    await this.#look();
    if (!this.#stopped) this.#lookIn(this.#missing.length > 0 ? OUTDATED_MS : CURRENT_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    // A process that has lost the lead must end, and a timer would keep it.
    this.#timer = setTimeout(() => void this.start(), Math.max(0, ms)).unref();
  }

  async #look(): Promise<void> {
    try {
      const { components } = await this.#options.rest.request<OpenApi>('GET', PATH);
      const served = Object.values(components?.schemas ?? {}).find((schema) =>
        schema['x-kubernetes-group-version-kind']?.some(({ kind }) => kind === KIND),
      );
      // None: the definition is being changed.
      if (!served || JSON.stringify(served) === JSON.stringify(this.#served)) return;
      this.#served = served;
      this.#missing = missingFields(served);
      this.#options.onChange(this.#missing);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}

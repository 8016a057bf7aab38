/**
 * Parts of objects as caches keep them. Most of an object of ours is asked one question only, whether it still has what
 * was applied, and as objects of JavaScript its parts take three to twenty times the room of their text. `isSubset`
 * knows both, so the answer is the same as if they were whole.
 */
import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Shorter texts are not worth a call of zlib. */
const SQUEEZED_LENGTH_MIN = 512;
/** Quick, with tables of a few kB: a template is 6 kB of text, most of it the same container once for each worker. */
const SQUEEZE = { level: 3, windowBits: 13, memLevel: 6 };

/** A value of JSON that is seldom looked at: its text, squeezed. */
export class Packed {
  readonly #text: string;
  readonly #isSqueezed: boolean;

  constructor(value: unknown) {
    const text = JSON.stringify(value);
    this.#isSqueezed = text.length >= SQUEEZED_LENGTH_MIN;
    // As a string of bytes: a Buffer would have 16 kB of zlib's behind it.
    this.#text = this.#isSqueezed ? deflateRawSync(text, SQUEEZE).toString('latin1') : text;
  }

  /** The value, another copy each time. */
  get value(): unknown {
    return JSON.parse(this.#isSqueezed ? inflateRawSync(Buffer.from(this.#text, 'latin1')).toString() : this.#text);
  }

  /** Whoever writes it down writes the value. */
  toJSON(): unknown {
    return this.value;
  }
}

/** The value itself, packed or not. */
export function unpacked(value: unknown): unknown {
  return value instanceof Packed ? value.value : value;
}

/** Of a text that nobody reads, only what tells it from another one. */
export class TextDigest {
  readonly sha256: string;

  constructor(text: string) {
    this.sha256 = sha256(text);
  }

  isOf(text: string): boolean {
    return sha256(text) === this.sha256;
  }

  /** @throws Error always: what is not there cannot be written */
  toJSON(): never {
    throw new Error('of this text only a digest is kept');
  }
}

/** Tells a value from another one; the same for a text and for its digest. */
export function digestOf(value: unknown): string {
  if (value instanceof TextDigest) return value.sha256;
  return typeof value === 'string' ? sha256(value) : (JSON.stringify(value) ?? '');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

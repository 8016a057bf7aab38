/**
 * What pods were made of, as the Deployment remembers it in an annotation: the user's spec, and what an operator made
 * of it then. So a later version of the operator can tell a change of the user's from one of its own, and leave pods
 * as they are, byte for byte (ADR 48). The spec itself is kept, not its hash: each version compares by its own rules.
 */
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { REACH, withoutLive } from '../api/live.ts';
import { parseStored, type RenderService } from '../api/resource.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { contentHash } from './objects.ts';

/** What pods were made of. */
export interface Made {
  /** The spec as the API server had it. */
  spec: unknown;
  template: V1PodTemplateSpec;
}

/** All annotations of an object have 256 KiB, and the Deployment's are copied to its ReplicaSets. */
const TEXT_LENGTH_MAX = 128 * 1024;
/** Somebody may have written the annotation. No Deployment has more than 3 MB. */
const BYTES_MAX = 3 * 1024 ** 2;
/** Three bytes of text can be an object of sixty: 8 MB of them once took 690 MB. Hundreds of workers have 50,000. */
const PARTS_MAX = 200_000;
/** Quick, and enough: most of it is the same container once for each worker. */
const QUALITY = 5;

/** As text for an annotation; undefined if there is no room for it: such pods are made anew with each operator. */
export function madeText(made: Made): string | undefined {
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY } };
  const text = brotliCompressSync(JSON.stringify(made), options).toString('base64');
  return text.length <= TEXT_LENGTH_MAX ? text : undefined;
}

/** What `madeText` has written; undefined for anything else. */
export function readMade(text: string | undefined): Made | undefined {
  if (text === undefined || text.length > TEXT_LENGTH_MAX) return undefined;
  try {
    const bytes = brotliDecompressSync(Buffer.from(text, 'base64'), { maxOutputLength: BYTES_MAX });
    if (countParts(bytes) > PARTS_MAX) return undefined;
    const json = bytes.toString();
    const { spec, template } = JSON.parse(json) as Partial<Made>;
    return spec && template?.spec ? { spec, template } : undefined;
  } catch {
    return undefined;
  }
}

/** How many values there can be in a JSON text at most. */
function countParts(json: Uint8Array): number {
  let count = 0;
  for (const byte of json) if (PART_BYTES.has(byte)) count += 1;
  return count;
}
const PART_BYTES = new Set(Buffer.from('{[,'));

/** Whether the user has changed nothing since that other pods are made of. */
export function isSameInput(made: Made, { metadata, spec }: RenderService): boolean {
  const before = parseStored({ apiVersion: '', kind: '', metadata, spec: made.spec });
  return before.ok && contentHash(rollingInput(before.renderService.spec)) === contentHash(rollingInput(spec));
}

/** What pods are made of: neither live settings nor what is not about the inside of pods. */
function rollingInput(spec: RenderServiceSpec): object {
  const fields = Object.entries(withoutLive(spec));
  return Object.fromEntries(fields.filter(([name]) => REACH[name]?.[0] !== 'operator'));
}

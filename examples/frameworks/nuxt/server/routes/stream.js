import { pieces } from '../../work.mjs';

export default defineEventHandler(() => ReadableStream.from(pieces()).pipeThrough(new TextEncoderStream()));

import { pieces } from '../../work.mjs';

export const loader = () => new Response(ReadableStream.from(pieces()).pipeThrough(new TextEncoderStream()));

import { pieces } from '../../../work.mjs';

export const GET = () => new Response(ReadableStream.from(pieces()).pipeThrough(new TextEncoderStream()));

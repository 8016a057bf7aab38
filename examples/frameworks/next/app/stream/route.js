import { pieces } from '../../work.mjs';

export const dynamic = 'force-dynamic';

export function GET() {
  return new Response(ReadableStream.from(pieces()).pipeThrough(new TextEncoderStream()));
}

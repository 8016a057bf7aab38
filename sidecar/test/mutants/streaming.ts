/** Breakages of responses that go out as they come. */
import { type Mutant, REMOVED } from './mutant.ts';

export const streaming: Mutant[] = [
  {
    name: 'the end of a shell waits for the next piece',
    breaks: 'streaming',
    file: 'nginx.conf',
    edits: [[/corelane_streaming auto/g, 'corelane_streaming never']],
    caughtBy: 'streaming: a shell of 20000 bytes',
  },
  {
    name: 'the kernel holds small pieces back on their way to another pod',
    breaks: 'streaming',
    file: 'haproxy.cfg',
    edits: [[/ {2}option http-no-delay\n/g, REMOVED]],
    caughtBy: 'streaming: what a worker of another pod writes',
  },
  {
    name: 'a head waits for its body',
    breaks: 'streaming',
    file: 'streaming.c',
    edits: [[/p->preread_size == 0 && /g, '0 && ']],
    caughtBy: 'streaming: a head comes before there is a body',
  },
  {
    name: 'what its client could not take at once waits for the next piece',
    breaks: 'streaming',
    file: 'streaming.c',
    edits: [[/if \(r->connection->buffered && /g, 'if (0 && ']],
    caughtBy: 'streaming: shells beyond what sockets hold',
  },
  {
    name: 'a body that ends with its connection waits for its end',
    breaks: 'streaming',
    file: 'streaming.c',
    edits: [[/p->length != 0 && !p->upstream_eof/g, 'p->length > 0']],
    caughtBy: 'streaming: a body that ends with its connection',
  },
  {
    name: 'a body that ends with its connection never ends',
    breaks: 'streaming',
    file: 'streaming.c',
    edits: [[/ && !p->upstream_eof/g, REMOVED]],
    caughtBy: 'streaming: a body that ends with its connection',
  },
  {
    name: 'the pauses of a stream are laid to its client',
    breaks: 'I3',
    file: 'streaming.c',
    edits: [[/^ {2}begin_turn\(ctx, p\);\n/gm, '  if (0) begin_turn(ctx, p);\n']],
    caughtBy: 'streaming: a stream that was quiet',
  },
  {
    name: 'a client may stop reading a stream for as long as it goes on',
    breaks: 'I4',
    file: 'places.c',
    edits: [[/if \(reads_nothing\(place\)\)/g, 'if (0 && reads_nothing(place))']],
    caughtBy: 'streaming: a client that stops reading a stream',
  },
  {
    name: 'only event streams give their slot back',
    breaks: 'streaming',
    file: 'without-slot.cjs',
    edits: [[/\(seen\.isEventStream \|\| .*\) && hasMemory/g, 'seen.isEventStream && hasMemory']],
    caughtBy: 'streaming: answers that come in pieces',
  },
  {
    name: 'HAProxy does not hear of slots that are given back',
    breaks: 'streaming',
    file: 'questions.cjs',
    edits: [[/1 \+ withoutSlot\(\)/g, '1']],
    caughtBy: 'streaming: event streams: two workers have four',
  },
  {
    name: 'a worker gets no request in place of its streams',
    breaks: 'streaming',
    file: 'moving-limits.lua',
    edits: [[/ \+ without_slot\.of\(name\)/g, REMOVED]],
    caughtBy: 'streaming: event streams: two workers have four',
  },
  {
    name: 'no request may go on without a slot',
    breaks: 'streaming',
    file: 'without-slot.lua',
    edits: [[/without_slot\.max = settings/g, 'without_slot.least = settings']],
    caughtBy: 'streaming: event streams: two workers have four',
  },
];

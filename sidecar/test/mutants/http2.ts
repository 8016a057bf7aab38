/** Breakages of HTTP/2: what holds for a connection of HTTP/1 must hold for a stream. */
import type { Mutant } from './mutant.ts';

const breakages: Mutant[] = [
  {
    name: 'a stream that is given up at once is begun all the same',
    breaks: 'I2',
    file: 'places.c',
    edits: [
      [/r->stream != NULL \? corelane_begin_stream\(r\) : NGX_DECLINED/g, '(corelane_begin_stream(r), NGX_DECLINED)'],
    ],
    caughtBy: 'http2: a stream that is given up reaches nobody',
  },
  {
    name: 'what lies in the socket of a client that has gone is asked for',
    breaks: 'I2',
    file: 'http2.c',
    edits: [[/if \(c->read->pending_eof\) \{/g, 'if (0) {']],
    caughtBy: 'http2-hostile: what a client has left behind',
  },
  {
    name: 'a stream that says it has no body, and does not end, keeps its place',
    breaks: 'I3',
    file: 'places.c',
    edits: [[/r->stream != NULL && !r->stream->in_closed \? BODY : 0/g, '0']],
    caughtBy: 'http2-hostile: bodies that do not come, and are said to be none',
  },
  {
    name: 'streams of a connection that takes nothing keep their places',
    breaks: 'I3',
    file: 'http2.c',
    edits: [
      [
        /if \(cut\(r\) && stuck_ms\(c, h2c\) >= STUCK_MS && !h2c->blocked\) reset\(c\);/g,
        '(void) cut(r); (void) stuck_ms(c, h2c);',
      ],
    ],
    caughtBy: 'http2-hostile: connections that take nothing',
  },
  {
    name: 'answers wait for clients that do not read them, however many',
    breaks: 'I3',
    file: 'http2.c',
    edits: [[/#define UNREAD_FRAMES_MAX [0-9]+/g, '#define UNREAD_FRAMES_MAX 1000000']],
    caughtBy: 'http2-hostile: what answers pings is not kept',
  },
  {
    name: 'any number of connections',
    breaks: 'I3',
    file: 'nginx.conf',
    edits: [[/corelane_http2_connections [0-9]+/g, 'corelane_http2_connections 20000']],
    caughtBy: 'http2-hostile: more connections than memory is for',
  },
  {
    name: 'nginx reads a connection until there is no more',
    breaks: 'I3',
    file: 'http2.c',
    edits: [
      [/if \(has_read == c\) \{/g, 'if (0) {'],
      [/ngx_recv\(c, to, part_of\(h2c, size\)\)/g, '(part_of(h2c, size), ngx_recv(c, to, size))'],
    ],
    caughtBy: 'http2-hostile: who asks for much at once',
  },
  {
    name: 'a connection of HTTP/2 may ask for answers without a place for ever',
    breaks: 'I3',
    file: 'answers.c',
    edits: [[/if \(r->stream != NULL\) corelane_close_gently\(r\);/g, '']],
    caughtBy: 'http2-hostile: who asks for pings again and again',
  },
  {
    name: 'a stream may be about its connection',
    breaks: 'http2',
    file: 'size.c',
    edits: [[/ \|\| \(r->stream != NULL && corelane_is_of_connection\(&headers\[i\]\)\)/g, '']],
    caughtBy: 'http2: 400 to Upgrade',
  },
  {
    name: 'a response may be about its connection',
    breaks: 'http2',
    file: 'http2.c',
    edits: [[/headers\[i\]\.hash = 0;/g, '']],
    caughtBy: 'http2: what is about a connection is in no response',
  },
  {
    name: 'what nginx itself adds about the connection stays',
    breaks: 'http2',
    file: 'http2.c',
    edits: [[/ngx_http_top_header_filter = header_filter;/g, '(void) header_filter;']],
    caughtBy: 'http2: a pod that stops says GOAWAY',
  },
  {
    name: 'who is told to go loses what it asks for at the same time',
    breaks: 'I2',
    file: 'http2.c',
    edits: [
      [
        /ngx_post_event\(&client->leave, &ngx_posted_events\);/g,
        '(void) client; h2c->connection->close = 1; ngx_post_event(h2c->connection->read, &ngx_posted_events);',
      ],
    ],
    caughtBy: 'http2-hostile: who is told to go has all',
  },
  {
    name: 'clients of a pod that stops keep their connections',
    breaks: 'drain',
    file: 'http2.c',
    edits: [[/if \(closes\) corelane_close_gently\(r\);/g, '(void) closes;']],
    caughtBy: 'http2: a pod that stops says GOAWAY',
  },
];

export const http2 = breakages.map((one): Mutant => ({ ...one, name: `HTTP/2: ${one.name}` }));

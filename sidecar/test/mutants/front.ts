/** Breakages of what the front does beside: heads, compression, the PROXY protocol. */
import { type Mutant, REMOVED } from './mutant.ts';

export const front: Mutant[] = [
  {
    name: 'HAProxy counts the headers of a request',
    breaks: 'heads',
    file: 'haproxy.cfg',
    edits: [[/ {2}tune\.http\.maxhdr [0-9]+\n/g, REMOVED]],
    caughtBy: 'heads: 200 headers reach the worker',
  },
  {
    name: 'a head has any number of lines, each of which costs memory',
    breaks: 'I3',
    file: 'nginx.conf',
    edits: [[/max_headers [0-9]+/g, 'max_headers 1000']],
    caughtBy: 'heads: too many lines that cost more memory',
  },
  {
    name: 'bytes beyond ASCII go on as they are',
    breaks: 'heads',
    file: 'target.c',
    edits: [[/others \+= !IS_ASCII\(target->data\[i\]\)/g, 'others += 0 && !IS_ASCII(target->data[i])']],
    caughtBy: 'heads: bytes beyond ASCII in a target: UTF-8',
  },
  {
    name: 'a head that HAProxy does not take has no reason',
    breaks: 'heads',
    file: 'size.c',
    edits: [[/\(14 \* 1024\)/g, '(64 * 1024)']],
    caughtBy: 'heads: a head of 14 kB reaches the worker',
  },
  {
    name: 'what compresses keeps the end of a shell',
    breaks: 'compression',
    file: 'streaming.c',
    edits: [[/last->buf->flush = 1;/g, 'last->buf->flush = 0;']],
    caughtBy: 'compression: a shell of 300 bytes',
  },
  {
    name: 'what compresses keeps the end of what came from the file',
    breaks: 'compression',
    file: 'streaming.c',
    edits: [[/rc != NGX_ERROR && flush \?/g, 'rc != NGX_ERROR && flush && 0 ?']],
    caughtBy: 'compression: so can what goes through a file',
  },
  {
    name: 'no-transform is transformed',
    breaks: 'compression',
    file: 'transform.c',
    edits: [[/r->gzip_ok = 0;/g, 'r->gzip_ok = 1;']],
    caughtBy: 'compression: not for what nobody may transform',
  },
  {
    name: 'caches are not told that there are variants',
    breaks: 'compression',
    file: 'nginx.conf',
    edits: [[/^ {2}gzip_vary on;\n/gm, REMOVED]],
    caughtBy: 'compression: a page of 100 kB',
  },
  {
    name: 'anybody is believed to be a balancer',
    breaks: 'forwarded',
    file: 'proxy-protocol.c',
    edits: [[/ \|\| ngx_cidr_match\(c->sockaddr, balancers\) != NGX_OK/g, ' || (0 && balancers)']],
    caughtBy: 'proxy-protocol: whom nobody believes',
  },
  {
    name: 'the client is the balancer',
    breaks: 'forwarded',
    file: 'proxy-protocol.c',
    edits: [[/^ {4}take_address\(c, conf->balancers\);\n/gm, '    if (0) take_address(c, conf->balancers);\n']],
    caughtBy: 'proxy-protocol: version 1',
  },
  {
    name: 'a PROXY header must come in one piece',
    breaks: 'forwarded',
    file: 'proxy-protocol.c',
    edits: [[/\? INCOMPLETE : OTHER;/g, '? OTHER : OTHER;']],
    caughtBy: 'proxy-protocol: a header in pieces',
  },
  {
    name: 'what strangers send in place of a PROXY header is in the log as it came',
    breaks: 'I7',
    file: 'proxy-protocol.c',
    edits: [[/#define PRINTABLE\(byte\) .*/g, '#define PRINTABLE(byte) ((byte) != LF)']],
    caughtBy: 'proxy-protocol: codes that a terminal obeys do not come into the log: in a header',
  },
];

/** What nobody has compressed. Our module flushes what is to be seen at once, and keeps away from `no-transform`. */
import type { Lines } from '../directives.ts';
import type { Compression } from '../model/compression.ts';
import { whole } from '../safe.ts';

/** Beside text/html. No Server-Sent Events: each costs more bytes than it saves. */
const TYPES = [
  ...['text/css', 'text/javascript', 'text/plain', 'text/xml', 'text/x-component', 'text/markdown'],
  ...['application/javascript', 'application/json', 'application/ld+json', 'application/manifest+json'],
  ...['application/xml', 'application/rss+xml', 'application/atom+xml', 'application/xhtml+xml', 'image/svg+xml'],
];

/** Directives of `http`. */
export function compressed({ level, bytesMin, windowBytes, hashBytes, buffers, bufferBytes }: Compression): Lines {
  return [
    'gzip on;',
    `gzip_comp_level ${whole(level, 'compression.level')};`,
    `gzip_min_length ${whole(bytesMin, 'least to compress')};`,
    `gzip_types ${TYPES.join(' ')};`,
    'gzip_vary on;',
    '# Also of a client behind a proxy that says so in Via.',
    'gzip_proxied any;',
    '# Memory of each response.',
    `gzip_window ${whole(windowBytes, 'window')};`,
    `gzip_hash ${whole(hashBytes, 'hash')};`,
    `gzip_buffers ${whole(buffers, 'buffers')} ${whole(bufferBytes, 'buffer')};`,
  ];
}

/** Who the client is, and what a worker gets to know of it. What a proxy says counts if its address is trusted. */
import { block, type Lines, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { word } from '../safe.ts';
import { HOST } from './hosts.ts';

/** The real address, and what is sent on as X-Forwarded-For, -Proto and -Host. */
export function clients({ proxyProtocol, trusted }: DataPlaneModel): Lines {
  const ranges = trusted.map((range) => word(range, 'forwarded.trust'));
  return [
    when(
      proxyProtocol,
      "# Our module: for these a connection's address is the one in its PROXY header, before anybody looks at it.",
      ranges.map((range) => `corelane_balancer ${range};`),
    ),
    "# $remote_addr is from here on the last address in X-Forwarded-For that is no trusted proxy's; $realip_remote_addr is the other",
    '# end of the connection.',
    ranges.map((range) => `set_real_ip_from ${range};`),
    'real_ip_header X-Forwarded-For;',
    'real_ip_recursive on;',
    '# No default: nginx would warn of a range that is all addresses.',
    block(
      'geo $realip_remote_addr $corelane_trusted',
      ranges.map((range) => `${range} 1;`),
    ),
    block('map $corelane_trusted $corelane_untrusted', 'default 1;', '1 "";'),
    "# A trusted proxy's list passes as it came, and nginx adds nothing: the application counts the proxies that it counted before.",
    '# The address 0.0.0.0 alone marks a shared render (nginx/cache.ts): no client may send it. HAProxy strips tabs, too.',
    block(
      'map "$corelane_untrusted|$http_x_forwarded_for" $corelane_forwarded_for',
      'default $realip_remote_addr;',
      '"~^\\|[\\s,]*0\\.0\\.0\\.0[\\s,]*$" $realip_remote_addr;',
      '"~^\\|(?<corelane_chain>.*[^\\s,].*)$" $corelane_chain;',
    ),
    '# One word for readers that know no lists. The first value is about the client.',
    block(
      'map "$corelane_untrusted|$http_x_forwarded_proto" $corelane_proto',
      'default $scheme;',
      '"~*^\\|\\s*(?:https|wss)\\s*(?:,|$)" https;',
    ),
    block(
      'map "$corelane_untrusted|$http_x_forwarded_host" $corelane_forwarded_host',
      'default $corelane_host;',
      `"~^\\|(?<corelane_hosts>${HOST}(?: *, *${HOST}){0,7})$" $corelane_hosts;`,
    ),
  ];
}

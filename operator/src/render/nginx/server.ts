/** The `server` of all requests: its locations, and the one that answers pings. */
import { block, given, type Lines, MADE_BY_CORELANE, paragraphs, text, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole, word } from '../safe.ts';
import { ASSET_VARIABLES, assetLocations, CLOSES_IN_DRAIN, DRAINS, siteAssets } from './assets.ts';
import { CACHE_VARIABLES, cacheLocations, LEADS_TO_CACHE, TELLS_REASON } from './cache.ts';
import { errorLocations, errorPages } from './errors.ts';
import { shellLocations } from './fallback.ts';
import { toHaproxy } from './upstream.ts';

/** Directive `listen` for one family: of an `address` with its colon, or of IPv4. */
function listen({ limits, ports, proxyProtocol }: DataPlaneModel, address = '', ...further: string[]): string {
  const sendBuffer = `sndbuf=${whole(limits.sendBufferBytes, 'send buffer')}`;
  return `${words(`listen ${address}${whole(ports.http, 'port')} default_server backlog=4096`, sendBuffer, proxyProtocol && 'proxy_protocol', ...further)};`;
}

/** File listen-ipv6.conf: in nginx.conf it would be fatal where the kernel has no IPv6. */
export function renderListenIpv6(model: DataPlaneModel): string {
  return text([MADE_BY_CORELANE, listen(model, '[::]:', 'ipv6only=on')]);
}

/** What sends a request to a worker. */
function toWorkers(model: DataPlaneModel): Lines {
  return [
    block(DRAINS, 'return 418;'),
    '# Of a pod that drains by now; beside nginx\' own "keep-alive", over which "close" prevails.',
    'add_header Connection $upstream_http_x_corelane_connection always;',
    given(model.cache, () => TELLS_REASON),
    toHaproxy(model),
  ];
}

/** The block. */
export function server(model: DataPlaneModel): Lines {
  const { accessLog, assets, cache, pingPath } = model;
  const alone = toWorkers(model);
  const page = [when(cache !== undefined, LEADS_TO_CACHE), alone];
  return [
    '# The entry point puts the twin of `listen` there, listen-ipv6.conf, where there is IPv6.',
    block(
      'server',
      paragraphs(
        [listen(model), 'include /tmp/listen-ipv6*.conf;', 'server_name _;'],
        [
          when(assets !== undefined, ASSET_VARIABLES),
          when(assets !== undefined || cache !== undefined, CLOSES_IN_DRAIN),
          given(cache, () => CACHE_VARIABLES),
        ],
        errorPages(model),
        block(
          `location = ${word(pingPath, 'ping.path')}`,
          'access_log off;',
          'corelane_counts nothing;',
          'default_type text/plain;',
          block(DRAINS, 'add_header X-Corelane-Error draining always;', 'return 503 "draining\\n";'),
          'return 200 "ok\\n";',
        ),
        given(assets, (all) => siteAssets(all, accessLog)) || block('location /', page),
        ...(assets ? assetLocations(assets, page, alone, accessLog) : []),
        [
          '# Clients are told to come back with a new connection, which leads to another pod.',
          block('location @corelane_draining', 'keepalive_timeout 0;', toHaproxy(model)),
        ],
        ...(cache ? cacheLocations(cache, model, alone) : []),
        ...errorLocations(model),
        ...(model.fallback ? shellLocations(model.fallback) : []),
      ),
    ),
  ];
}

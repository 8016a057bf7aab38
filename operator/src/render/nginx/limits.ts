/** How many requests nginx may have at a time: of all clients, with bodies, and of one client. */
import { DRAIN_MOUNT_PATH, LIVE_FILE, LIVE_MOUNT_PATH } from '../../api/names.ts';
import { block, given, type Lines, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ms, whole } from '../safe.ts';

/** What is counted, and the zones of `limits`. Goes into `http`. */
export function limitZones({ body, classes, limits, limitsClients, timeouts, webSockets }: DataPlaneModel): Lines {
  const pastClient = limitsClients ? '$corelane_past_client' : 'past';
  const webSocket = webSockets ? '$corelane_websocket' : '';
  return [
    '# Our module counts requests and their bodies. Where one more comes, the slowest client gives up its place; where nobody is slow,',
    '# the one that comes is refused. It looks at those only that limit_conn lets pass.',
    '# Those that are answered without a place (pings, errors, "full"), until their clients have gone: beyond it the oldest go.',
    `corelane_answers ${whole(limits.answers, 'answers')};`,
    '# What is not idle: beyond it connections with half a head go.',
    `corelane_busy_connections ${whole(limits.busyConnections, 'busy connections')};`,
    `corelane_requests ${whole(limits.requests, 'requests')};`,
    `corelane_bodies ${whole(limits.bodies, 'bodies')};`,
    '# Beyond what is kept in memory, or of unknown length.',
    `corelane_large_bodies ${whole(limits.largeBodies, 'large bodies')};`,
    `corelane_body_memory ${whole(body.memoryBytes, 'buffering.request.memory')};`,
    '# Each costs a multiple of its bytes.',
    `corelane_large_heads ${whole(limits.largeHeads, 'large heads')};`,
    '# So many clients may hold a render slot, or a place of a class, because they read slowly. If there are more, those that have held it',
    '# for longer than this time are cut, the slowest first.',
    `corelane_held_slots ${whole(limits.heldSlots, 'held slots')};`,
    `corelane_held_classes ${whole(limits.heldClasses, 'held places of classes')};`,
    `corelane_worker_held_max ${ms(timeouts.workerMs, 'timeouts.render')};`,
    '# The drain hook makes it.',
    `corelane_draining_file ${DRAIN_MOUNT_PATH}/begun;`,
    when(limitsClients, PER_CLIENT_ZONES),
    given(limits.perClient, (perClient) => [
      '# How many one client may have is a live setting, and no more than this.',
      `corelane_live ${LIVE_MOUNT_PATH}/${LIVE_FILE};`,
      `corelane_clients ${whole(perClient, 'limits.perClient.requests')};`,
    ]),
    when(webSockets, webSocketZone(classes !== undefined)),
    'limit_conn_log_level info;',
    'limit_conn_status 420;',
    // Who has refused a request: the module says so, and limit_conn leaves a trace.
    block(
      `map "$corelane_no_place|${pastClient}|${webSocket}" $corelane_full`,
      'default client-limit;',
      '"~^(?<corelane_places>[a-z-]+)\\|" $corelane_places;',
      '"|past|websocket" websockets-full;',
    ),
  ];
}

/**
 * One address, or 64 bits of IPv6, which is what one customer of a provider has at least. A proxy that listens for both
 * families may tell an IPv4 address as an IPv6 one (::ffff:192.0.2.1): 64 bits of those would be all clients there are.
 */
const PER_CLIENT_ZONES: Lines = [
  block(
    'map $binary_remote_addr $corelane_client',
    'default $binary_remote_addr;',
    '"~(?s)^\\x00{10}\\xff\\xff(?<corelane_ipv4>.{4})$" $corelane_ipv4;',
    '"~(?s)^(?<corelane_network>.{8}).{8}$" $corelane_network;',
  ),
  'limit_conn_zone $corelane_client zone=clients:8m;',
  '# The keys are looked at in the order of the limits (see server), each only if all before let the request pass. This one counts nothing:',
  '# it leaves a trace.',
  block('map past $corelane_nobody', '"~(?<corelane_past_client>past)" "";'),
  'limit_conn_zone $corelane_nobody zone=nobody:64k;',
];

/** Those of a class have its places, which HAProxy counts. */
function webSocketZone(hasClasses: boolean): Lines {
  return [
    hasClasses
      ? block('map "$corelane_served_as|$http_upgrade" $corelane_websocket', '"~*^[|]websocket$" websocket;')
      : block('map $http_upgrade $corelane_websocket', '~*^websocket$ websocket;'),
    'limit_conn_zone $corelane_websocket zone=websockets:64k;',
  ];
}

/** The limits themselves. Go into `server`. */
export function requestLimits({ limits, webSockets }: DataPlaneModel): Lines {
  return [
    given(limits.perClient, (perClient) => [
      `limit_conn clients ${whole(perClient, 'limits.perClient.requests')};`,
      'limit_conn nobody 1;',
    ]),
    when(webSockets, `limit_conn websockets ${whole(limits.webSockets, 'webSockets.maxPerWorker')};`),
  ];
}

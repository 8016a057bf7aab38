/** One host for all who read the request: what nginx, HAProxy and a worker take for it must not differ. */
import { block, type Lines } from '../directives.ts';

/** Name or address, and port, which may be empty (RFC 3986): nothing that anybody could read as something else. */
export const HOST = '(?:[A-Za-z0-9._-]{1,253}|\\[[0-9A-Fa-f:.]{2,45}\\])(?::[0-9]{0,5})?';

/** Maps that find the host, and whether it is one. */
export const HOSTS: Lines = [
  '# GET http://host/path HTTP/1.1',
  block(
    'map $request $corelane_authority',
    '"~^[^ ]+ +[A-Za-z][A-Za-z0-9+.-]*://(?<corelane_url_host>[^/?# ]*)" $corelane_url_host;',
  ),
  block(
    'map "$http_host|$corelane_authority" $corelane_bad_request',
    'default 1;',
    '"|" "";',
    `"~*^(${HOST})\\|\\1?$" "";`,
    `"~^\\|${HOST}$" "";`,
  ),
  '# An HTTP/1.0 client need not send one, Node.js insists on it.',
  block('map $corelane_authority $corelane_missing_host', 'default $corelane_authority;', '"" localhost;'),
  block('map $http_host $corelane_host', 'default $http_host;', '"" $corelane_missing_host;'),
];

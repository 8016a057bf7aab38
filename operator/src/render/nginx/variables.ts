/** The name of a request, and who has made a 502: variables that the access log and error pages share. */
import { block, type Lines } from '../directives.ts';

/** Maps. */
export const VARIABLES: Lines = [
  '# A request id is taken from the client if it is sane.',
  block(
    'map $http_x_request_id $corelane_request_id',
    'default $request_id;',
    '"~^(?!\\.\\.?$)[A-Za-z0-9._-]{1,128}$" $http_x_request_id;',
  ),
  '# Connect time "-": HAProxy itself was not there.',
  block(
    'map "$upstream_connect_time|$upstream_bytes_received" $corelane_bad_gateway',
    'default worker-died;',
    '"~^\\|" proxy-down;',
    '# There was an answer, whose head nginx does not take.',
    '"~[ |][1-9][0-9]*$" bad-response;',
    '# A kept connection that ends gives one try more, for which no server is left.',
    '"~, [0-9.]+, -\\|" worker-died;',
    '"~-\\|" proxy-down;',
  ),
];

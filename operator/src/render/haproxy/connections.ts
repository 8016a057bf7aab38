/** Which connections are kept, between HAProxy's stages and to workers. */

/**
 * For a stage. A connection between the stages ends with the one that opened it, which does not let it be idle for so
 * long.
 */
export const KEEPS_CLIENTS = ['no option http-server-close', 'timeout http-keep-alive 1h'];

/**
 * For a backend. A connection that ends just as it is used again answers nothing, and HAProxy takes for granted that
 * its client sends the request again: nginx does, to replay.sock, where it is decided what may come of that. "safe"
 * keeps connections to requests that came over one themselves: the first of a connection from the stage before, a
 * peer's request or a second try, goes over a new one, whose end HAProxy answers. Those to workers are kept only
 * where the runtime sees to it that a response is as long as it says: what is left of one would be the beginning of
 * the next.
 */
export const KEEPS_SERVERS = ['no option http-server-close', 'http-reuse safe'];

/** For servers that are another one each time, or whose connections are counted. */
export const KEPT_NEVER = 'pool-max-conn 0';

/** A program that authenticates connections: HAProxy would tie all that come after on this one to that worker. */
export const AUTHENTICATES = 'http-after-response set-header Connection close if { status 401 407 }';

/**
 * The name of a request that nginx has given it. Connections are named after it so that Lua sees who gets the
 * request.
 */
export const REQUEST = 'req.hdr(X-Corelane-Request)';

/** For a backend whose connections are named by `sentTo`. */
export const KNOWS_REQUEST = `http-request set-var(txn.request) ${REQUEST}`;

/**
 * The name of a connection to a worker, which tells Lua when that worker (its place in the pod) was given which
 * request: to the millisecond, because of a request that may be older than itself a supervisor knows nothing.
 * @param fresh a variable with the name of a connection that nobody has used, if one may be needed
 */
export function sentTo(index: number, fresh?: string): string {
  const request = ['date(0,ms)', 'concat(/,txn.request)', ...(fresh ? [`concat(/,${fresh})`] : [])].join(',');
  return `pool-conn-name ${request},lua.corelane_sent(${index})`;
}

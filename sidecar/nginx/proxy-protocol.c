/*
 * The PROXY protocol of a load balancer that passes bytes on: it says before them who its client is. nginx reads it;
 * here the address becomes that of the connection, if the connection comes from a proxy that is believed. So all that
 * follows (who is trusted in its headers, limits, logs) is about whom the balancer has named.
 */
#include "corelane.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define WORD "PROXY "
/* Length of a header of version 2 without addresses, and of the longest one of version 1. */
#define V2_BYTES 16
#define V1_BYTES_MAX 107

enum { INCOMPLETE, HEADER, OTHER };

/* What nginx would call, the same for all connections. */
static ngx_event_handler_pt wait_for_request;

static ngx_uint_t v1(u_char *bytes, size_t length) {
  size_t i;

  for (i = 0; i < length && i < V1_BYTES_MAX; i++) {
    if (bytes[i] == LF) {
      return bytes[i - 1] == CR ? HEADER : OTHER;
    }
  }
  return i < V1_BYTES_MAX ? INCOMPLETE : OTHER;
}

/* One that says more than nginx takes would never be complete, and what follows it would stay in the kernel. */
static ngx_uint_t v2(u_char *bytes, size_t length, size_t max) {
  size_t whole;

  if (length < V2_BYTES) return INCOMPLETE;
  whole = V2_BYTES + (size_t) (bytes[V2_BYTES - 2] << 8 | bytes[V2_BYTES - 1]);
  if (whole > max) return OTHER;
  return length >= whole ? HEADER : INCOMPLETE;
}

static ngx_uint_t look_at(u_char *bytes, size_t length, size_t max) {
  if (ngx_memcmp(bytes, WORD, ngx_min(length, sizeof(WORD) - 1)) == 0) return v1(bytes, length);
  if (ngx_memcmp(bytes, SIGNATURE, ngx_min(length, sizeof(SIGNATURE) - 1)) == 0) return v2(bytes, length, max);
  return OTHER;
}

/* One line a second, whoever comes: nginx would write one for each connection. */
static void tell_log(ngx_connection_t *c, size_t max) {
  static time_t told;

  if (told != ngx_time()) {
    told = ngx_time();
    ngx_log_error(NGX_LOG_WARN, c->log, 0, "closed: no PROXY header of at most %uz bytes", max);
  }
}

/* It would write what it cannot read into the log, and a terminal would obey the codes in it. */
static u_char *read_quietly(ngx_connection_t *c, u_char *bytes, size_t length) {
  ngx_uint_t level = c->log->log_level;
  u_char *rest;

  c->log->log_level = NGX_LOG_CRIT;
  rest = ngx_proxy_protocol_read(c, bytes, bytes + length);
  c->log->log_level = level;
  return rest;
}

/* Whoever is not believed stays who he is, and so does a balancer that asks for itself (without an address). */
static void take_address(ngx_connection_t *c, ngx_array_t *balancers) {
  ngx_proxy_protocol_t *header = c->proxy_protocol;
  ngx_addr_t addr;
  u_char *text;

  if (header == NULL || header->src_addr.len == 0 || ngx_cidr_match(c->sockaddr, balancers) != NGX_OK) {
    return;
  }
  text = ngx_pnalloc(c->pool, NGX_SOCKADDR_STRLEN);
  if (text == NULL || ngx_parse_addr(c->pool, &addr, header->src_addr.data, header->src_addr.len) != NGX_OK) {
    return;
  }
  ngx_inet_set_port(addr.sockaddr, header->src_port);
  c->sockaddr = addr.sockaddr;
  c->socklen = addr.socklen;
  /* One address has many spellings. */
  c->addr_text.len = ngx_sock_ntop(c->sockaddr, c->socklen, text, NGX_SOCKADDR_STRLEN, 0);
  c->addr_text.data = text;
}

/*
 * Looks at the first bytes without taking them. nginx itself would close a connection whose header comes in two pieces,
 * and write what it cannot read into its log.
 */
static ngx_uint_t peek(ngx_connection_t *c) {
  ngx_http_connection_t *hc = c->data;
  corelane_conf_t *conf = ngx_http_get_module_main_conf(hc->conf_ctx, ngx_http_corelane_module);
  ngx_http_core_srv_conf_t *core = ngx_http_get_module_srv_conf(hc->conf_ctx, ngx_http_core_module);
  u_char bytes[NGX_PROXY_PROTOCOL_MAX_HEADER];
  /* What nginx reads at once: it does not wait for more of a header. */
  size_t max = ngx_min(sizeof(bytes), core->client_header_buffer_size);
  ssize_t length = recv(c->fd, bytes, max, MSG_PEEK);
  ngx_uint_t kind;

  if (length == -1 && ngx_socket_errno == NGX_EAGAIN) return INCOMPLETE;
  if (length <= 0) return OTHER;
  kind = look_at(bytes, length, max);
  if (kind == HEADER && read_quietly(c, bytes, length) == NULL) kind = OTHER;
  if (kind == HEADER) take_address(c, conf->balancers);
  if (kind == OTHER) tell_log(c, max);
  return kind == INCOMPLETE && c->read->pending_eof ? OTHER : kind;
}

static void wait_for_header(ngx_event_t *read) {
  ngx_connection_t *c = read->data;
  ngx_uint_t kind = read->timedout || c->close ? OTHER : peek(c);

  if (kind == INCOMPLETE) {
    read->ready = 0;
    if (ngx_handle_read_event(read, 0) == NGX_OK) return;
    kind = OTHER;
  }
  c->close |= kind == OTHER;
  read->handler = wait_for_request;
  read->handler(read);
}

void corelane_expect_proxy_header(ngx_connection_t *c) {
  ngx_http_connection_t *hc = c->data;

  if (!c->destroyed && hc->addr_conf->proxy_protocol) {
    wait_for_request = c->read->handler;
    c->read->handler = wait_for_header;
  }
}

char *corelane_set_balancer(ngx_conf_t *cf, ngx_command_t *command, void *data) {
  corelane_conf_t *conf = data;
  ngx_cidr_t *cidr = ngx_array_push(conf->balancers);
  ngx_str_t *range = (ngx_str_t *) cf->args->elts + 1;

  return cidr != NULL && ngx_ptocidr(range, cidr) != NGX_ERROR ? NGX_CONF_OK : "has no range of addresses";
}

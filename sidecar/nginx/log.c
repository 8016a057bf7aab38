/*
 * What nginx' logs have of a request (docs/access-log.md). Values in a target are codes, tokens and e-mail addresses:
 * names stay, values go. The access log has variables for it. The error log has a handler in place of nginx' own, which
 * writes target, address and Referer as the client sent them.
 */
#include "corelane.h"

#define TARGET_BYTES 512
/* A longer name may be a value. */
#define NAME_BYTES 64
/* Not controls, and nothing beyond ASCII: a terminal obeys some of them. */
#define IS_PRINTABLE(byte) ((byte) >= ' ' && (byte) < 0x7f)

/* An encoded bracket: filter%5Bsize%5D. */
static ngx_uint_t is_bracket(u_char *from, u_char *end) {
  return end - from >= 3 && from[0] == '%' && from[1] == '5' && ngx_strchr("BDbd", from[2]) != NULL;
}

static ngx_uint_t is_of_name(u_char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || ngx_strchr("_-.:$[]", c) != NULL;
}

static ngx_uint_t is_name(u_char *from, u_char *end) {
  if (end - from > NAME_BYTES) return 0;
  while (from < end) {
    if (is_bracket(from, end)) from += 3;
    else if (is_of_name(*from)) from++;
    else return 0;
  }
  return 1;
}

static u_char *add(u_char *to, u_char *last, u_char *from, u_char *end) {
  size_t length = ngx_min(end - from, last - to);

  return ngx_cpymem(to, from, length);
}

/*
 * "name=-"; "-=-" if the name may be a value. Without a value all of it may be one: "-". A token in base64 may end in
 * "=", too.
 */
static u_char *add_parameter(u_char *to, u_char *last, u_char *from, u_char *end) {
  static u_char hidden[] = "-", has_value[] = "=-";
  u_char *name_end = from, *value;

  if (from == end) return to;
  while (name_end < end && *name_end != '=') name_end++;
  for (value = name_end; value < end && *value == '='; value++) /* void */;
  if (value == end) return add(to, last, hidden, hidden + 1);
  to = is_name(from, name_end) ? add(to, last, from, name_end) : add(to, last, hidden, hidden + 1);
  return add(to, last, has_value, has_value + 2);
}

/* Parameters are in a query, and behind a ";" of a path. */
static ngx_uint_t is_mark(u_char c, ngx_uint_t in_query) {
  return in_query ? c == '&' : c == '/' || c == ';' || c == '?' || c == '#';
}

u_char *corelane_write_target(u_char *to, u_char *last, ngx_str_t *target, ngx_uint_t query) {
  u_char *pos = target->data, *end = pos, *part, mark = '/';
  ngx_uint_t in_query = 0;

  last = ngx_min(last, to + TARGET_BYTES);
  /* The target of a request that is none is as it came. */
  while (end < target->data + target->len && IS_PRINTABLE(*end)) end++;
  if (query == CORELANE_LOG_FULL) return add(to, last, pos, end);
  for (;;) {
    for (part = pos; pos < end && !is_mark(*pos, in_query); pos++) /* void */;
    to = mark == '/' ? add(to, last, part, pos) : add_parameter(to, last, part, pos);
    if (pos == end || to == last) return to;
    mark = *pos++;
    in_query |= mark == '?' || mark == '#';
    if (in_query && query == CORELANE_LOG_NONE) return to;
    to = add(to, last, pos - 1, pos);
  }
}

/* The network of an address: 24 bits of IPv4, 48 of IPv6. Nothing of what is no address. */
static u_char *add_network(u_char *to, u_char *last, ngx_str_t *address) {
  u_char text[NGX_INET6_ADDRSTRLEN];
  struct in6_addr v6;
  in_addr_t v4 = ngx_inet_addr(address->data, address->len);

  if (v4 != INADDR_NONE) {
    v4 &= htonl(0xffffff00);
    return add(to, last, text, text + ngx_inet_ntop(AF_INET, &v4, text, sizeof(text)));
  }
  if (ngx_inet6_addr(address->data, address->len, v6.s6_addr) != NGX_OK) return to;
  /* ::ffff:192.0.2.1, as a proxy says that listens for both families. */
  if (IN6_IS_ADDR_V4MAPPED(&v6)) v6.s6_addr[15] = 0;
  else ngx_memzero(v6.s6_addr + 6, 10);
  return add(to, last, text, text + ngx_inet_ntop(AF_INET6, &v6, text, sizeof(text)));
}

static u_char *add_address(u_char *to, u_char *last, ngx_str_t *address, ngx_uint_t mode) {
  if (mode == CORELANE_LOG_NONE) return to;
  if (mode == CORELANE_LOG_FULL) return add(to, last, address->data, address->data + address->len);
  return add_network(to, last, address);
}

/* Adds to a message which client and request it is about. `length` bytes of nginx' buffer are left. */
static u_char *describe(ngx_log_t *log, u_char *to, size_t length) {
  corelane_conf_t *conf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_corelane_module);
  ngx_http_log_ctx_t *ctx = log->data;
  ngx_http_request_t *r = ctx->request;
  ngx_http_upstream_t *u;
  u_char *last = to + length;

  if (log->action != NULL) to = ngx_slprintf(to, last, " while %s", log->action);
  to = ngx_slprintf(to, last, ", client: ");
  to = add_address(to, last, &ctx->connection->addr_text, conf->log_client);
  if (r == NULL) return to;
  to = ngx_slprintf(to, last, ", request: \"%V ", &r->method_name);
  to = corelane_write_target(to, last, &r->unparsed_uri, conf->log_query);
  to = ngx_slprintf(to, last, "\"");
  u = ctx->current_request->upstream;
  return u == NULL || u->peer.name == NULL ? to : ngx_slprintf(to, last, ", upstream: \"%V\"", u->peer.name);
}

void corelane_describe_errors(ngx_connection_t *c) {
  c->log->handler = describe;
}

/*
 * nginx sets its own handler again when a connection that was kept has its next request. Before this phase all that it
 * says of level "warn" (main.ts) is that memory is short.
 */
ngx_int_t corelane_describe_errors_of(ngx_http_request_t *r) {
  corelane_describe_errors(r->connection);
  return NGX_DECLINED;
}

/* What nginx says about a request quotes its line, Host, Referer, and the path of a file, as the client sent them. */
static void write_printable(ngx_log_t *log, ngx_uint_t level, u_char *line, size_t length) {
  size_t i;

  /* The last byte ends the line. */
  for (i = 0; i + 1 < length; i++) {
    if (!IS_PRINTABLE(line[i])) line[i] = '?';
  }
  (void) ngx_write_fd(log->file->fd, line, length);
}

/* nginx copies the writer to the log of each connection when a request begins (ngx_set_connection_log). */
void corelane_init_error_log(ngx_cycle_t *cycle) {
  cycle->log->writer = write_printable;
}

/* $corelane_log_uri */
static ngx_int_t log_uri(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  ngx_str_t target = corelane_sent_target(r);
  /* What is left out is never shorter than what stands for it. */
  size_t length = ngx_min(target.len, TARGET_BYTES);
  u_char *text = ngx_pnalloc(r->pool, length);

  if (text == NULL) return NGX_ERROR;
  return corelane_set_value(value, text,
                            corelane_write_target(text, text + length, &target, conf->log_query) - text);
}

static ngx_int_t set_address(ngx_http_request_t *r, ngx_http_variable_value_t *value, ngx_str_t *address) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  u_char *text;

  if (conf->log_client == CORELANE_LOG_FULL) return corelane_set_value(value, address->data, address->len);
  text = ngx_pnalloc(r->pool, NGX_INET6_ADDRSTRLEN);
  if (text == NULL) return NGX_ERROR;
  return corelane_set_value(value, text,
                            add_address(text, text + NGX_INET6_ADDRSTRLEN, address, conf->log_client) - text);
}

/* $corelane_log_client */
static ngx_int_t log_client(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  return set_address(r, value, &r->connection->addr_text);
}

/* $corelane_log_proxy: the other end of the connection, which may be the client itself. */
static ngx_int_t log_proxy(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  static ngx_str_t name = ngx_string("realip_remote_addr");
  ngx_http_variable_value_t *found = ngx_http_get_variable(r, &name, ngx_hash_key(name.data, name.len));
  ngx_str_t address;

  if (found == NULL || found->not_found) return corelane_set_no_value(value);
  address.len = found->len;
  address.data = found->data;
  return set_address(r, value, &address);
}

ngx_int_t corelane_add_log_variables(ngx_conf_t *cf) {
  if (corelane_add_variable(cf, "corelane_log_uri", log_uri) != NGX_OK
      || corelane_add_variable(cf, "corelane_log_client", log_client) != NGX_OK) return NGX_ERROR;
  return corelane_add_variable(cf, "corelane_log_proxy", log_proxy);
}

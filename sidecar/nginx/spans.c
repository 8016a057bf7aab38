/*
 * What is told of sampled requests, for spans (docs/tracing.md): one datagram each, when it has ended, to a thread
 * beside worker-0's supervisor, which makes OTLP of it. Nobody waits for that: what the kernel does not take at once is
 * counted and gone.
 */
#include "corelane.h"

#define RECORD_MAX 2048
#define TEXT_MAX 512
#define TRIES_MAX 8
#define TRACEPARENT_LEN (sizeof("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") - 1)
#define SPAN_OFFSET (sizeof("00-0af7651916cd43dd8448eb211c80319c-") - 1)
#define SPAN_LEN 16

static ngx_socket_t out = (ngx_socket_t) -1;
static time_t second;
static ngx_uint_t in_second;
static uint64_t told, limited, untold;

static ngx_str_t text_of(ngx_http_request_t *r, char *name) {
  ngx_str_t text = {ngx_strlen(name), (u_char *) name}, empty = ngx_null_string;
  ngx_http_variable_value_t *value = ngx_http_get_variable(r, &text, ngx_hash_key(text.data, text.len));

  if (value == NULL || value->not_found || value->len == 0) {
    return empty;
  }
  text.data = value->data;
  text.len = ngx_min(value->len, TEXT_MAX);
  return text;
}

/* A line, whatever is in the value: what would end it is left out with all that follows. */
static u_char *add_text(u_char *to, u_char *end, ngx_str_t text) {
  size_t i;

  for (i = 0; i < text.len && to < end - 1 && text.data[i] >= ' '; i++) *to++ = text.data[i];
  if (to < end) *to++ = '\n';
  return to;
}

static u_char *add(ngx_http_request_t *r, u_char *to, u_char *end, char *name) {
  return add_text(to, end, text_of(r, name));
}

/* "502:12:-1,200:40:38": of each try its status, its milliseconds, and those to the head of its response. */
static u_char *add_tries(ngx_http_request_t *r, u_char *to, u_char *end) {
  ngx_http_upstream_state_t *state;
  ngx_uint_t i, count = 0;

  if (r->upstream_states != NULL) {
    state = r->upstream_states->elts;
    for (i = 0; i < r->upstream_states->nelts && count < TRIES_MAX; i++) {
      if (state[i].peer == NULL) continue;
      to = ngx_slprintf(to, end, "%s%ui:%M:%M", count++ == 0 ? "" : ",", state[i].status,
                        ngx_max((ngx_msec_int_t) state[i].response_time, 0), (ngx_msec_int_t) state[i].header_time);
    }
  }
  return ngx_slprintf(to, end, "\n");
}

/* A client marks its requests as it likes, and each costs whoever hears of it some tenths of a millisecond. */
static ngx_uint_t is_limited(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);

  if (second != ngx_time()) {
    second = ngx_time();
    in_second = 0;
  }
  return in_second++ >= (ngx_uint_t) conf->spans_max;
}

static ngx_uint_t is_taken(u_char *record, size_t length) {
  return send(out, record, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) length;
}

static void tell(u_char *record, size_t length) {
  ngx_uint_t taken = is_taken(record, length);

  /* That is of the one before, which nobody has heard; somebody may be there by now. */
  if (!taken && ngx_errno == NGX_ECONNREFUSED && told > 0) {
    told--;
    untold++;
    taken = is_taken(record, length);
  }
  if (taken) told++;
  else untold++;
}

/*
 * What HAProxy says of a response. Not by the variables of the access log: those of a render beside a request are the
 * same as the request's, and have the value that was asked for first.
 */
static u_char *add_header(ngx_http_request_t *r, u_char *to, u_char *end, char *text) {
  ngx_str_t name = {ngx_strlen(text), (u_char *) text}, none = ngx_null_string, value;
  ngx_table_elt_t *header = r->upstream == NULL || r->cached ? NULL : corelane_find_header(r->upstream, &name);

  if (header == NULL) {
    return add_text(to, end, none);
  }
  value = header->value;
  value.len = ngx_min(value.len, TEXT_MAX);
  return add_text(to, end, value);
}

static ngx_uint_t is_of_request(ngx_http_request_t *r) {
  return r == r->main && !r->background;
}

/* Of a client's request its end; of a render for others, beside a request or after it, its response. */
static u_char *add_result(ngx_http_request_t *r, u_char *to, u_char *end) {
  ngx_str_t none = ngx_null_string;

  if (is_of_request(r)) {
    to = add(r, to, end, "status");
    to = add(r, to, end, "sent_http_x_corelane_error");
    return add(r, to, end, "corelane_cache_result");
  }
  to = ngx_slprintf(to, end, "%ui\n", r->upstream->headers_in.status_n);
  return add_text(add_text(to, end, none), end, none);
}

static void tell_of(ngx_http_request_t *r, ngx_msec_int_t total_ms, ngx_msec_int_t first_byte_ms) {
  u_char record[RECORD_MAX], *to = record, *end = record + RECORD_MAX, path_bytes[TEXT_MAX];
  ngx_str_t sent = text_of(r, "corelane_traceparent"), came = text_of(r, "corelane_parent");
  ngx_str_t parent = ngx_null_string, path = {0, path_bytes};

  if (sent.len != TRACEPARENT_LEN || sent.data[sent.len - 1] != '1') {
    return;
  }
  if (is_limited(r)) {
    limited++;
    return;
  }
  if (came.len == TRACEPARENT_LEN) {
    parent.data = came.data + SPAN_OFFSET;
    parent.len = SPAN_LEN;
  }
  /* Each has a number, so that who gets them knows how many he has not got. */
  to = ngx_slprintf(to, end, "1 %s %uL\n", is_of_request(r) ? "request" : "render", told + untold);
  to = add_text(to, end, sent);
  to = add_text(to, end, parent);
  to = ngx_slprintf(to, end, "%T%03M %L %L\n", r->start_sec, r->start_msec, (int64_t) total_ms, (int64_t) first_byte_ms);
  to = add_tries(r, to, end);
  to = add_header(r, to, end, "X-Corelane-Queue-Ms");
  to = add_header(r, to, end, "X-Corelane-Render-Ms");
  to = add_header(r, to, end, "X-Corelane-Worker");
  to = add_header(r, to, end, "X-Corelane-Pod");
  to = add_result(r, to, end);
  to = add(r, to, end, "corelane_served_as");
  to = add(r, to, end, "corelane_method");
  to = add(r, to, end, "corelane_proto");
  to = add(r, to, end, "server_protocol");
  to = add(r, to, end, "corelane_host");
  /* Nothing of a query: there are secrets in some. */
  path.len = corelane_write_target(path_bytes, path_bytes + TEXT_MAX, &r->unparsed_uri, CORELANE_LOG_NONE) - path_bytes;
  to = add_text(to, end, path);
  tell(record, to - record);
}

static ngx_uint_t is_on(ngx_http_request_t *r) {
  corelane_loc_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_corelane_module);

  return out != (ngx_socket_t) -1 && conf->counts < CORELANE_COUNT_NOTHING;
}

ngx_int_t corelane_tell_request(ngx_http_request_t *r) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);

  if (is_on(r) && is_of_request(r)) {
    tell_of(r, corelane_total_ms(r), ctx == NULL ? -1 : ctx->first_byte_ms);
  }
  return NGX_OK;
}

/* HAProxy leads the request back to look for a page. An error that leads to the fallback page is no such response. */
static ngx_uint_t is_led_back(ngx_http_request_t *r) {
  ngx_http_upstream_headers_in_t *head = &r->upstream->headers_in;

  return head->x_accel_redirect != NULL && head->status_n == NGX_HTTP_OK;
}

void corelane_tell_fill(ngx_http_request_t *r) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);

  if (is_on(r) && !is_of_request(r) && ctx != NULL && !is_led_back(r)) {
    tell_of(r, ctx->first_byte_ms, ctx->first_byte_ms);
  }
}

u_char *corelane_write_spans(u_char *to, u_char *end) {
  return ngx_slprintf(to, end,
                      "# HELP corelane_span_records_total Sampled requests that spans were to be made of.\n"
                      "# TYPE corelane_span_records_total counter\n"
                      "corelane_span_records_total{result=\"told\"} %uL\n"
                      "corelane_span_records_total{result=\"limited\"} %uL\n"
                      "corelane_span_records_total{result=\"untold\"} %uL\n",
                      told, limited, untold);
}

ngx_int_t corelane_init_spans(ngx_cycle_t *cycle) {
  corelane_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_corelane_module);
  struct sockaddr_in to;

  if (conf->spans_port == NGX_CONF_UNSET) return NGX_OK;
  ngx_memzero(&to, sizeof(to));
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons((in_port_t) conf->spans_port);
  out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (out == (ngx_socket_t) -1 || connect(out, (struct sockaddr *) &to, sizeof(to)) == -1) {
    ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno, "no socket for spans");
    return NGX_ERROR;
  }
  return NGX_OK;
}

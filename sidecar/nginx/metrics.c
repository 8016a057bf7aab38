/*
 * Figures of requests, for Prometheus (docs/adr/0044-metrics-that-see.md). nginx alone knows of each request that came,
 * what became of it, and how long its client waited. It is counted at its end, when the access log writes it down. Its
 * labels are closed lists: nobody outside makes a series.
 */
#include "corelane.h"

/* Of a header: nobody waits for longer than a day, and a sum must stay one. */
#define MS_MAX (24 * 3600 * 1000)
#define BOUNDS 10
#define CODES 6
#define REASONS (sizeof(reasons) / sizeof(reasons[0]))
/* All series that there can be, and what describes them. */
#define TEXT_MAX (32 * 1024)

/* What is above 30 s is in the last bucket. */
static const struct {
  ngx_msec_int_t ms;
  const char *le;
} bounds[BOUNDS] = {{25, "0.025"}, {50, "0.05"}, {100, "0.1"}, {250, "0.25"}, {500, "0.5"},
                    {1000, "1"},   {2500, "2.5"}, {5000, "5"},  {10000, "10"}, {30000, "30"}};

typedef struct {
  const char *name;
  const char *help;
  uint64_t counts[BOUNDS + 1];
  uint64_t sum_ms;
} histogram_t;

static histogram_t queue = {"corelane_request_queue_duration_seconds", "Time that requests waited for a worker.", {0}, 0};
static histogram_t render = {"corelane_request_render_duration_seconds",
                             "Time from a request's way to a worker to the head of the response.", {0}, 0};
static histogram_t first_byte = {"corelane_request_first_byte_duration_seconds",
                                 "Time from the first byte of a request to the head of the response.", {0}, 0};
static histogram_t total = {"corelane_request_duration_seconds",
                            "Time from the first byte of a request to the last one that its client was sent.", {0}, 0};

/* By the first digit of the status. The last one: a status that HTTP does not know. */
static const char *codes[CODES] = {"1xx", "2xx", "3xx", "4xx", "5xx", "other"};
#define CODE_5XX 4

/*
 * X-Corelane-Error; sidecar/README.md lists them. Of those that are `shown` there is always a 5xx: a rate needs the 0
 * before.
 */
static const struct {
  ngx_str_t name;
  ngx_uint_t shown;
} reasons[] = {
    {ngx_string(""), 1},
    {ngx_string("queue-full"), 1},
    {ngx_string("queue-timeout"), 1},
    {ngx_string("no-worker"), 1},
    {ngx_string("render-timeout"), 1},
    {ngx_string("worker-died"), 1},
    {ngx_string("worker-stuck"), 1},
    {ngx_string("asset-not-found"), 0},
    {ngx_string("bad-request"), 0},
    {ngx_string("bad-response"), 0},
    {ngx_string("bodies-full"), 0},
    {ngx_string("body-too-large"), 0},
    {ngx_string("body-too-slow"), 0},
    {ngx_string("class-full"), 0},
    {ngx_string("class-queue-timeout"), 0},
    {ngx_string("class-timeout"), 0},
    {ngx_string("client-limit"), 0},
    {ngx_string("deadline"), 0},
    {ngx_string("draining"), 0},
    {ngx_string("head-too-large"), 0},
    {ngx_string("heads-full"), 0},
    {ngx_string("poison"), 0},
    {ngx_string("precondition-failed"), 0},
    {ngx_string("proxy-down"), 0},
    {ngx_string("proxy-timeout"), 0},
    {ngx_string("range-not-satisfiable"), 0},
    {ngx_string("render-failed"), 0},
    {ngx_string("requests-full"), 0},
    {ngx_string("response-too-slow"), 0},
    {ngx_string("websockets-full"), 0},
    /* What a later version of some other part may say. */
    {ngx_string("other"), 0},
};

static uint64_t requests[CODES][REASONS];
/* Requests that a peer has answered. */
static uint64_t handed_over;

static void observe(histogram_t *histogram, ngx_msec_int_t ms) {
  ngx_uint_t i;

  for (i = 0; i < BOUNDS && ms > bounds[i].ms; i++) /* void */;
  histogram->counts[i]++;
  histogram->sum_ms += ms;
}

static ngx_msec_int_t since_begin(ngx_http_request_t *r) {
  ngx_time_t *now = ngx_timeofday();
  ngx_msec_int_t ms = (now->sec - r->start_sec) * 1000 + ((ngx_msec_int_t) now->msec - (ngx_msec_int_t) r->start_msec);

  return ngx_max(ms, 0);
}

/*
 * A page that is given out after its end is rendered anew beside it, and the request ends with that. Its client has the
 * page long before: when something of it was sent last.
 */
ngx_msec_int_t corelane_total_ms(ngx_http_request_t *r) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);

  return ctx != NULL && ctx->sent_ms >= 0 ? ctx->sent_ms : since_begin(r);
}

static ngx_http_output_header_filter_pt next_header_filter;
static ngx_http_output_body_filter_pt next_body_filter;

static void note_sent(ngx_http_request_t *r) {
  corelane_ctx_t *ctx;

  if (r != r->main || !r->cached) {
    return;
  }
  ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  if (ctx == NULL) {
    ctx = ngx_pcalloc(r->pool, sizeof(corelane_ctx_t));
    if (ctx == NULL) return;
    ctx->first_byte_ms = ctx->sent_ms = -1;
    ngx_http_set_ctx(r, ctx, ngx_http_corelane_module);
  }
  ctx->sent_ms = since_begin(r);
}

static ngx_int_t header_filter(ngx_http_request_t *r) {
  ngx_int_t rc = next_header_filter(r);

  note_sent(r);
  return rc;
}

static ngx_int_t body_filter(ngx_http_request_t *r, ngx_chain_t *in) {
  ngx_int_t rc = next_body_filter(r, in);

  note_sent(r);
  return rc;
}

void corelane_init_metrics(void) {
  next_header_filter = ngx_http_top_header_filter;
  ngx_http_top_header_filter = header_filter;
  next_body_filter = ngx_http_top_body_filter;
  ngx_http_top_body_filter = body_filter;
}

/* $corelane_total_seconds */
static ngx_int_t total_seconds(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_msec_int_t ms = corelane_total_ms(r);

  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = 0;
  value->data = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
  if (value->data == NULL) {
    return NGX_ERROR;
  }
  value->len = ngx_sprintf(value->data, "%T.%03M", (time_t) ms / 1000, (ngx_msec_t) ms % 1000) - value->data;
  return NGX_OK;
}

/* Of a header with milliseconds; -1: it is not there, or says no time. */
static ngx_msec_int_t told_ms(ngx_http_request_t *r, ngx_str_t *name) {
  ngx_table_elt_t *header = corelane_find_header(r->upstream, name);
  ngx_int_t ms = header == NULL ? NGX_ERROR : ngx_atoi(header->value.data, header->value.len);

  return ms == NGX_ERROR || ms > MS_MAX ? -1 : ms;
}

/* How long it waited and was rendered, and by whom. What is kept was counted when it was rendered. */
static void count_render(ngx_http_request_t *r) {
  static ngx_str_t queue_ms = ngx_string("X-Corelane-Queue-Ms"), render_ms = ngx_string("X-Corelane-Render-Ms");
  static ngx_str_t pod = ngx_string("X-Corelane-Pod"), shared = ngx_string("X-Corelane-Shared");
  ngx_msec_int_t ms;

  if (r->upstream == NULL || r->cached) {
    return;
  }
  ms = told_ms(r, &queue_ms);
  if (ms >= 0) observe(&queue, ms);
  ms = told_ms(r, &render_ms);
  if (ms >= 0) observe(&render, ms);
  if (corelane_find_header(r->upstream, &pod) != NULL && corelane_find_header(r->upstream, &shared) == NULL) {
    handed_over++;
  }
}

ngx_uint_t corelane_is_of_class(ngx_http_request_t *r) {
  static ngx_str_t name = ngx_string("corelane_served_as");
  static ngx_uint_t key;
  ngx_http_variable_value_t *value;

  if (key == 0) {
    key = ngx_hash_key(name.data, name.len);
  }
  value = ngx_http_get_variable(r, &name, key);
  return value != NULL && !value->not_found && value->len > 0;
}

void corelane_count_fill(ngx_http_request_t *r) {
  if ((r != r->main || r->background) && !corelane_is_of_class(r)) {
    count_render(r);
  }
}

static ngx_uint_t code_of(ngx_uint_t status) {
  return status >= 100 && status < 600 ? status / 100 - 1 : CODES - 1;
}

static ngx_uint_t reason_of(ngx_http_request_t *r) {
  static ngx_str_t name = ngx_string("X-Corelane-Error");
  ngx_table_elt_t *header = corelane_find_sent(r, &name);
  ngx_uint_t i;

  if (header == NULL) {
    return 0;
  }
  for (i = 0; i < REASONS - 1; i++) {
    if (reasons[i].name.len == header->value.len
        && ngx_memcmp(reasons[i].name.data, header->value.data, header->value.len) == 0) {
      break;
    }
  }
  return i;
}

/* As $status has it. */
static ngx_uint_t status_of(ngx_http_request_t *r) {
  return r->err_status ? r->err_status : r->headers_out.status;
}

ngx_int_t corelane_count_request(ngx_http_request_t *r) {
  corelane_loc_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_corelane_module);
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_uint_t status = status_of(r);

  if (conf->counts >= CORELANE_COUNT_NOTHING || r != r->main || r->background) {
    return NGX_OK;
  }
  requests[code_of(status)][reason_of(r)]++;
  /* A WebSocket ends when its client has had enough of it. */
  if (conf->counts != CORELANE_COUNT_PAGES || status == NGX_HTTP_SWITCHING_PROTOCOLS || corelane_is_of_class(r)) {
    return NGX_OK;
  }
  count_render(r);
  if (ctx != NULL && ctx->first_byte_ms >= 0) {
    observe(&first_byte, ctx->first_byte_ms);
  }
  /* Who has gone before, or sends no whole request, tells nothing of how long an answer takes. */
  if (r->header_sent) {
    observe(&total, corelane_total_ms(r));
  }
  return NGX_OK;
}

static u_char *describe(u_char *to, u_char *end, const char *name, const char *type, const char *help) {
  return ngx_slprintf(to, end, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static u_char *write_requests(u_char *to, u_char *end) {
  ngx_uint_t code, reason;

  to = describe(to, end, "corelane_requests_total", "counter",
                "Requests of clients that have ended, by status and X-Corelane-Error.");
  for (reason = 0; reason < REASONS; reason++) {
    for (code = 0; code < CODES; code++) {
      if (requests[code][reason] > 0 || (reasons[reason].shown && code == CODE_5XX)
          || (reason == 0 && code > 0 && code < CODE_5XX)) {
        to = ngx_slprintf(to, end, "corelane_requests_total{code=\"%s\",reason=\"%V\"} %uL\n", codes[code],
                          &reasons[reason].name, requests[code][reason]);
      }
    }
  }
  return to;
}

static u_char *write_histogram(u_char *to, u_char *end, histogram_t *histogram) {
  uint64_t count = 0;
  ngx_uint_t i;

  to = describe(to, end, histogram->name, "histogram", histogram->help);
  for (i = 0; i <= BOUNDS; i++) {
    count += histogram->counts[i];
    to = ngx_slprintf(to, end, "%s_bucket{le=\"%s\"} %uL\n", histogram->name, i < BOUNDS ? bounds[i].le : "+Inf", count);
  }
  return ngx_slprintf(to, end, "%s_sum %uL.%03uL\n%s_count %uL\n", histogram->name, histogram->sum_ms / 1000,
                      histogram->sum_ms % 1000, histogram->name, count);
}

/* $corelane_metrics: for HAProxy, whose page it becomes a part of. Of the last family that has the rest. */
static ngx_int_t metrics(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  u_char *text = ngx_palloc(r->pool, TEXT_MAX);
  u_char *end = text + TEXT_MAX, *to = text;

  if (text == NULL) {
    return NGX_ERROR;
  }
  to = write_requests(to, end);
  to = write_histogram(to, end, &queue);
  to = write_histogram(to, end, &render);
  to = write_histogram(to, end, &first_byte);
  to = write_histogram(to, end, &total);
  if (conf->kept_max > 0) to = corelane_write_cache_results(to, end);
  if (conf->spans_port != NGX_CONF_UNSET) to = corelane_write_spans(to, end);
  to = ngx_slprintf(to, end, "corelane_requests_handed_over_total{direction=\"out\"} %uL\n", handed_over);
  return corelane_set_value(value, text, to - text);
}

/* $corelane_served_as where nginx.conf has no classes. */
static ngx_int_t no_class(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  return corelane_set_value(value, (u_char *) "", 0);
}

static ngx_int_t add_served_as(ngx_conf_t *cf) {
  ngx_str_t name = ngx_string("corelane_served_as");
  ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_CHANGEABLE);

  if (variable == NULL) {
    return NGX_ERROR;
  }
  variable->get_handler = no_class;
  return NGX_OK;
}

ngx_int_t corelane_add_metrics_variables(ngx_conf_t *cf) {
  return add_served_as(cf) != NGX_OK || corelane_add_variable(cf, "corelane_total_seconds", total_seconds) != NGX_OK
                 || corelane_add_variable(cf, "corelane_metrics", metrics) != NGX_OK
             ? NGX_ERROR
             : NGX_OK;
}

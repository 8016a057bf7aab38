/*
 * What the headers traceparent and X-Request-Start are made of (docs/tracing.md). The ids are not of $request_id: that
 * names the request for HAProxy and supervisors (X-Corelane-Request), and what is in a trace is told to many.
 */
#include "corelane.h"
#include <sys/random.h>

#define TRACE_BYTES 16
#define SPAN_BYTES 8

/*
 * $corelane_new_span: of the render, below which that of the program is. Its last bit is 0; with a 1 it is that of the
 * request as a whole, so that one may be told of before the other.
 */
static ngx_int_t new_span(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  u_char bytes[SPAN_BYTES];

  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    return NGX_ERROR;
  }
  bytes[0] |= 1;
  bytes[SPAN_BYTES - 1] &= 0xfe;
  value->data = ngx_pnalloc(r->pool, 2 * sizeof(bytes));
  if (value->data == NULL) {
    return NGX_ERROR;
  }
  return corelane_set_value(value, value->data, ngx_hex_dump(value->data, bytes, SPAN_BYTES) - value->data);
}

/* $corelane_new_trace: an id of a trace and one of a span, TRACE-SPAN. */
static ngx_int_t new_trace(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  u_char bytes[TRACE_BYTES + SPAN_BYTES], *to;

  /* nginx' own numbers begin with time and process id: pods that start at one time would have the same. */
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    return NGX_ERROR;
  }
  /* No id may be of zeros only. */
  bytes[0] |= 1;
  bytes[TRACE_BYTES] |= 1;
  value->data = ngx_pnalloc(r->pool, 2 * sizeof(bytes) + 1);
  if (value->data == NULL) {
    return NGX_ERROR;
  }
  to = ngx_hex_dump(value->data, bytes, TRACE_BYTES);
  *to++ = '-';
  return corelane_set_value(value, value->data, ngx_hex_dump(to, bytes + TRACE_BYTES, SPAN_BYTES) - value->data);
}

/* $corelane_began: when the first byte of the request was here, in seconds since 1970 with three decimals. */
static ngx_int_t began(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  value->data = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
  if (value->data == NULL) {
    return NGX_ERROR;
  }
  return corelane_set_value(value, value->data,
                            ngx_sprintf(value->data, "%T.%03M", r->start_sec, r->start_msec) - value->data);
}

ngx_int_t corelane_add_trace_variables(ngx_conf_t *cf) {
  if (corelane_add_variable(cf, "corelane_new_trace", new_trace) != NGX_OK
      || corelane_add_variable(cf, "corelane_new_span", new_span) != NGX_OK) return NGX_ERROR;
  return corelane_add_variable(cf, "corelane_began", began);
}

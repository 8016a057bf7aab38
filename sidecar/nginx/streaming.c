/*
 * Responses that go out as they come. nginx hands on a buffer that is not full only if it holds as much as is still to
 * come of a chunk, and two bytes more: the last piece of a flush waits for the next flush
 * (docs/adr/0033-streaming.md). Here any byte is enough. Buffering stays on: what a slow client does not take goes to
 * disk, and its worker is free.
 */
#include "corelane.h"

/* The least that nginx can be told to want, but for nothing at all, which is the end. */
#define ANY_BYTE 1

static void want_any_byte(corelane_ctx_t *ctx, ngx_event_pipe_t *p) {
  ctx->wanted = p->length;
  /* At the end of the connection it says whether the response is whole: -1 is one without any length. */
  if (ctx->streams && p->length != 0 && !p->upstream_eof) {
    p->length = ANY_BYTE;
  }
}

/*
 * The client can take more. nginx leaves what it could not take before until there are more than
 * proxy_busy_buffers_size of it, or something new.
 */
static void write_on(ngx_http_request_t *r) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_event_pipe_t *p = r->upstream->pipe;
  ngx_event_t *write = r->connection->write;

  if (r->connection->buffered && write->ready && !write->timedout && !write->delayed && !p->downstream_error
      && p->output_filter(p->output_ctx, NULL) == NGX_ERROR) {
    p->downstream_error = 1;
  }
  ctx->write_event_handler(r);
}

/* The client has taken all that there was: from now on it is its turn again. */
static void begin_turn(corelane_ctx_t *ctx, ngx_event_pipe_t *p) {
  if (p->in == NULL && p->out == NULL && !p->downstream->buffered && p->downstream->write->ready) {
    ctx->turn.begin = ngx_current_msec;
    ctx->turn.had = p->downstream->sent;
  }
}

/* A filter that compresses keeps what it has until it is told to flush. */
static void flush_last(ngx_event_pipe_t *p) {
  ngx_chain_t *last;

  if (p->in != NULL) {
    /* It points to where the next link is to be put. */
    last = (ngx_chain_t *) ((u_char *) p->last_in - offsetof(ngx_chain_t, next));
    last->buf->flush = 1;
  }
}

static ngx_uint_t ends_in_file(ngx_chain_t *chain) {
  for (; chain != NULL && chain->next != NULL; chain = chain->next) /* void */;
  return chain != NULL && !ngx_buf_in_memory(chain->buf) && !ngx_buf_special(chain->buf);
}

/* What comes from the file has lost the mark, and no more is on its way. */
static ngx_int_t output_filter(void *data, ngx_chain_t *chain) {
  ngx_http_request_t *r = data;
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_event_pipe_t *p = r->upstream->pipe;
  ngx_uint_t flush = ends_in_file(chain) && p->in == NULL && p->out == NULL;
  ngx_int_t rc = ctx->output_filter(data, chain);

  return rc != NGX_ERROR && flush ? ngx_http_send_special(r, NGX_HTTP_FLUSH) : rc;
}

static ngx_int_t input_filter(ngx_event_pipe_t *p, ngx_buf_t *buf) {
  ngx_http_request_t *r = p->input_ctx;
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_int_t rc;

  if (ctx->streams && r->write_event_handler != write_on) {
    ctx->write_event_handler = r->write_event_handler;
    r->write_event_handler = write_on;
  }
  begin_turn(ctx, p);
  /* The filter of the proxy module counts by it. */
  p->length = ctx->wanted;
  rc = ctx->input_filter(p, buf);
  if (ctx->streams) {
    flush_last(p);
  }
  corelane_bound_kept(r);
  want_any_byte(ctx, p);
  return rc;
}

static ngx_uint_t streams(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);

  if (conf->streaming == CORELANE_STREAM_AUTO) return r->upstream->headers_in.content_length_n == -1;
  return conf->streaming == CORELANE_STREAM_ALWAYS;
}

/* The head has been handed on, and nothing of the body. */
static ngx_int_t input_filter_init(void *data) {
  ngx_http_request_t *r = data;
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_event_pipe_t *p = r->upstream->pipe;

  if (ctx->input_filter_init(data) != NGX_OK) {
    return NGX_ERROR;
  }
  ctx->input_filter = p->input_filter;
  p->input_filter = input_filter;
  ctx->streams = p->length != 0 && streams(r);
  want_any_byte(ctx, p);
  if (!ctx->streams) {
    return NGX_OK;
  }
  ctx->output_filter = p->output_filter;
  p->output_filter = output_filter;
  /* Else a small piece waits until the client has acknowledged the one before (Nagle). */
  if (ngx_tcp_nodelay(r->connection) != NGX_OK) {
    return NGX_ERROR;
  }
  /* nginx sends the head with the first bytes of the body. */
  return p->preread_size == 0 && ngx_http_send_special(r, NGX_HTTP_FLUSH) == NGX_ERROR ? NGX_ERROR : NGX_OK;
}

void corelane_init_streaming(ngx_http_request_t *r, corelane_ctx_t *ctx) {
  ctx->first_byte_ms = ctx->sent_ms = -1;
  ctx->input_filter_init = r->upstream->input_filter_init;
  r->upstream->input_filter_init = input_filter_init;
}

void corelane_note_head(ngx_http_request_t *r, corelane_ctx_t *ctx) {
  ngx_time_t *now = ngx_timeofday();
  ngx_msec_int_t ms = (now->sec - r->start_sec) * 1000 + ((ngx_msec_int_t) now->msec - (ngx_msec_int_t) r->start_msec);

  ctx->first_byte_ms = ngx_max(ms, 0);
  ctx->turn.begin = ngx_current_msec;
  ctx->turn.had = 0;
}

ngx_int_t corelane_first_byte_ms(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);

  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = 0;
  value->data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
  if (value->data == NULL) {
    return NGX_ERROR;
  }
  if (ctx == NULL || ctx->first_byte_ms < 0) {
    value->len = ngx_sprintf(value->data, "null") - value->data;
  } else {
    value->len = ngx_sprintf(value->data, "%M", (ngx_msec_t) ctx->first_byte_ms) - value->data;
  }
  return NGX_OK;
}

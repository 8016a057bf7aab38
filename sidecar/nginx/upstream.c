/* What this module changes of a request that goes to HAProxy, before nginx sends it. */
#include "corelane.h"

/* What nginx reads of a response with its head, unless the head is larger: one of the buffers for the rest. */
#define FIRST_BYTES (16 * 1024)

/*
 * Where the largest head ends. One byte stays free: behind a head that fills its buffer nginx would read into no room,
 * and take that for the end of the connection.
 */
static u_char *end_of_heads(ngx_http_upstream_t *u) {
  return u->buffer.start + u->conf->buffer_size - 1;
}

/*
 * The buffer for the head of a response. nginx makes one for the largest head, reads as much of the body into it as
 * fits, and hands nothing of it on before it is full. So here it ends where an ordinary one would end.
 */
static ngx_int_t make_buffer(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;
  ngx_buf_t *buffer = &u->buffer;

  buffer->start = ngx_palloc(r->pool, u->conf->buffer_size);
  if (buffer->start == NULL || ngx_list_init(&u->headers_in.headers, r->pool, 8, sizeof(ngx_table_elt_t)) != NGX_OK
      || ngx_list_init(&u->headers_in.trailers, r->pool, 2, sizeof(ngx_table_elt_t)) != NGX_OK) {
    return NGX_ERROR;
  }
  buffer->pos = buffer->start + (r->cache != NULL ? r->cache->header_start : 0);
  buffer->last = buffer->pos;
  buffer->end = ngx_min(end_of_heads(u), buffer->pos + FIRST_BYTES);
  buffer->temporary = 1;
  buffer->tag = u->output.tag;
  return NGX_OK;
}

/* The buffer of a kept page (r->cached) is as large as its head. */
void corelane_extend_buffer(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;

  if (!r->cached && u->buffer.last == u->buffer.end) {
    u->buffer.end = end_of_heads(u);
  }
}

void corelane_end_head(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;
  ngx_buf_t *buffer = &u->buffer;
  u_char *end = ngx_max(buffer->last, buffer->pos + FIRST_BYTES), *most = buffer->end;

  if (r->cached) return;
  /* Nothing of the body is here, and there may be no room left for it. */
  if (buffer->last == buffer->pos) most = buffer->start + u->conf->buffer_size;
  buffer->end = ngx_min(end, most);
}

ngx_int_t corelane_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *upstream) {
  corelane_upstream_t *conf = ngx_http_conf_upstream_srv_conf(upstream, ngx_http_corelane_module);
  corelane_ctx_t *ctx = ngx_pcalloc(r->pool, sizeof(corelane_ctx_t));

  if (ctx == NULL || make_buffer(r) != NGX_OK) {
    return NGX_ERROR;
  }
  ctx->purges = corelane_purges();
  corelane_init_interim(r, ctx);
  corelane_init_streaming(r, ctx);
  ngx_http_set_ctx(r, ctx, ngx_http_corelane_module);
  return conf->init_peer(r, upstream);
}

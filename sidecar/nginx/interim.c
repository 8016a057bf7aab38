/*
 * Interim responses (103 Early Hints and others below 200) of an application. nginx 1.26 takes one for the whole
 * response, and what follows for its body: the client waits for ever. They are left out.
 */
#include "corelane.h"

/* Each costs memory until its request ends; nobody has more to say in advance. */
#define INTERIM_MAX 32

static ngx_uint_t is_interim(ngx_uint_t status) {
  return status >= 100 && status < 200 && status != NGX_HTTP_SWITCHING_PROTOCOLS;
}

/* As nginx itself does before another try. */
static ngx_int_t begin_again(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;

  if (u->reinit_request(r) != NGX_OK) {
    return NGX_ERROR;
  }
  u->keepalive = 0;
  u->upgrade = 0;
  u->error = 0;
  u->state->status = 0;
  ngx_memzero(&u->headers_in, sizeof(ngx_http_upstream_headers_in_t));
  u->headers_in.content_length_n = -1;
  u->headers_in.last_modified_time = -1;
  if (ngx_list_init(&u->headers_in.headers, r->pool, 8, sizeof(ngx_table_elt_t)) != NGX_OK
      || ngx_list_init(&u->headers_in.trailers, r->pool, 2, sizeof(ngx_table_elt_t)) != NGX_OK) {
    return NGX_ERROR;
  }
  return NGX_OK;
}

/*
 * Adds the reason to a 400 of HAProxy's parser. HAProxy sends a fixed text there (h1_send_error), and applies neither
 * http-error nor http-after-response. Each other response of HAProxy, also a 400 of the application, has one of these
 * headers.
 */
static ngx_int_t name_refusal(ngx_http_request_t *r) {
  static ngx_str_t queue_ms = ngx_string("X-Corelane-Queue-Ms"), pod = ngx_string("X-Corelane-Pod");
  ngx_http_upstream_t *u = r->upstream;
  ngx_table_elt_t *header;

  if (u->headers_in.status_n != NGX_HTTP_BAD_REQUEST || corelane_find_header(u, &queue_ms) != NULL
      || corelane_find_header(u, &pod) != NULL) {
    return NGX_OK;
  }
  header = ngx_list_push(&u->headers_in.headers);
  if (header == NULL) {
    return NGX_ERROR;
  }
  ngx_memzero(header, sizeof(ngx_table_elt_t));
  ngx_str_set(&header->key, "X-Corelane-Error");
  ngx_str_set(&header->value, "bad-request");
  header->lowcase_key = (u_char *) "x-corelane-error";
  header->hash = ngx_hash_key(header->lowcase_key, header->key.len);
  return NGX_OK;
}

static ngx_int_t process_header(ngx_http_request_t *r) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_http_upstream_t *u = r->upstream;
  ngx_int_t rc;
  u_char *begin;

  for (;;) {
    /* It sets what is to be called for the next part of the head. */
    u->process_header = ctx->process_header;
    rc = ctx->process_header(r);
    ctx->process_header = u->process_header;
    u->process_header = process_header;
    if (rc == NGX_OK && !is_interim(u->headers_in.status_n)) {
      if (name_refusal(r) != NGX_OK) {
        return NGX_ERROR;
      }
      corelane_end_head(r);
      corelane_note_head(r, ctx);
      corelane_count_fill(r);
      corelane_tell_fill(r);
      corelane_mind_no_transform(r);
      corelane_note_tags(r);
      if (corelane_judge_stale(r) != NGX_OK) {
        return NGX_HTTP_UPSTREAM_INVALID_HEADER;
      }
      corelane_make_room(r);
      return NGX_OK;
    }
    if (rc != NGX_OK) {
      corelane_extend_buffer(r);
      return rc;
    }
    if (ctx->interim_left-- == 0) {
      ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "too many interim responses");
      return NGX_HTTP_UPSTREAM_INVALID_HEADER;
    }
    if (begin_again(r) != NGX_OK) {
      return NGX_ERROR;
    }
    /* However many there are, each has the whole buffer, but for what a cached file begins with. */
    begin = u->buffer.start + (r->cache != NULL ? r->cache->header_start : 0);
    u->buffer.last = ngx_movemem(begin, u->buffer.pos, u->buffer.last - u->buffer.pos);
    u->buffer.pos = begin;
    if (u->buffer.last == begin) {
      return NGX_AGAIN;
    }
  }
}

/* Sets process_header to what it was at first. */
static ngx_int_t reinit_request(ngx_http_request_t *r) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_int_t rc = ctx->reinit_request(r);

  ctx->process_header = r->upstream->process_header;
  r->upstream->process_header = process_header;
  return rc;
}

void corelane_init_interim(ngx_http_request_t *r, corelane_ctx_t *ctx) {
  ctx->process_header = r->upstream->process_header;
  ctx->reinit_request = r->upstream->reinit_request;
  ctx->interim_left = INTERIM_MAX;
  r->upstream->process_header = process_header;
  r->upstream->reinit_request = reinit_request;
}

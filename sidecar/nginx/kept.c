/*
 * What pages may take on disk. nginx looks every ten seconds, and counts what is whole: in between a client that asks
 * for page after page could fill the volume many times over, and kubelet ends a pod for that. So room is made before a
 * page is kept, as other caches do it; and where there is none, because all of it is being sent, it is not kept.
 */
#include "corelane.h"

/* Beside what is kept for long as much again is meant for what is just being kept: the size of the volume. */
#define VOLUME_FACTOR 2

/*
 * A cached file says in 16 bits where its body begins. nginx would cut a larger number off, and give out the page from
 * the middle of its head on.
 */
#define BODY_BEGINS_MAX 0xffff

/* Of requests that have not ended: what they have kept, in blocks. A slow client holds it though it may be gone. */
static off_t open_blocks;

static void forget(void *data) {
  corelane_ctx_t *ctx = data;

  open_blocks -= ctx->kept_blocks;
  ctx->kept_blocks = 0;
}

/* Whether the volume has room for one more page, of any size. */
static ngx_uint_t has_room(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  ngx_http_file_cache_t *cache = r->cache->file_cache;

  return cache->sh->size + open_blocks + (off_t) (conf->kept_max / cache->bsize) <= VOLUME_FACTOR * cache->max_size;
}

void corelane_make_room(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_http_file_cache_t *cache;
  ngx_pool_cleanup_t *cleanup;

  if (r->cache == NULL || r->cached || !u->cacheable || r->cache->valid_sec == 0) {
    return;
  }
  if (u->buffer.pos - u->buffer.start > BODY_BEGINS_MAX) {
    u->cacheable = 0;
    return;
  }
  cache = r->cache->file_cache;
  if (cache->sh->size >= cache->max_size || cache->sh->count >= cache->sh->watermark) {
    /* What nginx' own process does from time to time: those go that nobody has asked for the longest. */
    (void) cache->path->manager(cache->path->data);
  }
  cleanup = ngx_pool_cleanup_add(r->pool, 0);
  if (cleanup == NULL || !has_room(r)) {
    u->cacheable = 0;
    return;
  }
  cleanup->handler = forget;
  cleanup->data = ctx;
  /* nginx would answer 412 or 416, and keep nothing for those who wait. A server may leave a Range alone. */
  r->headers_in.if_match = NULL;
  r->headers_in.if_unmodified_since = NULL;
  r->headers_in.range = NULL;
  corelane_note_fill(r);
}

/* No more of it to disk, either: its file is nobody's any more. */
static void keep_no_more(ngx_http_request_t *r) {
  ngx_event_pipe_t *p = r->upstream->pipe;

  r->upstream->cacheable = 0;
  p->cacheable = 0;
  p->max_temp_file_size = p->temp_file->offset;
  ngx_http_file_cache_free(r->cache, p->temp_file);
}

void corelane_bound_kept(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_http_upstream_t *u = r->upstream;
  off_t blocks, bytes;

  if (!u->cacheable || r->cache == NULL) {
    return;
  }
  bytes = u->pipe->temp_file->offset;
  blocks = (bytes + r->cache->file_cache->bsize - 1) / r->cache->file_cache->bsize;
  open_blocks += blocks - ctx->kept_blocks;
  ctx->kept_blocks = blocks;
  if (bytes > (off_t) conf->kept_max || !has_room(r)) {
    keep_no_more(r);
  }
}

/*
 * Who has waited for a page looks when it is there. HAProxy has sent it on by then to the request that had it rendered,
 * but epoll says first which connection had anything to tell first: one whose request HAProxy took a moment before
 * comes ahead of it, would find no page, and have it rendered again [measured: with 7 of 100 herds]. So everybody looks
 * a round of events later; and nginx reads a large page in several rounds [2 of 60 herds for 2 MB], so who looks for
 * one that is still being kept comes back.
 */
#include "corelane.h"

/* Of the page nothing is missing but what is on its way through a socket of this pod. */
#define AGAIN_MS 1
#define WAIT_MS_MAX 1000

/* A page that is just being kept. */
typedef struct {
  ngx_queue_t queue;
  ngx_http_cache_t *cache;
} fill_t;

static ngx_queue_t fills;

typedef struct {
  ngx_event_t event;
  ngx_uint_t is_waiting;
  ngx_msec_t begin;
} pause_t;

static void forget_fill(void *data) {
  fill_t *fill = data;

  ngx_queue_remove(&fill->queue);
}

void corelane_note_fill(ngx_http_request_t *r) {
  ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(fill_t));
  fill_t *fill;

  if (cleanup == NULL) {
    return;
  }
  fill = cleanup->data;
  fill->cache = r->cache;
  ngx_queue_insert_tail(&fills, &fill->queue);
  cleanup->handler = forget_fill;
}

/* `updated`: it is kept whole, or never will be. */
static ngx_uint_t is_being_kept(ngx_http_cache_t *wanted) {
  ngx_queue_t *q;
  fill_t *fill;

  for (q = ngx_queue_head(&fills); q != ngx_queue_sentinel(&fills); q = ngx_queue_next(q)) {
    fill = ngx_queue_data(q, fill_t, queue);
    if (!fill->cache->updated && ngx_memcmp(fill->cache->key, wanted->key, NGX_HTTP_CACHE_KEY_LEN) == 0) return 1;
  }
  return 0;
}

static void go_on(ngx_event_t *ev) {
  ngx_http_request_t *r = ev->data;
  ngx_connection_t *c = r->connection;

  ngx_http_core_run_phases(r);
  ngx_http_run_posted_requests(c);
}

static void forget(void *data) {
  pause_t *pause = data;

  if (pause->event.posted) {
    ngx_delete_posted_event(&pause->event);
  }
  if (pause->event.timer_set) {
    ngx_del_timer(&pause->event);
  }
}

/* That of the request, which may look several times. NULL: no memory. */
static pause_t *pause_of(ngx_http_request_t *r) {
  ngx_pool_cleanup_t *cleanup;
  pause_t *pause;

  for (cleanup = r->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
    if (cleanup->handler == forget) return cleanup->data;
  }
  cleanup = ngx_pool_cleanup_add(r->pool, sizeof(pause_t));
  if (cleanup == NULL) {
    return NULL;
  }
  cleanup->handler = forget;
  pause = cleanup->data;
  ngx_memzero(pause, sizeof(pause_t));
  pause->event.handler = go_on;
  pause->event.data = r;
  pause->event.log = r->connection->log;
  return pause;
}

/*
 * Frees the buffer of an answer that has led the request here. nginx has copies of what was in its head, and would keep
 * a buffer for each look. `cleanup` is set until nginx has done with the answer.
 */
static void free_answer(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;

  if (u != NULL && u->cleanup == NULL && !r->cached && u->buffer.start != NULL) {
    (void) ngx_pfree(r->pool, u->buffer.start);
    u->buffer.start = NULL;
  }
}

ngx_int_t corelane_look_again(ngx_http_request_t *r) {
  corelane_loc_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_corelane_module);
  pause_t *pause;

  free_answer(r);
  /* It looks for the first time: HAProxy has not been asked. */
  if (!conf->looks_again || r->upstream == NULL) {
    return NGX_DECLINED;
  }
  pause = pause_of(r);
  if (pause == NULL) {
    return NGX_ERROR;
  }
  if (!pause->is_waiting) {
    pause->is_waiting = 1;
    pause->begin = ngx_current_msec;
    ngx_post_event(&pause->event, &ngx_posted_next_events);
    return NGX_DONE;
  }
  /* The key it looked for in vain. */
  if (r->cache != NULL && is_being_kept(r->cache) && ngx_current_msec - pause->begin < WAIT_MS_MAX) {
    ngx_add_timer(&pause->event, AGAIN_MS);
    return NGX_DONE;
  }
  pause->is_waiting = 0;
  return NGX_DECLINED;
}

void corelane_init_look_again(void) {
  ngx_queue_init(&fills);
}

/*
 * Answers to requests without a place: pings, errors that nginx makes before a request may have one, "full". Nobody who
 * asks for a place finds them, and each keeps its head, what answers it and what the kernel has of it until its client
 * has gone: one that goes on to send its body, does not close (lingering_close), or does not read. So they have places
 * of their own, and here the oldest goes: nothing waits for such an answer but its client, and it has been given.
 * Who asks for them again and again is told to come with a new connection.
 */
#include "corelane.h"

typedef struct {
  ngx_queue_t queue;
  ngx_http_request_t *request;
} answer_t;

/* So many may a connection have at once, and one more each interval. */
#define ANSWERS_AT_ONCE 2
#define ANSWER_INTERVAL_MS 1000

/* The oldest one first. */
static ngx_queue_t answers;
static ngx_int_t taken;
static ngx_http_output_header_filter_pt next_header_filter;

static void give_back(void *data) {
  answer_t *answer = data;

  ngx_queue_remove(&answer->queue);
  taken--;
}

static void forget(void *data) { (void) data; }

static ngx_uint_t is_counted(ngx_http_request_t *r) {
  ngx_pool_cleanup_t *cleanup;

  for (cleanup = r->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
    if (cleanup->handler == give_back) return 1;
  }
  return 0;
}

static void cut_oldest(void) {
  answer_t *oldest = ngx_queue_data(ngx_queue_head(&answers), answer_t, queue);

  corelane_cut(oldest->request);
}

static ngx_int_t take_answer(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(answer_t));
  answer_t *answer;

  if (cleanup == NULL) {
    return NGX_ERROR;
  }
  /* Not this one, which is not among them yet. */
  if (taken >= conf->answers_max && taken > 0) {
    cut_oldest();
  }
  cleanup->handler = give_back;
  answer = cleanup->data;
  answer->request = r;
  ngx_queue_insert_tail(&answers, &answer->queue);
  taken++;
  return NGX_OK;
}

/* How many of them a connection has had: kept in its pool, where a clean-up's handler is its name. */
static ngx_uint_t *answers_of(ngx_connection_t *c) {
  ngx_pool_cleanup_t *cleanup;

  for (cleanup = c->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
    if (cleanup->handler == forget) return cleanup->data;
  }
  cleanup = ngx_pool_cleanup_add(c->pool, sizeof(ngx_uint_t));
  if (cleanup == NULL) {
    return NULL;
  }
  cleanup->handler = forget;
  *(ngx_uint_t *) cleanup->data = 0;
  return cleanup->data;
}

/*
 * A connection may have one such answer a second. They cost nobody a place, only nginx' time, and who asks again at
 * once has all of that: 2,500 connections had 29,000 pings a second (11 each), and honest clients a p99 of 104 ms
 * instead of 12. So it is closed, and opening the next one takes its client longer than asking. Answers to overload do
 * not count: a proxy in front, which shares its connections among all clients, may get hundreds.
 */
static ngx_int_t mind_rate(ngx_http_request_t *r) {
  ngx_uint_t status = r->headers_out.status;
  ngx_uint_t *answered;

  if (status == NGX_HTTP_TOO_MANY_REQUESTS || status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
    return NGX_OK;
  }
  answered = answers_of(r->connection);
  if (answered == NULL) {
    return NGX_ERROR;
  }
  *answered += 1;
  if (*answered > ANSWERS_AT_ONCE + (ngx_current_msec - r->connection->start_time) / ANSWER_INTERVAL_MS) {
    r->keepalive = 0;
  }
  return NGX_OK;
}

/* However an answer is made, its head comes through here. */
static ngx_int_t header_filter(ngx_http_request_t *r) {
  if (r == r->main && !corelane_has_place(r) && !is_counted(r)
      && (take_answer(r) != NGX_OK || mind_rate(r) != NGX_OK)) {
    return NGX_ERROR;
  }
  return next_header_filter(r);
}

void corelane_init_answers(void) {
  ngx_queue_init(&answers);
  taken = 0;
  /* When nginx reads its configuration this would be too early: its own filter, the last one, forgets those before. */
  next_header_filter = ngx_http_top_header_filter;
  ngx_http_top_header_filter = header_filter;
}

/*
 * Answers to requests without a place: pings, errors that nginx makes before a request may have one, "full". Nobody who
 * asks for a place finds them, and each keeps its head, what answers it and what the kernel has of it until its client
 * has gone: one that goes on to send its body, does not close (lingering_close), or does not read. So they have places
 * of their own, and here the oldest goes: nothing waits for such an answer but its client, and it has been given.
 */
#include "corelane.h"

typedef struct {
  ngx_queue_t queue;
  ngx_http_request_t *request;
} answer_t;

/* The oldest one first. */
static ngx_queue_t answers;
static ngx_int_t taken;
static ngx_http_output_header_filter_pt next_header_filter;

static void give_back(void *data) {
  answer_t *answer = data;

  ngx_queue_remove(&answer->queue);
  taken--;
}

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

/* However an answer is made, its head comes through here. */
static ngx_int_t header_filter(ngx_http_request_t *r) {
  if (r == r->main && !corelane_has_place(r) && !is_counted(r) && take_answer(r) != NGX_OK) {
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

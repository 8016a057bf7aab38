/*
 * When connections run short nginx closes idle ones. A connection with half of a request's head is not idle for nginx:
 * as many as there are connections would keep all others out for client_header_timeout. So the old ones of these go
 * first. They also go when there are more of them than memory is for: a head of many short lines takes twice as much of
 * it as one of few.
 */
#include "corelane.h"

/* nginx closes idle connections when 1/16 is left. */
#define FEW_LEFT(connections) ((connections) / 8)
/* Closed at a time, because looking for them takes a millisecond where there are 10,000 connections. */
#define AT_ONCE(connections) ((connections) / 64 + 1)
/*
 * An honest head is here within a round trip; where nobody is so slow, those go that may yet be. Not later: nginx
 * itself closes connections that have not sent anything yet, and in a burst of half heads these are the honest ones.
 */
#define HONEST_MS 1000
#define YOUNG_MS 20
/* Where there is nothing to be closed nobody looks again before. */
#define PAUSE_MS 20

static ngx_msec_t looks_again;
static ngx_int_t (*process_events_of_nginx)(ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags);

/* The request of whose head nginx has a part; NULL if there is none. */
static ngx_http_request_t *half_head(ngx_connection_t *c) {
  ngx_http_log_ctx_t *ctx;
  ngx_http_request_t *r;

  /* Free, a listening socket, a connection to HAProxy, idle. */
  if (c->fd == (ngx_socket_t) -1 || c->read->accept || c->listening == NULL || c->reusable) {
    return NULL;
  }
  if (c->log == NULL || c->log->data == NULL) {
    return NULL;
  }
  ctx = c->log->data;
  r = ctx->request;
  /* A request of HTTP/0.9 stays in this state; one that is at work has a handler. */
  return r != NULL && r->http_state == NGX_HTTP_READING_REQUEST_STATE && r->write_event_handler == NULL ? r : NULL;
}

static ngx_msec_int_t age_ms(ngx_http_request_t *r) {
  ngx_time_t *now = ngx_timeofday();

  return (now->sec - r->start_sec) * 1000 + ((ngx_msec_int_t) now->msec - (ngx_msec_int_t) r->start_msec);
}

/* As nginx itself does when client_header_timeout has passed. */
static void close_half_head(ngx_connection_t *c) {
  c->read->timedout = 1;
  c->read->handler(c->read);
}

static ngx_uint_t close_half_heads(ngx_cycle_t *cycle, ngx_uint_t max, ngx_msec_int_t older_than_ms) {
  ngx_uint_t i, closed = 0;
  ngx_http_request_t *r;

  for (i = 0; i < cycle->connection_n && closed < max; i++) {
    r = half_head(&cycle->connections[i]);
    if (r != NULL && age_ms(r) >= older_than_ms) {
      close_half_head(&cycle->connections[i]);
      closed++;
    }
  }
  return closed;
}

static ngx_uint_t may_look(void) {
  return (ngx_msec_int_t) (ngx_current_msec - looks_again) >= 0;
}

static void look_later(void) {
  looks_again = ngx_current_msec + PAUSE_MS;
}

static void make_room(ngx_cycle_t *cycle) {
  ngx_uint_t max = AT_ONCE(cycle->connection_n);

  if (may_look() && close_half_heads(cycle, max, HONEST_MS) == 0 && close_half_heads(cycle, max, YOUNG_MS) == 0) {
    look_later();
  }
}

/* All but idle ones: half heads, and what has a bound of its own. */
static ngx_uint_t too_many(ngx_cycle_t *cycle) {
  corelane_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_corelane_module);
  ngx_uint_t busy = cycle->connection_n - cycle->free_connection_n - cycle->reusable_connections_n;

  return busy > (ngx_uint_t) conf->busy_max ? busy - conf->busy_max : 0;
}

/* Here memory runs short, so it matters how many go, and not how old they are: the oldest first all the same. */
static void free_memory(ngx_cycle_t *cycle, ngx_uint_t count) {
  ngx_uint_t closed = close_half_heads(cycle, count, HONEST_MS);

  if (closed < count) closed += close_half_heads(cycle, count - closed, YOUNG_MS);
  if (closed < count) closed += close_half_heads(cycle, count - closed, 0);
  if (closed == 0) look_later();
}

/*
 * After each round of events, of which nginx takes 512 at most. When a connection is accepted would be too early: the
 * heads of all may come later, and at once.
 */
static ngx_int_t process_events(ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags) {
  ngx_int_t rc = process_events_of_nginx(cycle, timer, flags);
  ngx_uint_t count = too_many(cycle);

  if (count > 0 && may_look()) {
    free_memory(cycle, count);
  }
  return rc;
}

void corelane_init_heads(void) {
  process_events_of_nginx = ngx_event_actions.process_events;
  ngx_event_actions.process_events = process_events;
}

void corelane_init_connection(ngx_connection_t *c) {
  ngx_cycle_t *cycle = (ngx_cycle_t *) ngx_cycle;

  if (cycle->free_connection_n < FEW_LEFT(cycle->connection_n)) {
    make_room(cycle);
  }
  ngx_http_init_connection(c);
  corelane_expect_proxy_header(c);
}

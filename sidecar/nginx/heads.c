/*
 * When connections run short nginx closes idle ones. A connection with half of a request's head is not idle for nginx:
 * as many as there are connections would keep all others out for client_header_timeout. So the old ones of these go
 * first.
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

static ngx_uint_t close_half_heads(ngx_cycle_t *cycle, ngx_msec_int_t older_than_ms) {
  ngx_uint_t i, closed = 0, max = AT_ONCE(cycle->connection_n);
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

static void make_room(ngx_cycle_t *cycle) {
  if ((ngx_msec_int_t) (ngx_current_msec - looks_again) < 0) {
    return;
  }
  if (close_half_heads(cycle, HONEST_MS) == 0 && close_half_heads(cycle, YOUNG_MS) == 0) {
    looks_again = ngx_current_msec + PAUSE_MS;
  }
}

void corelane_init_connection(ngx_connection_t *c) {
  ngx_cycle_t *cycle = (ngx_cycle_t *) ngx_cycle;

  if (cycle->free_connection_n < FEW_LEFT(cycle->connection_n)) {
    make_room(cycle);
  }
  ngx_http_init_connection(c);
  corelane_expect_proxy_header(c);
}

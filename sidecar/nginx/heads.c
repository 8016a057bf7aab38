/*
 * When connections run short nginx closes idle ones. A connection with half of a request's head is not idle for nginx:
 * as many as there are connections would keep all others out for client_header_timeout. So the old ones of these go
 * first. They also go when there are more of them than memory is for: a head of many short lines takes twice as much of
 * it as one of few.
 */
#include "corelane.h"

/* nginx closes idle connections when 1/16 is left. */
#define FEW_LEFT(connections) ((connections) / 8)
/* Else it is not they that take the connections, and nginx finds idle ones to be closed. */
#define MANY_HEADS(connections) ((connections) / 8)
/* Closed at a time, because looking for them takes a millisecond where there are 10,000 connections. */
#define AT_ONCE(connections) ((connections) / 64 + 1)
#define WORTH_A_LOOK(at_once) ((at_once) / 8 + 1)
/*
 * An honest head is here within a round trip; where nobody is so slow, those go that may yet be. Not later: nginx
 * itself closes connections that have not sent anything yet, and in a burst of half heads these are the honest ones.
 */
#define HONEST_MS 1000
#define YOUNG_MS 20
/* Where there is little to be closed nobody looks again before. */
#define PAUSE_MS 20

/* How many half heads there are: all, and by age. Each class is twice as old as the one before. */
#define CLASSES 32
typedef struct {
  ngx_uint_t all;
  /* From HONEST_MS on. */
  ngx_uint_t slow;
  ngx_uint_t by_class[CLASSES];
} heads_t;

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
  ngx_msec_int_t ms = (now->sec - r->start_sec) * 1000 + ((ngx_msec_int_t) now->msec - (ngx_msec_int_t) r->start_msec);

  return ngx_max(ms, 0);
}

/* Of class n are those from YOUNG_MS * 2^(n - 1) on, of class 0 those that are younger than YOUNG_MS. */
static ngx_msec_int_t youngest_ms(ngx_uint_t class) {
  return class == 0 ? 0 : (ngx_msec_int_t) YOUNG_MS << (class - 1);
}

static heads_t count_half_heads(ngx_cycle_t *cycle) {
  heads_t heads;
  ngx_http_request_t *r;
  ngx_uint_t i, class;
  ngx_msec_int_t age;

  ngx_memzero(&heads, sizeof(heads));
  for (i = 0; i < cycle->connection_n; i++) {
    r = half_head(&cycle->connections[i]);
    if (r == NULL) continue;
    age = age_ms(r);
    for (class = 0; class < CLASSES - 1 && age >= youngest_ms(class + 1); class++) /* void */;
    heads.all++;
    heads.slow += age >= HONEST_MS;
    heads.by_class[class]++;
  }
  return heads;
}

/* Such an age that `max` of them have it, or a few more; 0 if there are not so many. */
static ngx_msec_int_t age_of_oldest(heads_t *heads, ngx_uint_t max) {
  ngx_uint_t class = CLASSES, found = 0;

  while (class > 0 && found < max) found += heads->by_class[--class];
  return youngest_ms(class);
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
  ngx_uint_t max = AT_ONCE(cycle->connection_n), closed = 0;
  heads_t heads = count_half_heads(cycle);
  ngx_msec_int_t least = heads.slow >= WORTH_A_LOOK(max) ? HONEST_MS : YOUNG_MS;

  if (heads.all > MANY_HEADS(cycle->connection_n)) {
    closed = close_half_heads(cycle, max, ngx_max(age_of_oldest(&heads, max), least));
  }
  if (closed < WORTH_A_LOOK(max)) look_later();
}

/* All but idle ones: half heads, and what has a bound of its own. */
static ngx_uint_t too_many(ngx_cycle_t *cycle) {
  corelane_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_corelane_module);
  ngx_uint_t busy = cycle->connection_n - cycle->free_connection_n - cycle->reusable_connections_n;

  return busy > (ngx_uint_t) conf->busy_max ? busy - conf->busy_max : 0;
}

/*
 * Here memory runs short, so it matters how many go, and not how old they are: the oldest first all the same. And some
 * more of those that are not young, so that nobody need look again at once.
 */
static void free_memory(ngx_cycle_t *cycle, ngx_uint_t count) {
  ngx_uint_t max = ngx_max(count, AT_ONCE(cycle->connection_n));
  heads_t heads = count_half_heads(cycle);
  ngx_uint_t closed = close_half_heads(cycle, max, ngx_max(age_of_oldest(&heads, max), YOUNG_MS));

  if (closed < count) closed += close_half_heads(cycle, count - closed, 0);
  /* The others have bounds of their own: they are many for a moment only. */
  if (closed < count) look_later();
}

/*
 * After each round of events, of which nginx takes so many at most (epoll_events). When a connection is accepted would
 * be too early: the heads of all may come later, and at once.
 */
static ngx_int_t process_events(ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags) {
  ngx_int_t rc = process_events_of_nginx(cycle, timer, flags);
  ngx_uint_t count = too_many(cycle);

  if (count > 0 && may_look()) {
    free_memory(cycle, count);
  }
  corelane_begin_round();
  return rc;
}

void corelane_init_heads(void) {
  process_events_of_nginx = ngx_event_actions.process_events;
  ngx_event_actions.process_events = process_events;
}

void corelane_init_connection(ngx_connection_t *c) {
  ngx_cycle_t *cycle = (ngx_cycle_t *) ngx_cycle;

  if (cycle->free_connection_n < FEW_LEFT(cycle->connection_n) && may_look()) {
    make_room(cycle);
  }
  ngx_http_init_connection(c);
  if (!c->destroyed) corelane_describe_errors(c);
  corelane_expect_proxy_header(c);
}

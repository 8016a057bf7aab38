/*
 * Nobody has two requests in one round of events. nginx reads the next request of a connection in the same round if it
 * is here already, and the one after it, until there is none: who asks faster than nginx answers would keep all others
 * waiting, for ever and with a single connection.
 */
#include "corelane.h"

static ngx_event_t end;
static ngx_connection_t end_connection;

/* What was posted after it has been caused by this round. Before the next one nginx looks at all other connections. */
static void end_round(ngx_event_t *ev) {
  if (!ngx_queue_empty(&ngx_posted_events)) {
    ngx_queue_add(&ngx_posted_next_events, &ngx_posted_events);
    ngx_queue_init(&ngx_posted_events);
  }
}

void corelane_begin_round(void) {
  ngx_post_event(&end, &ngx_posted_events);
}

void corelane_init_rounds(ngx_log_t *log) {
  end_connection.fd = (ngx_socket_t) -1;
  end.handler = end_round;
  end.data = &end_connection;
  end.log = log;
}

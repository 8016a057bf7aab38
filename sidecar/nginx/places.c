/*
 * Places for requests, for those with a body, for those with a large one, and for those with a large head. Where all
 * are taken, that one goes which waits for nothing but its own client, and for the slowest. Who is rendered or waits in
 * the queue stays. If nobody waits, who comes is refused.
 */
#include "corelane.h"

/* Evicted at a time, because looking at all of them takes some microseconds. */
#define AT_ONCE_MAX 32
#define AT_ONCE(places) ((places) / 16)
/* Nobody is judged before: a client may be a round trip or two away. */
#define GRACE_MS 500
/* A client that has taken or given nothing for so long is slower than any other one. */
#define STALLED_MS 5000
/*
 * The client of a response that still comes from a worker may have gone, if it has read nothing for so long. Also what
 * a client may pause for while this nginx is to end.
 */
#define AWAY_MS 60000
#define TICK_MS 1000
/* Statuses that nobody uses: error_page leads them to the answers. */
#define EVICTED 417
#define REFUSED 420
/* What the access log says of a response that is cut: the client cannot be told any more. */
#define TOO_SLOW "response-too-slow"

enum { REQUEST = 1, BODY = 2, LARGE_BODY = 4, LARGE_HEAD = 8 };
enum { HOLDS_NOTHING, HOLDS_SLOT, HOLDS_CLASS, HOLDS };

/* A request that has a place, or has got none. */
typedef struct {
  /* Why it has got none, or NULL. */
  const char *refused;
  ngx_queue_t queue;
  ngx_http_request_t *request;
  ngx_uint_t kinds;
  ngx_msec_t since;
  /* Length of its head. */
  off_t head_bytes;
  /* What its client had been sent when the tick came, and since when that has not changed although there is more. */
  off_t sent;
  ngx_msec_t unmoved_since;
  /* What its client holds of a worker: HOLDS_NOTHING, a render slot or a place of a class. And since when. */
  ngx_uint_t holds;
  ngx_msec_t holds_since;
} place_t;

/* One that may be evicted. Who comes first in this order goes first. */
typedef struct {
  place_t *place;
  ngx_uint_t is_young;
  /* Bytes per second; of one that is young or stalled -(milliseconds). */
  int64_t speed;
} candidate_t;

static ngx_queue_t places;
static ngx_int_t taken[LARGE_HEAD + 1];
static ngx_event_t tick;
static ngx_connection_t tick_connection;

static void count(ngx_uint_t kinds, ngx_int_t by) {
  ngx_uint_t kind;

  for (kind = REQUEST; kind <= LARGE_HEAD; kind *= 2) {
    if (kinds & kind) {
      taken[kind] += by;
    }
  }
}

static void give_back(void *data) {
  place_t *place = data;

  if (place->refused != NULL) {
    return;
  }
  ngx_queue_remove(&place->queue);
  count(place->kinds, -1);
}

static ngx_uint_t body_of(ngx_http_request_t *r, corelane_conf_t *conf) {
  if (r->headers_in.chunked) {
    return BODY | LARGE_BODY;
  }
  if (r->headers_in.content_length_n <= 0) {
    return 0;
  }
  return r->headers_in.content_length_n > (off_t) conf->body_memory ? BODY | LARGE_BODY : BODY;
}

/*
 * By its bytes, or by the buffers that its connection holds. Blanks before a value fill a buffer, and nginx does not
 * count them; a request that came behind a large one keeps the buffers of that one.
 */
static ngx_uint_t has_large_head(ngx_http_request_t *r) {
  ngx_http_connection_t *hc = r->http_connection;
  ngx_int_t buffers = hc->nbusy;
  ngx_chain_t *spare;

  for (spare = hc->free; spare != NULL; spare = spare->next) buffers++;
  return buffers > 1 || corelane_head_bytes(r) > CORELANE_ORDINARY_HEAD_MAX;
}

static ngx_uint_t kinds_of(ngx_http_request_t *r, corelane_conf_t *conf) {
  return REQUEST | body_of(r, conf) | (has_large_head(r) ? LARGE_HEAD : 0);
}

/*
 * Answered: nginx only waits for its client to go (lingering_close). The connection of a request that is at work is
 * never reusable.
 */
static ngx_uint_t is_lingering(place_t *place) {
  return place->request->connection->reusable;
}

/* nginx waits for the next part of its body. */
static ngx_uint_t is_sending(place_t *place) {
  ngx_http_request_t *r = place->request;

  if (is_lingering(place) || !(place->kinds & BODY)) return 0;
  return r->request_body && r->request_body->rest != 0 && r->connection->read->timer_set;
}

/* nginx waits until it has read more of its response. */
static ngx_uint_t is_reading(place_t *place) {
  ngx_http_request_t *r = place->request;

  return r->header_sent && r->connection->write->timer_set && !(r->upstream && r->upstream->upgrade);
}

static ngx_msec_int_t since(ngx_msec_t ms) {
  return ngx_max((ngx_msec_int_t) (ngx_current_msec - ms), 0);
}

/*
 * For how long its client has read nothing although there was something, by what the tick has seen. nginx' own timer
 * of a stream begins anew each time that there is more to write.
 */
static ngx_msec_int_t unread_ms(place_t *place) {
  if (!is_reading(place) || place->request->connection->sent != place->sent) return 0;
  return since(place->unmoved_since);
}

/* How long nothing has moved: nginx sets the timer each time that it has read or written something, and has to wait. */
static ngx_msec_int_t still_ms(place_t *place, ngx_uint_t sending) {
  ngx_http_request_t *r = place->request;
  ngx_connection_t *c = r->connection;
  ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
  ngx_msec_int_t unread = unread_ms(place);

  if (sending) return since(c->read->timer.key - core->client_body_timeout);
  return ngx_max(since(c->write->timer.key - core->send_timeout), unread);
}

/* Of a stream it is the client's turn again and again. */
static corelane_turn_t turn_of(place_t *place, ngx_uint_t sending) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(place->request, ngx_http_corelane_module);
  corelane_turn_t turn = {place->since, sending ? place->head_bytes : 0};

  return !sending && ctx != NULL && ctx->first_byte_ms >= 0 ? ctx->turn : turn;
}

static candidate_t judge(place_t *place, ngx_uint_t sending) {
  ngx_http_request_t *r = place->request;
  corelane_turn_t turn = turn_of(place, sending);
  ngx_msec_int_t age = since(turn.begin);
  off_t bytes = (sending ? r->request_length : r->connection->sent) - turn.had;
  candidate_t candidate = {place, age < GRACE_MS, 0};

  if (is_lingering(place)) {
    candidate.is_young = 0;
    candidate.speed = INT64_MIN;
    return candidate;
  }
  if (candidate.is_young) {
    candidate.speed = -age;
  } else if (still_ms(place, sending) >= STALLED_MS) {
    candidate.speed = -still_ms(place, sending);
  } else {
    candidate.speed = (int64_t) bytes * 1000 / age;
  }
  return candidate;
}

static ngx_uint_t goes_before(candidate_t *a, candidate_t *b) {
  return a->is_young != b->is_young ? b->is_young : a->speed < b->speed;
}

/* Of a response that has begun nothing can be said but to the log: $sent_http_x_corelane_error. */
static void tell_log(ngx_http_request_t *r) {
  ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);

  if (header != NULL) {
    header->hash = 1;
    header->next = NULL;
    ngx_str_set(&header->key, "X-Corelane-Error");
    ngx_str_set(&header->value, TOO_SLOW);
  }
}

/* Nginx itself ends a response whose client has read nothing for timeouts.clientSend, and says so nowhere. */
ngx_int_t corelane_explain_cut(ngx_http_request_t *r) {
  static ngx_str_t name = ngx_string("X-Corelane-Error");

  if (r == r->main && r->header_sent && r->connection->write->timedout && corelane_find_sent(r, &name) == NULL) {
    tell_log(r);
  }
  return NGX_OK;
}

/* As nginx itself does when worker_shutdown_timeout has passed. */
void corelane_cut(ngx_http_request_t *r) {
  ngx_connection_t *c = r->connection;

  /* Reset: nothing of it stays in the kernel. */
  c->timedout = 1;
  c->close = 1;
  c->read->handler(c->read);
}

static void cut(ngx_http_request_t *r) {
  tell_log(r);
  corelane_cut(r);
}

static void evict(place_t *place) {
  ngx_http_request_t *r = place->request;
  ngx_connection_t *c = r->connection;

  if (is_lingering(place)) {
    /* As nginx itself does when connections run short. */
    c->close = 1;
    c->read->handler(c->read);
    return;
  }
  if (!is_sending(place)) {
    cut(r);
    return;
  }
  /* What is still to come of its body is no request. */
  r->keepalive = 0;
  r->read_event_handler = ngx_http_block_reading;
  ngx_del_timer(c->read);
  ngx_http_finalize_request(r, EVICTED);
  ngx_http_run_posted_requests(c);
}

/* Puts it among the first of at most `max`. */
static ngx_uint_t insert(candidate_t *first, ngx_uint_t found, ngx_uint_t max, candidate_t candidate) {
  ngx_uint_t i;

  if (found == max) {
    if (!goes_before(&candidate, &first[found - 1])) {
      return found;
    }
    found--;
  }
  for (i = found; i > 0 && goes_before(&candidate, &first[i - 1]); i--) {
    first[i] = first[i - 1];
  }
  first[i] = candidate;
  return found + 1;
}

static void evict_slowest(ngx_uint_t kind, ngx_uint_t max) {
  candidate_t first[AT_ONCE_MAX], candidate;
  ngx_uint_t found = 0, i;
  ngx_queue_t *q;

  for (q = ngx_queue_head(&places); q != ngx_queue_sentinel(&places); q = ngx_queue_next(q)) {
    place_t *place = ngx_queue_data(q, place_t, queue);
    ngx_uint_t sending = is_sending(place);

    if ((place->kinds & kind) && (sending || is_reading(place) || is_lingering(place))) {
      candidate = judge(place, sending);
      found = insert(first, found, max, candidate);
    }
  }
  /* Of those that are young only one: it may be honest. */
  for (i = 0; i < found && (i == 0 || !first[i].is_young); i++) {
    evict(first[i].place);
  }
}

/* Whether there is a place of this kind, be it that of somebody else. */
static ngx_uint_t is_room(ngx_uint_t kinds, ngx_uint_t kind, ngx_int_t max) {
  if (!(kinds & kind) || taken[kind] < max) {
    return 1;
  }
  evict_slowest(kind, ngx_max(1, ngx_min(AT_ONCE(max), AT_ONCE_MAX)));
  return taken[kind] < max;
}

/* All of its share of the disk is used: HAProxy, and the worker behind it, wait for the client. */
static ngx_uint_t holds_worker(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;
  ngx_event_pipe_t *p = u ? u->pipe : NULL;

  return p && u->peer.connection && p->temp_file && !p->upstream_done && !p->upstream_eof && !p->upstream_error
         /* nginx leaves unread what has come: the file has been full before, and may be no more. */
         && p->upstream->read->ready && p->temp_file->offset + p->temp_file_write_size > p->max_temp_file_size;
}

/* Its worker goes on for a client that may have gone: an event stream whose events are small never fills the file. */
static ngx_uint_t may_be_in_vain(place_t *place) {
  ngx_http_upstream_t *u = place->request->upstream;
  ngx_event_pipe_t *p = u ? u->pipe : NULL;

  return p && u->peer.connection && !p->upstream_done && !p->upstream_eof && !p->upstream_error
         && unread_ms(place) >= AWAY_MS;
}

static ngx_uint_t note_hold(place_t *place) {
  if (!holds_worker(place->request) && !may_be_in_vain(place)) {
    place->holds = HOLDS_NOTHING;
  } else if (place->holds == HOLDS_NOTHING) {
    place->holds = corelane_is_of_class(place->request) ? HOLDS_CLASS : HOLDS_SLOT;
    place->holds_since = ngx_current_msec;
  }
  return place->holds;
}

/* A client that reads on may hold a worker for a while, one that does not may not. */
static ngx_uint_t holds_too_long(place_t *place) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(place->request, ngx_http_corelane_module);

  return since(place->holds_since) >= (ngx_msec_int_t) conf->worker_held_max
         || (is_reading(place) && still_ms(place, 0) >= STALLED_MS);
}

/*
 * A worker goes on with a few of them (docs/adr/0060-streams-hold-no-slot.md), and a class has places of its own. So it
 * matters only where there are more: of those that hold for too long the slowest go.
 */
static void cut_holders(ngx_uint_t what, ngx_int_t too_many) {
  candidate_t first[AT_ONCE_MAX];
  ngx_uint_t found = 0, i, max = ngx_max(0, ngx_min(too_many, AT_ONCE_MAX));
  ngx_queue_t *q;

  for (q = ngx_queue_head(&places); max > 0 && q != ngx_queue_sentinel(&places); q = ngx_queue_next(q)) {
    place_t *place = ngx_queue_data(q, place_t, queue);

    if (place->holds == what && holds_too_long(place)) {
      found = insert(first, found, max, judge(place, 0));
    }
  }
  for (i = 0; i < found; i++) {
    cut(first[i].place->request);
  }
}

/*
 * A client that reads nothing of a stream. Of any other response nginx itself sees it (corelane_explain_cut), unless a
 * pod that stops would wait for it.
 */
static ngx_uint_t reads_nothing(place_t *place) {
  ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(place->request, ngx_http_core_module);
  ngx_msec_int_t unread = unread_ms(place), max = (ngx_msec_int_t) core->send_timeout;

  if (unread == 0) {
    place->sent = place->request->connection->sent;
    place->unmoved_since = ngx_current_msec;
  }
  return unread >= (ngx_exiting ? ngx_min(max, AWAY_MS) : max);
}

static void look_at_clients(ngx_event_t *ev) {
  corelane_conf_t *conf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_corelane_module);
  ngx_int_t held[HOLDS] = {0};
  ngx_queue_t *q, *next;

  for (q = ngx_queue_head(&places); q != ngx_queue_sentinel(&places); q = next) {
    place_t *place = ngx_queue_data(q, place_t, queue);

    next = ngx_queue_next(q);
    if (reads_nothing(place)) {
      cut(place->request);
    } else {
      held[note_hold(place)]++;
    }
  }
  cut_holders(HOLDS_SLOT, held[HOLDS_SLOT] - conf->held_slots_max);
  cut_holders(HOLDS_CLASS, held[HOLDS_CLASS] - conf->held_classes_max);
  if (!ngx_queue_empty(&places)) {
    ngx_add_timer(ev, TICK_MS);
  }
}

void corelane_init_places(ngx_log_t *log) {
  ngx_queue_init(&places);
  ngx_memzero(taken, sizeof(taken));
  tick_connection.fd = (ngx_socket_t) -1;
  tick.handler = look_at_clients;
  tick.data = &tick_connection;
  tick.log = log;
  tick.cancelable = 1;
}

/* A named location sends a request through this phase once more, and takes away the module's context of it. */
static place_t *place_of(ngx_http_request_t *r) {
  ngx_pool_cleanup_t *cleanup;

  for (cleanup = r->main->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
    if (cleanup->handler == give_back) {
      return cleanup->data;
    }
  }
  return NULL;
}

ngx_uint_t corelane_has_place(ngx_http_request_t *r) {
  place_t *place = place_of(r);

  return place != NULL && place->refused == NULL;
}

static place_t *add_place(ngx_http_request_t *r) {
  ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(place_t));
  place_t *place;

  if (cleanup == NULL) {
    return NULL;
  }
  cleanup->handler = give_back;
  place = cleanup->data;
  place->refused = "requests-full";
  place->request = r;
  place->kinds = kinds_of(r, ngx_http_get_module_main_conf(r, ngx_http_corelane_module));
  place->since = ngx_current_msec;
  place->head_bytes = r->request_length;
  place->sent = 0;
  place->unmoved_since = ngx_current_msec;
  place->holds = HOLDS_NOTHING;
  return place;
}

ngx_int_t corelane_take_place(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  corelane_loc_conf_t *location = ngx_http_get_module_loc_conf(r, ngx_http_corelane_module);
  place_t *place;

  /* The page of `fallback` for a refused request is an answer without a place (answers.c). */
  if (location->counts == CORELANE_COUNT_INSIDE || r != r->main || r->err_status != 0 || place_of(r) != NULL) {
    return NGX_DECLINED;
  }
  place = add_place(r);
  if (place == NULL) {
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  if (!is_room(place->kinds, LARGE_BODY, conf->large_bodies_max) || !is_room(place->kinds, BODY, conf->bodies_max)) {
    place->refused = "bodies-full";
    return REFUSED;
  }
  if (!is_room(place->kinds, LARGE_HEAD, conf->large_heads_max)) {
    place->refused = "heads-full";
    return REFUSED;
  }
  if (!is_room(place->kinds, REQUEST, conf->requests_max)) {
    return REFUSED;
  }
  place->refused = NULL;
  count(place->kinds, 1);
  ngx_queue_insert_tail(&places, &place->queue);
  if (!tick.timer_set) {
    ngx_add_timer(&tick, TICK_MS);
  }
  return NGX_DECLINED;
}

ngx_int_t corelane_no_place(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  place_t *place = place_of(r);
  const char *reason = place != NULL && place->refused != NULL ? place->refused : "";

  return corelane_set_value(value, (u_char *) reason, ngx_strlen(reason));
}

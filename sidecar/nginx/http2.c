/*
 * HTTP/2 in clear text, where the RenderService has it (docs/adr/0042-http2.md). All that this module promises for a
 * connection of HTTP/1 is promised here for a stream; nginx 1.26 sees to most of it, this file to the rest:
 * what lies unread when a client has gone is no request; who sends frames has no more of a round than others; who does
 * not read what answers them is closed; so many connections there are, and no more; nothing that is about a connection
 * is in a response.
 */
#include "corelane.h"

/*
 * Read of a connection in a round of events: one head or a few, or the rest of the frame that has begun. nginx would
 * read until there is no more, and a client that sends frames without end had it for itself until 8 MB had come.
 */
#define PART_BYTES 1024
/* Frames that answer frames (PING, SETTINGS) and wait for their client: nginx, which holds 10,000, needs 200 B each. */
#define UNREAD_FRAMES_MAX 256
/* A connection that has taken nothing for so long goes with the stream that makes room, and so do its other streams. */
#define STUCK_MS 500

typedef struct {
  ngx_queue_t queue;
  ngx_connection_t *connection;
  /* It is told to go. */
  ngx_event_t leave;
} client_t;

/* Who has begun no request for the longest time comes first. */
static ngx_queue_t clients;
static ngx_int_t count;
/* Of which a part was read last. */
static ngx_connection_t *has_read;
static ngx_http_output_header_filter_pt next_header_filter;

/* What a connection's data is, it tells by its first member: of HTTP/2 alone it is the connection itself. */
static ngx_uint_t is_http2(ngx_connection_t *c) {
  return *(ngx_connection_t **) c->data == c;
}

static void forget(void *data) {
  client_t *client = data;

  if (client->leave.posted) {
    /* It is two statements. */
    ngx_delete_posted_event(&client->leave);
  }
  ngx_queue_remove(&client->queue);
  count--;
}

/* Kept in its connection's pool, where a clean-up's handler is its name. NULL if it is not known yet. */
static client_t *client_of(ngx_pool_t *pool) {
  ngx_pool_cleanup_t *cleanup;

  for (cleanup = pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
    if (cleanup->handler == forget) return cleanup->data;
  }
  return NULL;
}

/* Has no request but one whose head is not whole. */
static ngx_uint_t is_spare(client_t *client) {
  ngx_http_v2_connection_t *h2c = client->connection->data;
  ngx_http_v2_stream_t *stream = h2c->state.stream;
  ngx_uint_t half = stream != NULL && stream->request->http_state == NGX_HTTP_READING_REQUEST_STATE;

  return h2c->processing == half;
}

/* Without a word: what has been sent is not waited for. */
static void reset(ngx_connection_t *c) {
  c->error = 1;
  c->close = 1;
  c->read->handler(c->read);
}

/* Whether there is a place for one more, be it that of one that has no request. */
static ngx_uint_t is_room(ngx_int_t max) {
  ngx_queue_t *q;

  for (q = ngx_queue_head(&clients); count >= max && q != ngx_queue_sentinel(&clients); q = ngx_queue_next(q)) {
    client_t *client = ngx_queue_data(q, client_t, queue);

    if (is_spare(client)) {
      reset(client->connection);
      break;
    }
  }
  return count < max;
}

/* As nginx does when it stops. */
static void tell_to_leave(ngx_event_t *ev) {
  ngx_connection_t *c = ev->data;
  ngx_http_v2_connection_t *h2c = c->data;

  if (h2c->goaway) return;
  c->close = 1;
  c->read->handler(c->read);
}

static ngx_int_t get_to_know(ngx_connection_t *c, ngx_http_v2_connection_t *h2c) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(h2c->http_connection->conf_ctx, ngx_http_corelane_module);
  ngx_pool_cleanup_t *cleanup;
  client_t *client;

  if (client_of(c->pool) != NULL) return NGX_OK;
  if (!is_room(conf->http2_max)) return NGX_ERROR;
  cleanup = ngx_pool_cleanup_add(c->pool, sizeof(client_t));
  if (cleanup == NULL) return NGX_ERROR;
  cleanup->handler = forget;
  client = cleanup->data;
  client->connection = c;
  ngx_memzero(&client->leave, sizeof(ngx_event_t));
  client->leave.handler = tell_to_leave;
  client->leave.data = c;
  client->leave.log = c->log;
  ngx_queue_insert_tail(&clients, &client->queue);
  count++;
  return NGX_OK;
}

static ngx_uint_t floods(ngx_http_v2_connection_t *h2c) {
  ngx_http_v2_out_frame_t *frame;
  ngx_uint_t unread = 0;

  for (frame = h2c->last_out; frame != NULL; frame = frame->next) unread += frame->stream == NULL;
  return unread > UNREAD_FRAMES_MAX;
}

/* Of a frame that has come in part nginx wants the rest; it may be large, and costs nothing but its bytes. */
static size_t part_of(ngx_http_v2_connection_t *h2c, size_t size) {
  size_t rest = h2c->state.incomplete ? h2c->state.length : 0;

  return ngx_min(size, ngx_max(PART_BYTES, rest));
}

static ssize_t receive(ngx_connection_t *c, u_char *to, size_t size) {
  ngx_http_v2_connection_t *h2c = c->data;

  if (!is_http2(c)) return ngx_recv(c, to, size);
  if (get_to_know(c, h2c) != NGX_OK || floods(h2c)) return NGX_ERROR;
  /* Its client has gone: what it has left behind is not asked for any more, and must not take anybody's place. */
  if (c->read->pending_eof) {
    c->read->eof = 1;
    return 0;
  }
  if (has_read == c) {
    ngx_post_event(c->read, &ngx_posted_next_events);
    return NGX_AGAIN;
  }
  has_read = c;
  return ngx_recv(c, to, part_of(h2c, size));
}

void corelane_init_http2(void) {
  ngx_queue_init(&clients);
  count = 0;
}

void corelane_expect_http2(ngx_connection_t *c) {
  ngx_http_connection_t *hc = c->data;
  ngx_http_v2_srv_conf_t *conf = ngx_http_get_module_srv_conf(hc->conf_ctx, ngx_http_v2_module);

  if (conf->enable) c->recv = receive;
}

void corelane_begin_http2_round(void) { has_read = NULL; }

ngx_int_t corelane_begin_stream(ngx_http_request_t *r) {
  client_t *client = client_of(r->connection->pool);

  if (client != NULL) {
    ngx_queue_remove(&client->queue);
    ngx_queue_insert_tail(&clients, &client->queue);
  }
  /* One with a body takes its time anyway. */
  if (!r->stream->in_closed) return NGX_DECLINED;
  r->read_event_handler = ngx_http_test_reading;
  ngx_post_event(r->connection->write, &ngx_posted_events);
  return NGX_DONE;
}

void corelane_close_gently(ngx_http_request_t *r) {
  ngx_http_v2_connection_t *h2c = r->stream->connection;
  client_t *client;

  /* Nobody, if there is no room: it will be closed. */
  if (get_to_know(h2c->connection, h2c) != NGX_OK) return;
  client = client_of(h2c->connection->pool);
  /* Later: the streams that begin with this one would take it for theirs. */
  ngx_post_event(&client->leave, &ngx_posted_events);
}

/* Whether nginx keeps it for now: what has begun of it must be through. */
static ngx_uint_t cut(ngx_http_request_t *r) {
  ngx_http_v2_stream_t *stream = r->stream;
  ngx_http_v2_connection_t *h2c = stream->connection;
  ngx_http_v2_node_t *node = stream->node;
  ngx_connection_t *c = r->connection;

  c->close = 1;
  c->read->handler(c->read);
  /* nginx says it when it has something else to say. */
  if (!h2c->blocked) (void) ngx_http_v2_send_output_queue(h2c);
  return node->stream == stream;
}

/* For how long nothing has moved: nginx sets the timer each time that it has written something, and has to wait. */
static ngx_msec_int_t stuck_ms(ngx_connection_t *c, ngx_http_v2_connection_t *h2c) {
  ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(h2c->http_connection->conf_ctx, ngx_http_core_module);

  return c->write->timer_set ? (ngx_msec_int_t) (ngx_current_msec - (c->write->timer.key - core->send_timeout)) : 0;
}

void corelane_cut_stream(ngx_http_request_t *r) { (void) cut(r); }

void corelane_evict_stream(ngx_http_request_t *r) {
  ngx_http_v2_connection_t *h2c = r->stream->connection;
  ngx_connection_t *c = h2c->connection;

  if (cut(r) && stuck_ms(c, h2c) >= STUCK_MS && !h2c->blocked) reset(c);
}

void corelane_reset_stream(ngx_http_request_t *r) {
  ngx_connection_t *c = r->stream->connection->connection;

  if (!cut(r)) return;
  c->error = 1;
  c->close = 1;
  ngx_post_event(c->read, &ngx_posted_events);
}

static ngx_uint_t is(ngx_str_t *word, char *other) {
  return word->len == ngx_strlen(other) && ngx_strncasecmp(word->data, (u_char *) other, word->len) == 0;
}

ngx_uint_t corelane_is_of_connection(ngx_table_elt_t *header) {
  static char *names[] = {"Connection", "Proxy-Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade", NULL};
  char **name;

  for (name = names; *name != NULL; name++) {
    if (is(&header->key, *name)) return 1;
  }
  return is(&header->key, "TE") && !is(&header->value, "trailers");
}

/* The head of a response is here, with all that has been added to it. */
static ngx_int_t header_filter(ngx_http_request_t *r) {
  ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
  ngx_list_part_t *part;
  ngx_table_elt_t *headers;
  ngx_uint_t i, closes = core->keepalive_timeout == 0;

  if (r->stream == NULL || r != r->main) return next_header_filter(r);
  for (part = &r->headers_out.headers.part; part != NULL; part = part->next) {
    headers = part->elts;
    for (i = 0; i < part->nelts; i++) {
      if (headers[i].hash == 0 || !corelane_is_of_connection(&headers[i])) continue;
      closes |= is(&headers[i].key, "Connection") && is(&headers[i].value, "close");
      headers[i].hash = 0;
    }
  }
  if (closes) corelane_close_gently(r);
  return next_header_filter(r);
}

static ngx_int_t install(ngx_conf_t *cf) {
  next_header_filter = ngx_http_top_header_filter;
  ngx_http_top_header_filter = header_filter;
  return NGX_OK;
}

static ngx_http_module_t context = {NULL, install, NULL, NULL, NULL, NULL, NULL, NULL};

/* A module of its own: where a filter stands among others its module says. */
ngx_module_t ngx_http_corelane_header_module = {
    NGX_MODULE_V1, &context, NULL, NGX_HTTP_MODULE, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING,
};

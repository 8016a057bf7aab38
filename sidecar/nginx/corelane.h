/*
 * Who is turned out of nginx when somebody else needs the place (docs/adr/0025-the-slowest-makes-room.md), and what
 * nginx 1.26 cannot do yet.
 */
#ifndef CORELANE_H
#define CORELANE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* Which responses go to the client as they come; of the others nginx sends whole buffers, and whole chunks. */
enum { CORELANE_STREAM_NEVER, CORELANE_STREAM_AUTO, CORELANE_STREAM_ALWAYS };

/* Which parameters of a query are in the cache's key. */
enum { CORELANE_QUERY_ALL, CORELANE_QUERY_ONLY, CORELANE_QUERY_EXCEPT };

/* How much of a query, and of addresses, stands in the logs. PART: names of parameters; the network of an address. */
enum { CORELANE_LOG_FULL, CORELANE_LOG_PART, CORELANE_LOG_NONE };

/* Which requests of a location are in the figures, and of which their times are as well. */
/* NOTHING and INSIDE are not in the figures. INSIDE is for programs of the pod, whose requests take no place either. */
enum { CORELANE_COUNT_PAGES, CORELANE_COUNT_REQUESTS, CORELANE_COUNT_NOTHING, CORELANE_COUNT_INSIDE };

/* nginx has one worker process, so all that it has is here, and nothing is shared. */
typedef struct {
  /* What nginx has places for. */
  ngx_int_t requests_max;
  ngx_int_t bodies_max;
  ngx_int_t large_bodies_max;
  /* Requests that are answered without a place. */
  ngx_int_t answers_max;
  /* A body beyond it is large. */
  size_t body_memory;
  ngx_int_t large_heads_max;
  /* Of the head of a request, as corelane_head_bytes() counts. */
  size_t head_max;
  /* Connections that are not idle. Beyond it those with half a head go. */
  ngx_int_t busy_max;
  /*
   * Clients that read so slowly that they hold a worker, with a response of which there is no more room on disk: so
   * many may hold render slots, and places of classes. Beyond that each may do so for some time.
   */
  ngx_int_t held_slots_max;
  ngx_int_t held_classes_max;
  ngx_msec_t worker_held_max;
  ngx_uint_t streaming;
  /* The file with settings that change, and what limit_conn says of a client in nginx.conf. */
  ngx_str_t live_file;
  ngx_int_t clients_max;
  /* It is there while the pod drains. */
  ngx_str_t draining_file;
  /* Of the cache: a page beyond it is not kept; which parameters of the query its key has. */
  size_t kept_max;
  ngx_uint_t query_mode;
  ngx_array_t *query_names;
  /* Where somebody hears of sampled requests, and of how many in a second. */
  ngx_int_t spans_port;
  ngx_int_t spans_max;
  /* Address ranges (ngx_cidr_t) of those whose PROXY header is believed. */
  ngx_array_t *balancers;
  /* How much the logs have of queries, and of addresses of clients. */
  ngx_uint_t log_query;
  ngx_uint_t log_client;
} corelane_conf_t;

/* Of a location. */
typedef struct {
  ngx_uint_t counts;
  /* Whether one comes here that has waited for a page. */
  ngx_flag_t looks_again;
  /* Adds X-Corelane-Personal to requests with cookies. */
  ngx_flag_t notes_personal;
} corelane_loc_conf_t;

/* Of an upstream: what nginx would call for each request. */
typedef struct {
  ngx_http_upstream_init_peer_pt init_peer;
} corelane_upstream_t;

/* Since when it has been a client's turn, and what it had given or taken by then. */
typedef struct {
  ngx_msec_t begin;
  off_t had;
} corelane_turn_t;

typedef ngx_int_t (*corelane_handler_pt)(ngx_http_request_t *r);

/*
 * Of a request that goes to HAProxy: what the proxy module has meant to be called, and how far its response is. One
 * that is given a kept page has the times.
 */
typedef struct {
  corelane_handler_pt process_header;
  corelane_handler_pt reinit_request;
  ngx_int_t (*input_filter_init)(void *data);
  ngx_event_pipe_input_filter_pt input_filter;
  ngx_event_pipe_output_filter_pt output_filter;
  ngx_http_event_handler_pt write_event_handler;
  /* Interim responses that may still come. */
  ngx_uint_t interim_left;
  /* From the first byte of the request to the head of the response, in milliseconds; -1 before. */
  ngx_msec_int_t first_byte_ms;
  /* The same until something of a kept page was sent last. */
  ngx_msec_int_t sent_ms;
  ngx_uint_t streams;
  /* What nginx wants to see of the response before it hands on a buffer that is not full. */
  off_t wanted;
  corelane_turn_t turn;
  /* What it has kept on disk for others. */
  off_t kept_blocks;
  /* corelane_purges() when nginx sent the request. */
  uint64_t purges;
} corelane_ctx_t;

extern ngx_module_t ngx_http_corelane_module;

/* For a new connection: waits for its PROXY header, if there is to be one. */
void corelane_expect_proxy_header(ngx_connection_t *c);
/* corelane_balancer RANGE; */
char *corelane_set_balancer(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* A request with a larger head takes a place for large heads. budget.ts counts two copies of a head of this size. */
#define CORELANE_ORDINARY_HEAD_MAX (14 * 1024)
/* error_page leads them to "bad-request" and "head-too-large". */
#define CORELANE_BAD_REQUEST 419
#define CORELANE_HEAD_TOO_LARGE 422

/* What HAProxy does not take of a target is percent-encoded, or refused. */
ngx_int_t corelane_encode_target(ngx_http_request_t *r);
/* As the client sent it, also if nginx could not read it. */
ngx_str_t corelane_sent_target(ngx_http_request_t *r);
/* $corelane_target, $corelane_method. */
ngx_int_t corelane_add_target_variables(ngx_conf_t *cf);

/* Refuses header names that HAProxy does not take, and renames headers that could be read as another header. */
ngx_int_t corelane_check_names(ngx_http_request_t *r);
/* $corelane_removed_headers. */
ngx_int_t corelane_add_names_variables(ngx_conf_t *cf);

/* Bytes of the head of a request, as HAProxy counts. */
size_t corelane_head_bytes(ngx_http_request_t *r);
/* Refuses a head that is too large, or that has control characters in it. */
ngx_int_t corelane_check_size(ngx_http_request_t *r);

/* Gives a request a place, if need be that of the slowest client, or refuses it. */
ngx_int_t corelane_take_place(ngx_http_request_t *r);
/* $corelane_no_place: why a request was refused; empty if it was not. */
ngx_int_t corelane_no_place(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);
/* Whether it has got one. */
ngx_uint_t corelane_has_place(ngx_http_request_t *r);
/* When a request has ended, before it is logged and counted: why its response was cut, if nginx itself did it. */
ngx_int_t corelane_explain_cut(ngx_http_request_t *r);
/* Ends it with a reset, whatever its client has not got yet. */
void corelane_cut(ngx_http_request_t *r);
/* Must be called once, before the first request. */
void corelane_init_places(ngx_log_t *log);
/* Follows the live settings, from before the first request on. */
ngx_int_t corelane_init_live(ngx_cycle_t *cycle);

/* Of those that are answered without a place so many stay. Must be called once, when all filters are known. */
void corelane_init_answers(void);

/* Closes connections with half a head where few connections are left. For each new connection. */
void corelane_init_connection(ngx_connection_t *c);
/* Closes them where they are too many. Must be called once, before the first connection. */
void corelane_init_heads(void);

/* When nginx has taken the events of a round. */
void corelane_begin_round(void);
/* Must be called once, before the first connection. */
void corelane_init_rounds(ngx_log_t *log);

/* For each request that is to go to HAProxy. */
ngx_int_t corelane_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *upstream);
/* The head of a response is not whole: it may have as much as the largest one. */
void corelane_extend_buffer(ngx_http_request_t *r);
/* It is whole: what follows in its buffer is handed on as soon as if the head were an ordinary one. */
void corelane_end_head(ngx_http_request_t *r);

/* Leaves out interim responses. */
void corelane_init_interim(ngx_http_request_t *r, corelane_ctx_t *ctx);

/* Lets the response go out as it comes. */
void corelane_init_streaming(ngx_http_request_t *r, corelane_ctx_t *ctx);
/* Leaves alone what says that nobody may transform it: nginx' gzip does not look. */
void corelane_mind_no_transform(ngx_http_request_t *r);
/* The head of its response is here. */
void corelane_note_head(ngx_http_request_t *r, corelane_ctx_t *ctx);
/* $corelane_new_trace, $corelane_new_span, $corelane_began. */
ngx_int_t corelane_add_trace_variables(ngx_conf_t *cf);
/* $corelane_first_byte_ms: first_byte_ms of the request; null if it had no response of HAProxy. */
ngx_int_t corelane_first_byte_ms(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);

/* $corelane_draining. */
ngx_int_t corelane_add_drain_variables(ngx_conf_t *cf);

/* The first header of this name: of a response of HAProxy; of what the client is sent. NULL: there is none. */
ngx_table_elt_t *corelane_find_header(ngx_http_upstream_t *u, ngx_str_t *name);
ngx_table_elt_t *corelane_find_sent(ngx_http_request_t *r, ngx_str_t *name);

/* When a request has ended. */
ngx_int_t corelane_count_request(ngx_http_request_t *r);
/* Whether it is no render, and has a place of its class. */
ngx_uint_t corelane_is_of_class(ngx_http_request_t *r);
/* The head of a response is here: counts a render for the cache, which no client's request is the end of. */
void corelane_count_fill(ngx_http_request_t *r);
/* Notes when a client has a page that was kept. Must be called once, when all filters are known. */
void corelane_init_metrics(void);
/* What lies whole in a file goes out in full packets. Must be called once, when all filters are known. */
void corelane_init_whole_files(void);
ngx_int_t corelane_add_metrics_variables(ngx_conf_t *cf);
/* The cache's part of the figures. */
u_char *corelane_write_cache_results(u_char *to, u_char *end);

/* From the first byte of a request to the last one that its client was sent. */
ngx_msec_int_t corelane_total_ms(ngx_http_request_t *r);

/* Writes what may be logged of a target, 512 bytes at most, and returns its end. `query` is a CORELANE_LOG_ value. */
u_char *corelane_write_target(u_char *to, u_char *last, ngx_str_t *target, ngx_uint_t query);
/* Messages of the error log have no more of client and request than the access log: for a new connection, a request. */
void corelane_describe_errors(ngx_connection_t *c);
ngx_int_t corelane_describe_errors_of(ngx_http_request_t *r);
/* The error log gets printable ASCII only. Must be called once, before the first request. */
void corelane_init_error_log(ngx_cycle_t *cycle);
/* $corelane_log_uri, $corelane_log_client, $corelane_log_proxy. */
ngx_int_t corelane_add_log_variables(ngx_conf_t *cf);

/* A sampled request has ended. */
ngx_int_t corelane_tell_request(ngx_http_request_t *r);
/* The head of a response is here: of a render for the cache, which no client's request is the end of. */
void corelane_tell_fill(ngx_http_request_t *r);
ngx_int_t corelane_init_spans(ngx_cycle_t *cycle);
/* Their part of the figures. */
u_char *corelane_write_spans(u_char *to, u_char *end);

/* Adds a variable to nginx. */
ngx_int_t corelane_add_variable(ngx_conf_t *cf, char *text, ngx_http_get_variable_pt get);
/* Sets the value of a variable, or no value. Both return NGX_OK. */
ngx_int_t corelane_set_value(ngx_http_variable_value_t *value, u_char *data, size_t length);
ngx_int_t corelane_set_no_value(ngx_http_variable_value_t *value);

/* corelane_cache_query only|except NAME...; */
char *corelane_set_cache_query(ngx_conf_t *cf, ngx_command_t *command, void *data);
ngx_int_t corelane_cache_uri(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);
ngx_int_t corelane_add_cache_variables(ngx_conf_t *cf);
/*
 * The head of a response is here: how long it may be given out after its end. NGX_DECLINED: a kept one goes before it.
 */
ngx_int_t corelane_judge_stale(ngx_http_request_t *r);
/* Stores the tags (Cache-Tag) of a response that nginx may cache. */
void corelane_note_tags(ngx_http_request_t *r);
/* The number of purges of this nginx. */
uint64_t corelane_purges(void);
ngx_int_t corelane_add_purge_variables(ngx_conf_t *cf);
ngx_int_t corelane_order_conditions(ngx_http_request_t *r);
ngx_int_t corelane_note_personal(ngx_http_request_t *r);
/* Lets a request that has waited for a page look for it when that is there (NGX_DONE: it goes on later). For each. */
ngx_int_t corelane_look_again(ngx_http_request_t *r);
/* The head of a response that is to be kept is here, and there is room for it. */
void corelane_note_fill(ngx_http_request_t *r);
/* Must be called once, before the first request. */
void corelane_init_look_again(void);
/* When a request has ended. */
ngx_int_t corelane_count_result(ngx_http_request_t *r);
/* The head of a response that is to be kept is here: others may have to go, or it is not kept. */
void corelane_make_room(ngx_http_request_t *r);
/* Keeps no more of a response that is too large, or that there is no room for. */
void corelane_bound_kept(ngx_http_request_t *r);

#endif

/*
 * Who is turned out of nginx when somebody else needs the place (docs/adr/0025-the-slowest-makes-room.md), and what
 * nginx 1.26 cannot do yet.
 */
#ifndef CORELANE_H
#define CORELANE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* nginx has one worker process, so all that it has is here, and nothing is shared. */
typedef struct {
  /* What nginx has places for. */
  ngx_int_t requests_max;
  ngx_int_t bodies_max;
  ngx_int_t large_bodies_max;
  /* A body beyond it is large. */
  size_t body_memory;
  /* How long a client may hold a worker with a response of which there is no more room on disk. */
  ngx_msec_t worker_held_max;
} corelane_conf_t;

/* Of an upstream: what nginx would call for each request. */
typedef struct {
  ngx_http_upstream_init_peer_pt init_peer;
} corelane_upstream_t;

extern ngx_module_t ngx_http_corelane_module;

/* Gives a request a place, if need be that of the slowest client, or refuses it. */
ngx_int_t corelane_take_place(ngx_http_request_t *r);
/* $corelane_no_place: why a request was refused; empty if it was not. */
ngx_int_t corelane_no_place(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);
/* Must be called once, before the first request. */
void corelane_init_places(ngx_log_t *log);

/* Closes connections with half a head where few connections are left. For each new connection. */
void corelane_init_connection(ngx_connection_t *c);

/* Leaves out interim responses. For each request that is to go to HAProxy. */
ngx_int_t corelane_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *upstream);

#endif

/* Directives of the module, and where nginx calls it. */
#include "corelane.h"

static void *create_conf(ngx_conf_t *cf) {
  corelane_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(corelane_conf_t));

  if (conf == NULL) {
    return NULL;
  }
  conf->requests_max = NGX_CONF_UNSET;
  conf->bodies_max = NGX_CONF_UNSET;
  conf->large_bodies_max = NGX_CONF_UNSET;
  conf->large_heads_max = NGX_CONF_UNSET;
  conf->answers_max = NGX_CONF_UNSET;
  conf->spans_port = NGX_CONF_UNSET;
  conf->spans_max = NGX_CONF_UNSET;
  conf->body_memory = NGX_CONF_UNSET_SIZE;
  conf->head_max = NGX_CONF_UNSET_SIZE;
  conf->busy_max = NGX_CONF_UNSET;
  conf->held_slots_max = NGX_CONF_UNSET;
  conf->held_classes_max = NGX_CONF_UNSET;
  conf->worker_held_max = NGX_CONF_UNSET_MSEC;
  conf->streaming = NGX_CONF_UNSET_UINT;
  conf->clients_max = NGX_CONF_UNSET;
  conf->kept_max = NGX_CONF_UNSET_SIZE;
  conf->log_query = NGX_CONF_UNSET_UINT;
  conf->log_client = NGX_CONF_UNSET_UINT;
  conf->balancers = ngx_array_create(cf->pool, 8, sizeof(ngx_cidr_t));
  return conf->balancers == NULL ? NULL : conf;
}

static char *init_conf(ngx_conf_t *cf, void *data) {
  corelane_conf_t *conf = data;

  if (conf->requests_max == NGX_CONF_UNSET || conf->bodies_max == NGX_CONF_UNSET
      || conf->large_bodies_max == NGX_CONF_UNSET || conf->answers_max == NGX_CONF_UNSET
      || conf->busy_max == NGX_CONF_UNSET || conf->body_memory == NGX_CONF_UNSET_SIZE
      || conf->large_heads_max == NGX_CONF_UNSET || conf->head_max == NGX_CONF_UNSET_SIZE
      || conf->draining_file.len == 0 || conf->worker_held_max == NGX_CONF_UNSET_MSEC
      || conf->held_slots_max == NGX_CONF_UNSET || conf->held_classes_max == NGX_CONF_UNSET
      || conf->streaming == NGX_CONF_UNSET_UINT || conf->log_query == NGX_CONF_UNSET_UINT
      || conf->log_client == NGX_CONF_UNSET_UINT) {
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "a corelane_ directive is missing");
    return NGX_CONF_ERROR;
  }
  if (conf->kept_max == NGX_CONF_UNSET_SIZE) conf->kept_max = 0;
  return NGX_CONF_OK;
}

ngx_int_t corelane_add_variable(ngx_conf_t *cf, char *text, ngx_http_get_variable_pt get) {
  ngx_str_t name = {ngx_strlen(text), (u_char *) text};
  ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);

  if (variable == NULL) {
    return NGX_ERROR;
  }
  variable->get_handler = get;
  return NGX_OK;
}

ngx_int_t corelane_set_value(ngx_http_variable_value_t *value, u_char *data, size_t length) {
  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = 0;
  value->data = data;
  value->len = length;
  return NGX_OK;
}

ngx_int_t corelane_set_no_value(ngx_http_variable_value_t *value) {
  value->not_found = 1;
  return NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t *cf) {
  if (corelane_add_variable(cf, "corelane_no_place", corelane_no_place) != NGX_OK
      || corelane_add_cache_variables(cf) != NGX_OK || corelane_add_purge_variables(cf) != NGX_OK
      || corelane_add_drain_variables(cf) != NGX_OK
      || corelane_add_metrics_variables(cf) != NGX_OK || corelane_add_log_variables(cf) != NGX_OK
      || corelane_add_target_variables(cf) != NGX_OK || corelane_add_names_variables(cf) != NGX_OK
      || corelane_add_trace_variables(cf) != NGX_OK) return NGX_ERROR;
  return corelane_add_variable(cf, "corelane_first_byte_ms", corelane_first_byte_ms);
}

static void *create_location(ngx_conf_t *cf) {
  corelane_loc_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(corelane_loc_conf_t));

  if (conf != NULL) {
    conf->counts = NGX_CONF_UNSET_UINT;
    conf->looks_again = NGX_CONF_UNSET;
    conf->notes_personal = NGX_CONF_UNSET;
  }
  return conf;
}

static char *merge_location(ngx_conf_t *cf, void *outer, void *inner) {
  corelane_loc_conf_t *parent = outer, *conf = inner;

  ngx_conf_merge_uint_value(conf->counts, parent->counts, CORELANE_COUNT_PAGES);
  ngx_conf_merge_value(conf->looks_again, parent->looks_again, 0);
  ngx_conf_merge_value(conf->notes_personal, parent->notes_personal, 0);
  return NGX_CONF_OK;
}

static void *create_upstream(ngx_conf_t *cf) {
  return ngx_pcalloc(cf->pool, sizeof(corelane_upstream_t));
}

static void wrap_upstreams(ngx_conf_t *cf) {
  ngx_http_upstream_main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
  ngx_http_upstream_srv_conf_t **upstreams = main->upstreams.elts;
  corelane_upstream_t *conf;
  ngx_uint_t i;

  for (i = 0; i < main->upstreams.nelts; i++) {
    if (upstreams[i]->srv_conf != NULL) {
      conf = ngx_http_conf_upstream_srv_conf(upstreams[i], ngx_http_corelane_module);
      conf->init_peer = upstreams[i]->peer.init;
      upstreams[i]->peer.init = corelane_init_peer;
    }
  }
}

static ngx_int_t add_handler(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handle) {
  ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
  ngx_http_handler_pt *handler = ngx_array_push(&core->phases[phase].handlers);

  if (handler == NULL) {
    return NGX_ERROR;
  }
  *handler = handle;
  return NGX_OK;
}

/* Of the log phase nginx calls the first one first, and has put its own log there. */
static ngx_int_t add_before_log(ngx_conf_t *cf, ngx_http_handler_pt handle) {
  ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
  ngx_array_t *all = &core->phases[NGX_HTTP_LOG_PHASE].handlers;
  ngx_http_handler_pt *handlers;

  if (add_handler(cf, NGX_HTTP_LOG_PHASE, handle) != NGX_OK) {
    return NGX_ERROR;
  }
  handlers = all->elts;
  ngx_memmove(handlers + 1, handlers, (all->nelts - 1) * sizeof(ngx_http_handler_pt));
  handlers[0] = handle;
  return NGX_OK;
}

static ngx_int_t install(ngx_conf_t *cf) {
  if (add_handler(cf, NGX_HTTP_POST_READ_PHASE, corelane_order_conditions) != NGX_OK
      || add_before_log(cf, corelane_explain_cut) != NGX_OK
      || add_handler(cf, NGX_HTTP_LOG_PHASE, corelane_count_result) != NGX_OK
      || add_handler(cf, NGX_HTTP_LOG_PHASE, corelane_count_request) != NGX_OK
      || add_handler(cf, NGX_HTTP_LOG_PHASE, corelane_tell_request) != NGX_OK
      || add_handler(cf, NGX_HTTP_POST_READ_PHASE, corelane_encode_target) != NGX_OK
      || add_handler(cf, NGX_HTTP_POST_READ_PHASE, corelane_check_names) != NGX_OK
      || add_handler(cf, NGX_HTTP_POST_READ_PHASE, corelane_describe_errors_of) != NGX_OK
      || add_handler(cf, NGX_HTTP_PREACCESS_PHASE, corelane_note_personal) != NGX_OK
      || add_handler(cf, NGX_HTTP_PREACCESS_PHASE, corelane_take_place) != NGX_OK
      /* What comes later here nginx calls first. */
      || add_handler(cf, NGX_HTTP_PREACCESS_PHASE, corelane_check_size) != NGX_OK
      || add_handler(cf, NGX_HTTP_PREACCESS_PHASE, corelane_look_again) != NGX_OK) {
    return NGX_ERROR;
  }
  wrap_upstreams(cf);
  return NGX_OK;
}

static ngx_int_t init_process(ngx_cycle_t *cycle) {
  ngx_uint_t i;
  ngx_listening_t *listening = cycle->listening.elts;

  corelane_init_error_log(cycle);
  corelane_init_places(cycle->log);
  corelane_init_answers();
  corelane_init_metrics();
  corelane_init_rounds(cycle->log);
  corelane_init_heads();
  corelane_init_whole_files();
  corelane_init_look_again();
  for (i = 0; i < cycle->listening.nelts; i++) {
    if (listening[i].handler == ngx_http_init_connection) {
      listening[i].handler = corelane_init_connection;
    }
  }
  return corelane_init_spans(cycle) != NGX_OK ? NGX_ERROR : corelane_init_live(cycle);
}

static ngx_conf_enum_t streaming[] = {
    {ngx_string("never"), CORELANE_STREAM_NEVER},
    {ngx_string("auto"), CORELANE_STREAM_AUTO},
    {ngx_string("always"), CORELANE_STREAM_ALWAYS},
    {ngx_null_string, 0},
};

static ngx_conf_enum_t queries[] = {
    {ngx_string("full"), CORELANE_LOG_FULL},
    {ngx_string("names"), CORELANE_LOG_PART},
    {ngx_string("none"), CORELANE_LOG_NONE},
    {ngx_null_string, 0},
};

static ngx_conf_enum_t addresses[] = {
    {ngx_string("full"), CORELANE_LOG_FULL},
    {ngx_string("masked"), CORELANE_LOG_PART},
    {ngx_string("none"), CORELANE_LOG_NONE},
    {ngx_null_string, 0},
};

static ngx_conf_enum_t counts[] = {
    {ngx_string("pages"), CORELANE_COUNT_PAGES},
    {ngx_string("requests"), CORELANE_COUNT_REQUESTS},
    {ngx_string("nothing"), CORELANE_COUNT_NOTHING},
    {ngx_string("inside"), CORELANE_COUNT_INSIDE},
    {ngx_null_string, 0},
};

#define DIRECTIVE(name, set, field, post)                                                                \
  { ngx_string("corelane_" name), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set, NGX_HTTP_MAIN_CONF_OFFSET,   \
    offsetof(corelane_conf_t, field), post }

static ngx_command_t commands[] = {
    DIRECTIVE("requests", ngx_conf_set_num_slot, requests_max, NULL),
    DIRECTIVE("bodies", ngx_conf_set_num_slot, bodies_max, NULL),
    DIRECTIVE("large_bodies", ngx_conf_set_num_slot, large_bodies_max, NULL),
    DIRECTIVE("large_heads", ngx_conf_set_num_slot, large_heads_max, NULL),
    DIRECTIVE("head_max", ngx_conf_set_size_slot, head_max, NULL),
    DIRECTIVE("answers", ngx_conf_set_num_slot, answers_max, NULL),
    DIRECTIVE("busy_connections", ngx_conf_set_num_slot, busy_max, NULL),
    DIRECTIVE("spans_port", ngx_conf_set_num_slot, spans_port, NULL),
    DIRECTIVE("spans_max", ngx_conf_set_num_slot, spans_max, NULL),
    DIRECTIVE("body_memory", ngx_conf_set_size_slot, body_memory, NULL),
    DIRECTIVE("live", ngx_conf_set_str_slot, live_file, NULL),
    DIRECTIVE("clients", ngx_conf_set_num_slot, clients_max, NULL),
    DIRECTIVE("draining_file", ngx_conf_set_str_slot, draining_file, NULL),
    DIRECTIVE("held_slots", ngx_conf_set_num_slot, held_slots_max, NULL),
    DIRECTIVE("held_classes", ngx_conf_set_num_slot, held_classes_max, NULL),
    DIRECTIVE("worker_held_max", ngx_conf_set_msec_slot, worker_held_max, NULL),
    DIRECTIVE("balancer", corelane_set_balancer, balancers, NULL),
    DIRECTIVE("kept_max", ngx_conf_set_size_slot, kept_max, NULL),
    DIRECTIVE("log_query", ngx_conf_set_enum_slot, log_query, queries),
    DIRECTIVE("log_client", ngx_conf_set_enum_slot, log_client, addresses),
    {ngx_string("corelane_cache_query"), NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, corelane_set_cache_query,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    DIRECTIVE("streaming", ngx_conf_set_enum_slot, streaming, streaming),
    {ngx_string("corelane_counts"), NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     ngx_conf_set_enum_slot, NGX_HTTP_LOC_CONF_OFFSET, offsetof(corelane_loc_conf_t, counts), counts},
    {ngx_string("corelane_notes_personal"), NGX_HTTP_LOC_CONF | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
     NGX_HTTP_LOC_CONF_OFFSET, offsetof(corelane_loc_conf_t, notes_personal), NULL},
    {ngx_string("corelane_looks_again"), NGX_HTTP_LOC_CONF | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
     NGX_HTTP_LOC_CONF_OFFSET, offsetof(corelane_loc_conf_t, looks_again), NULL},
    ngx_null_command,
};

static ngx_http_module_t context = {add_variables,   install, create_conf,     init_conf,
                                    create_upstream, NULL,    create_location, merge_location};

ngx_module_t ngx_http_corelane_module = {
    NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, NULL, init_process, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING,
};

/*
 * $corelane_draining: 1 while the pod drains, which the drain hook says by a file. `if (-f ...)` would look for it once
 * or twice for each request, which takes a tenth of what a kept page costs [measured]. One look in a millisecond is
 * enough for all.
 */
#include "corelane.h"

static ngx_msec_t looked_ms;
static ngx_uint_t is_draining;

static void look(ngx_str_t *file) {
  ngx_file_info_t info;

  if (looked_ms == ngx_current_msec) {
    return;
  }
  looked_ms = ngx_current_msec;
  is_draining = ngx_file_info(file->data, &info) != NGX_FILE_ERROR;
}

static ngx_int_t draining(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);

  look(&conf->draining_file);
  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = !is_draining;
  value->data = (u_char *) "1";
  value->len = is_draining;
  return NGX_OK;
}

ngx_int_t corelane_add_drain_variables(ngx_conf_t *cf) {
  return corelane_add_variable(cf, "corelane_draining", draining);
}

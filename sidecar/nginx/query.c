/* Which parameters of a query make another page. The others do not reach the worker, so the two cannot differ. */
#include "corelane.h"

char *corelane_set_cache_query(ngx_conf_t *cf, ngx_command_t *command, void *data) {
  corelane_conf_t *conf = data;
  ngx_str_t *words = cf->args->elts;
  ngx_str_t *name;
  ngx_uint_t i;

  conf->query_mode = words[1].data[0] == 'o' ? CORELANE_QUERY_ONLY : CORELANE_QUERY_EXCEPT;
  conf->query_names = ngx_array_create(cf->pool, cf->args->nelts, sizeof(ngx_str_t));
  if (conf->query_names == NULL) {
    return NGX_CONF_ERROR;
  }
  for (i = 2; i < cf->args->nelts; i++) {
    name = ngx_array_push(conf->query_names);
    if (name == NULL) {
      return NGX_CONF_ERROR;
    }
    *name = words[i];
  }
  return NGX_CONF_OK;
}

/* As it stands there: one that is written in another way is another one. */
static ngx_uint_t is_named(corelane_conf_t *conf, u_char *begin, u_char *end) {
  u_char *equals = ngx_strlchr(begin, end, '=');
  size_t length = (equals == NULL ? end : equals) - begin;
  ngx_str_t *name = conf->query_names->elts;
  ngx_uint_t i;

  for (i = 0; i < conf->query_names->nelts; i++) {
    if (name[i].len == length && ngx_memcmp(name[i].data, begin, length) == 0) {
      return 1;
    }
  }
  return 0;
}

/* $corelane_cache_uri: path, and the parameters that count, in their order. */
ngx_int_t corelane_cache_uri(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  u_char *pos = r->unparsed_uri.data;
  u_char *end = pos + r->unparsed_uri.len;
  u_char *query = ngx_strlchr(pos, end, '?');
  u_char *to, *next;
  u_char mark = '?';

  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = 0;
  value->data = pos;
  value->len = end - pos;
  if (query == NULL || conf->query_mode == CORELANE_QUERY_ALL) {
    return NGX_OK;
  }
  value->data = ngx_pnalloc(r->pool, end - pos);
  if (value->data == NULL) {
    return NGX_ERROR;
  }
  to = ngx_cpymem(value->data, pos, query - pos);
  for (pos = query + 1; pos < end; pos = next + 1) {
    next = ngx_strlchr(pos, end, '&');
    next = next == NULL ? end : next;
    if (next > pos && is_named(conf, pos, next) == (conf->query_mode == CORELANE_QUERY_ONLY)) {
      *to++ = mark;
      to = ngx_cpymem(to, pos, next - pos);
      mark = '&';
    }
  }
  value->len = to - value->data;
  return NGX_OK;
}

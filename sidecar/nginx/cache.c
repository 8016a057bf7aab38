/*
 * What nginx' cache lacks: how long a page may be given out after its end, as HAProxy says it; and its age
 * (docs/adr/0035-the-burst-cache.md).
 */
#include "corelane.h"

static ngx_str_t stale = ngx_string("X-Corelane-Stale");
static ngx_str_t age = ngx_string("Age");


static time_t seconds(u_char *begin, u_char *end) {
  ngx_int_t value = ngx_atoi(begin, end - begin);

  return value == NGX_ERROR ? 0 : value;
}

/* "X-Corelane-Stale: 10 300": while it is rendered anew, and where that fails. */
static void set_windows(ngx_http_cache_t *cache, ngx_str_t *text) {
  u_char *end = text->data + text->len;
  u_char *blank = ngx_strlchr(text->data, end, ' ');

  if (blank != NULL) {
    cache->updating_sec = seconds(text->data, blank);
    cache->error_sec = seconds(blank + 1, end);
  }
}

static ngx_uint_t has_failed(ngx_uint_t status) {
  return status >= NGX_HTTP_INTERNAL_SERVER_ERROR;
}

ngx_int_t corelane_judge_stale(ngx_http_request_t *r) {
  ngx_http_upstream_t *u = r->upstream;
  ngx_table_elt_t *header;

  if (r->cache == NULL || r->cached) {
    return NGX_OK;
  }
  /* nginx would look at proxy_cache_use_stale, which knows no end. */
  if (has_failed(u->headers_in.status_n) && u->cache_status == NGX_HTTP_CACHE_EXPIRED && r->cache->stale_error) {
    return NGX_DECLINED;
  }
  header = corelane_find_header(u, &stale);
  if (header != NULL) {
    set_windows(r->cache, &header->value);
  }
  return NGX_OK;
}

/* $corelane_cache_age: of a page, since it was rendered; of any other response what it says. */
static ngx_int_t cache_age(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_table_elt_t *said = r->upstream == NULL ? NULL : corelane_find_header(r->upstream, &age);
  time_t total = said == NULL ? 0 : seconds(said->value.data, said->value.data + said->value.len);
  u_char *text;

  if (r->cache == NULL || !r->cached) {
    return said == NULL ? corelane_set_no_value(value) : corelane_set_value(value, said->value.data, said->value.len);
  }
  total += ngx_max(ngx_time() - r->cache->date, 0);
  text = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
  return text == NULL ? NGX_ERROR : corelane_set_value(value, text, ngx_sprintf(text, "%T", total) - text);
}

/* $corelane_cache_key: nginx' name for the page; with what Vary says if it has one of its kind. */
static ngx_int_t cache_key(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  u_char *text;

  if (r->cache == NULL) {
    return corelane_set_no_value(value);
  }
  text = ngx_pnalloc(r->pool, 2 * NGX_HTTP_CACHE_KEY_LEN);
  if (text == NULL) {
    return NGX_ERROR;
  }
  ngx_hex_dump(text, r->cache->key, NGX_HTTP_CACHE_KEY_LEN);
  return corelane_set_value(value, text, 2 * NGX_HTTP_CACHE_KEY_LEN);
}

/* $corelane_cache_has_stale: 1 if there is a page that may be given out where a render fails. */
static ngx_int_t cache_has_stale(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  return r->cache == NULL || !r->cache->stale_error ? corelane_set_no_value(value) : corelane_set_value(value, (u_char *) "1", 1);
}

/* Of two conditions If-None-Match counts (RFC 9110, 13.2.2); nginx would want both to hold. */
ngx_int_t corelane_order_conditions(ngx_http_request_t *r) {
  if (r->headers_in.if_none_match != NULL) {
    r->headers_in.if_modified_since = NULL;
  }
  return NGX_DECLINED;
}

/*
 * Adds X-Corelane-Personal to the request headers if the request has cookies that matter ($corelane_cache_personal).
 * nginx tells the variants of a page with `Vary: Cookie` by it. Empties a header of that name that the client sent:
 * with it a client without cookies could write the page that clients with cookies get.
 */
ngx_int_t corelane_note_personal(ngx_http_request_t *r) {
  static ngx_str_t variable = ngx_string("corelane_cache_personal"), name = ngx_string("x-corelane-personal"), yes = ngx_string("1");
  corelane_loc_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_corelane_module);
  ngx_http_variable_value_t *value;
  ngx_list_part_t *part;
  ngx_table_elt_t *header;
  ngx_uint_t i, is_personal;

  /* A background update shares the headers of its parent. */
  if (!conf->notes_personal || r != r->main) {
    return NGX_DECLINED;
  }
  value = ngx_http_get_variable(r, &variable, ngx_hash_key(variable.data, variable.len));
  is_personal = value != NULL && !value->not_found && value->len > 0;
  for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
    header = part->elts;
    for (i = 0; i < part->nelts; i++) {
      /* Added when the request looked for its page before. */
      if (header[i].lowcase_key == name.data) {
        return NGX_DECLINED;
      }
      if (header[i].key.len == name.len && ngx_strncasecmp(header[i].key.data, name.data, name.len) == 0) {
        header[i].value.len = 0;
      }
    }
  }
  if (!is_personal) {
    return NGX_DECLINED;
  }
  header = ngx_list_push(&r->headers_in.headers);
  if (header == NULL) {
    return NGX_ERROR;
  }
  ngx_memzero(header, sizeof(ngx_table_elt_t));
  header->hash = ngx_hash_key(name.data, name.len);
  header->key = name;
  header->lowcase_key = name.data;
  header->value = yes;
  return NGX_DECLINED;
}

/* Requests by what the cache had to do with them, which nginx.conf says ($corelane_cache_result). */
static struct {
  ngx_str_t name;
  uint64_t count;
} results[] = {
    {ngx_string("hit"), 0},  {ngx_string("waited"), 0}, {ngx_string("stale"), 0},  {ngx_string("miss"), 0},
    {ngx_string("expired"), 0}, {ngx_string("shared"), 0}, {ngx_string("pass"), 0},   {ngx_string("bypass"), 0},
};
#define RESULTS (sizeof(results) / sizeof(results[0]))

ngx_int_t corelane_count_result(ngx_http_request_t *r) {
  static ngx_str_t name = ngx_string("corelane_cache_result");
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  corelane_loc_conf_t *location = ngx_http_get_module_loc_conf(r, ngx_http_corelane_module);
  ngx_http_variable_value_t *value;
  ngx_uint_t i;

  if (conf->kept_max == 0 || location->counts == CORELANE_COUNT_INSIDE || r != r->main || r->background || r->upstream == NULL) {
    return NGX_OK;
  }
  value = ngx_http_get_variable(r, &name, ngx_hash_key(name.data, name.len));
  for (i = 0; value != NULL && !value->not_found && i < RESULTS; i++) {
    if (value->len == results[i].name.len && ngx_memcmp(value->data, results[i].name.data, value->len) == 0) {
      results[i].count++;
    }
  }
  return NGX_OK;
}

u_char *corelane_write_cache_results(u_char *to, u_char *end) {
  ngx_uint_t i;

  to = ngx_slprintf(to, end,
                    "# HELP corelane_cache_requests_total Requests by what the cache had to do with them.\n"
                    "# TYPE corelane_cache_requests_total counter\n");
  for (i = 0; i < RESULTS; i++) {
    to = ngx_slprintf(to, end, "corelane_cache_requests_total{result=\"%V\"} %uL\n", &results[i].name, results[i].count);
  }
  return to;
}

ngx_int_t corelane_add_cache_variables(ngx_conf_t *cf) {
  return corelane_add_variable(cf, "corelane_cache_age", cache_age) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_key", cache_key) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_has_stale", cache_has_stale) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_uri", corelane_cache_uri) != NGX_OK
             ? NGX_ERROR
             : NGX_OK;
}

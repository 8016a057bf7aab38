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

static ngx_int_t found(ngx_http_variable_value_t *value, u_char *data, size_t length) {
  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = 0;
  value->data = data;
  value->len = length;
  return NGX_OK;
}

static ngx_int_t not_found(ngx_http_variable_value_t *value) {
  value->not_found = 1;
  return NGX_OK;
}

/* $corelane_cache_age: of a page, since it was rendered; of any other response what it says. */
static ngx_int_t cache_age(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_table_elt_t *said = r->upstream == NULL ? NULL : corelane_find_header(r->upstream, &age);
  time_t total = said == NULL ? 0 : seconds(said->value.data, said->value.data + said->value.len);
  u_char *text;

  if (r->cache == NULL || !r->cached) {
    return said == NULL ? not_found(value) : found(value, said->value.data, said->value.len);
  }
  total += ngx_max(ngx_time() - r->cache->date, 0);
  text = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
  return text == NULL ? NGX_ERROR : found(value, text, ngx_sprintf(text, "%T", total) - text);
}

/* $corelane_cache_key: nginx' name for the page; with what Vary says if it has one of its kind. */
static ngx_int_t cache_key(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  u_char *text;

  if (r->cache == NULL) {
    return not_found(value);
  }
  text = ngx_pnalloc(r->pool, 2 * NGX_HTTP_CACHE_KEY_LEN);
  if (text == NULL) {
    return NGX_ERROR;
  }
  ngx_hex_dump(text, r->cache->key, NGX_HTTP_CACHE_KEY_LEN);
  return found(value, text, 2 * NGX_HTTP_CACHE_KEY_LEN);
}

/* $corelane_cache_has_stale: 1 if there is a page that may be given out where a render fails. */
static ngx_int_t cache_has_stale(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  return r->cache == NULL || !r->cache->stale_error ? not_found(value) : found(value, (u_char *) "1", 1);
}

/*
 * Pages that are there no more. Each path has a number in a table, perhaps together with others, and it is part of the
 * key: with another number there is another page. So a page that is just being rendered goes, too.
 */
#define EPOCHS 16384

static struct {
  time_t begin;
  /* Of all pages. */
  uint32_t all;
  uint32_t paths[EPOCHS];
  /* When that was last, in milliseconds since 1970; 0: never. */
  uint64_t all_ms;
  uint64_t paths_ms[EPOCHS];
} epochs;

static ngx_uint_t epoch_of(u_char *path, size_t length) {
  return ngx_murmur_hash2(path, length) % EPOCHS;
}

/* Each change is later than the one before, be it of a pod whose clock is ahead. */
static uint64_t after(uint64_t last_ms) {
  ngx_time_t *now = ngx_timeofday();

  return ngx_max((uint64_t) now->sec * 1000 + now->msec, last_ms + 1);
}

static uint64_t changed_ms(ngx_uint_t i) {
  return ngx_max(epochs.all_ms, epochs.paths_ms[i]);
}

static void change_path(u_char *path, size_t length) {
  ngx_uint_t i = epoch_of(path, length);

  epochs.paths[i]++;
  epochs.paths_ms[i] = after(changed_ms(i));
}

/* $corelane_cache_epoch. The pages of an nginx that has ended are of none. */
static ngx_int_t cache_epoch(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  u_char *text = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 2 * (NGX_INT32_LEN + 1));

  if (epochs.begin == 0) {
    epochs.begin = ngx_time();
  }
  return text == NULL ? NGX_ERROR
                      : found(value, text, ngx_sprintf(text, "%T.%uD.%uD", epochs.begin, epochs.all, epochs.paths[epoch_of(r->uri.data, r->uri.len)]) - text);
}

/* $corelane_cache_changed: when what is at this path was changed last, as far as this pod knows. */
static ngx_int_t cache_changed(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  uint64_t ms = changed_ms(epoch_of(r->uri.data, r->uri.len));
  u_char *text;

  if (ms == 0) {
    return not_found(value);
  }
  text = ngx_pnalloc(r->pool, NGX_INT64_LEN);
  return text == NULL ? NGX_ERROR : found(value, text, ngx_sprintf(text, "%uL", ms) - text);
}

/*
 * $corelane_cache_peer_epoch, for a peer: what was changed there, and not yet here, is no more what it was here. nginx
 * gives a background request no page that is over while another one is made: the peer would keep it. Nor is it counted
 * among those of clients.
 */
static ngx_int_t cache_peer_epoch(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  static ngx_str_t name = ngx_string("http_x_corelane_changed");
  ngx_http_variable_value_t *said = ngx_http_get_variable(r, &name, ngx_hash_key(name.data, name.len));
  ngx_uint_t i = epoch_of(r->uri.data, r->uri.len);
  ngx_int_t ms = said == NULL || said->not_found ? NGX_ERROR : ngx_atoi(said->data, said->len);

  r->background = 1;
  if (ms != NGX_ERROR && (uint64_t) ms > changed_ms(i)) {
    epochs.paths[i]++;
    epochs.paths_ms[i] = ms;
  }
  return cache_epoch(r, value, data);
}

static ngx_str_t purge_prefix = ngx_string("/purge");

/* $corelane_cache_purge: reading it takes away all pages, or those of a path: /purge/shop/1 */
static ngx_int_t cache_purge(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  static u_char all[] = "all\n", path[] = "path\n";

  if (r->uri.len > purge_prefix.len) {
    change_path(r->uri.data + purge_prefix.len, r->uri.len - purge_prefix.len);
    return found(value, path, sizeof(path) - 1);
  }
  epochs.all++;
  epochs.all_ms = after(epochs.all_ms);
  return found(value, all, sizeof(all) - 1);
}

/* "https:" may stand before it, or no scheme at all; what is in a query is none. */
static u_char *after_scheme(u_char *pos, u_char *end) {
  u_char *to;

  for (to = pos; to < end && *to != ':' && *to != '/' && *to != '?' && *to != '#'; to++) /* void */;
  return to < end && *to == ':' ? to + 1 : pos;
}

/*
 * Whether a path is that of the request, or below it. Another one would be a stranger's choice, where an application
 * leads him to whatever he has named (RFC 9111, 4.4, allows to look at the host alone).
 */
static ngx_uint_t is_within(ngx_http_request_t *r, u_char *path, size_t length) {
  size_t own = r->uri.len;

  if (own > 0 && r->uri.data[own - 1] == '/') {
    own--;
  }
  return length >= own && ngx_memcmp(path, r->uri.data, own) == 0 && (length == own || path[own] == '/');
}

/* Purges the path that a header names, if the URL is of this host and is the request's path or below it. */
static void purge_named(ngx_http_request_t *r, ngx_str_t *name) {
  ngx_table_elt_t *header = corelane_find_header(r->upstream, name);
  u_char *pos, *end, *to, *path, *host;

  if (header == NULL) {
    return;
  }
  end = header->value.data + header->value.len;
  pos = after_scheme(header->value.data, end);
  if (end - pos > 2 && pos[0] == '/' && pos[1] == '/') {
    host = pos + 2;
    for (pos = host; pos < end && *pos != '/' && *pos != '?' && *pos != '#'; pos++) /* void */;
    /* With its port, or without. */
    if ((size_t) (pos - host) < r->headers_in.server.len
        || ngx_strncasecmp(host, r->headers_in.server.data, r->headers_in.server.len) != 0) {
      return;
    }
  }
  for (to = pos; to < end && *to != '?' && *to != '#'; to++) /* void */;
  path = ngx_pnalloc(r->pool, to - pos + 1);
  if (path == NULL || to == pos || *pos != '/') {
    return;
  }
  host = path;
  end = to;
  ngx_unescape_uri(&host, &pos, end - pos, NGX_UNESCAPE_URI);
  if (is_within(r, path, host - path)) {
    change_path(path, host - path);
  }
}

/*
 * What was changed is no more what it was (RFC 9111, 4.4). A redirect but 303 says that the method is to be sent
 * elsewhere: nothing was changed here.
 */
void corelane_note_change(ngx_http_request_t *r) {
  static ngx_str_t named[] = {ngx_string("Location"), ngx_string("Content-Location")};
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  ngx_uint_t status = r->upstream->headers_in.status_n;

  if (conf->kept_max == 0 || r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_OPTIONS | NGX_HTTP_TRACE)
      || (status / 100 != 2 && status != NGX_HTTP_SEE_OTHER)) {
    return;
  }
  change_path(r->uri.data, r->uri.len);
  purge_named(r, &named[0]);
  purge_named(r, &named[1]);
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
  ngx_http_variable_value_t *value;
  ngx_uint_t i;

  if (conf->kept_max == 0 || r != r->main || r->background || r->upstream == NULL) {
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
                 || corelane_add_variable(cf, "corelane_cache_epoch", cache_epoch) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_changed", cache_changed) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_peer_epoch", cache_peer_epoch) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_purge", cache_purge) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_uri", corelane_cache_uri) != NGX_OK
             ? NGX_ERROR
             : NGX_OK;
}

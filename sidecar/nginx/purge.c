/*
 * Purges cached pages by path, by tag, or all (docs/cache.md). The cache key has a number for the path, its epoch. A
 * purge increments the epoch, which also discards renders in progress. Paths share 16,384 epochs (buckets).
 *
 * Times are milliseconds since 1970, by the clock of the pod that saw the change: all pods use the same time for it.
 */
#include "corelane.h"
#include <ngx_md5.h>
#include <sys/random.h>

#define BUCKETS 16384
/* Tags share rows, as paths share buckets. */
#define TAGS 1024
/* Ignores times that are further in the future: the clock of their pod is wrong. */
#define AHEAD_MS_MAX 60000

/* Counts purges. It gives their order, which clocks cannot: somebody may set a clock back. */
static uint64_t purges;

static struct {
  time_t begin;
  /* Random, so that a client cannot find a path that shares the bucket of another page. */
  u_char seed[16];
  /* Of all pages. */
  uint32_t all;
  uint32_t paths[BUCKETS];
  /* Time of the last purge; 0: never. */
  uint64_t all_ms;
  uint64_t paths_ms[BUCKETS];
  /* Number of the last purge. */
  uint64_t all_purge;
  uint64_t paths_purge[BUCKETS];
  /* The latest of all these times. */
  uint64_t latest_ms;
  /* Time of the last purge of a tag. */
  uint64_t tags_ms;
} epochs;

static struct {
  /* Number of the last purge of the tag. */
  uint64_t purge;
  /* One bit for each bucket: set if it may have a page with the tag. */
  u_char buckets[BUCKETS / 8];
} tags[TAGS];

static ngx_uint_t hash(u_char *data, size_t length) {
  ngx_uint_t result;
  u_char digest[16];
  ngx_md5_t md5;

  if (epochs.begin == 0) {
    epochs.begin = ngx_time();
    /* Without randomness the seed is 0, and purges work all the same. */
    (void) !getrandom(epochs.seed, sizeof(epochs.seed), GRND_NONBLOCK);
  }
  ngx_md5_init(&md5);
  ngx_md5_update(&md5, epochs.seed, sizeof(epochs.seed));
  ngx_md5_update(&md5, data, length);
  ngx_md5_final(digest, &md5);
  ngx_memcpy(&result, digest, sizeof(result));
  return result;
}

static ngx_uint_t bucket_of(ngx_str_t *path) {
  return hash(path->data, path->len) % BUCKETS;
}

static uint64_t now_ms(void) {
  ngx_time_t *now = ngx_timeofday();

  return (uint64_t) now->sec * 1000 + now->msec;
}

static uint64_t changed_ms(ngx_uint_t bucket) {
  return ngx_max(epochs.all_ms, epochs.paths_ms[bucket]);
}

/* Returns the time of a change, or now if `ms` is 0; but later than `last_ms`, whose clock may be ahead. */
static uint64_t after(uint64_t last_ms, uint64_t ms) {
  if (ms == 0) {
    ms = now_ms();
  }
  ms = ngx_max(ms, last_ms + 1);
  epochs.latest_ms = ngx_max(epochs.latest_ms, ms);
  return ms;
}

/* Purges a bucket, unless its last change has the same time: it is the same change. Returns whether it has purged. */
static ngx_uint_t purge_bucket(ngx_uint_t bucket, uint64_t ms) {
  uint64_t last_ms = changed_ms(bucket);

  if (ms != 0 && ms == last_ms) {
    return 0;
  }
  epochs.paths[bucket]++;
  epochs.paths_ms[bucket] = after(last_ms, ms);
  epochs.paths_purge[bucket] = ++purges;
  return 1;
}

static void purge_all(uint64_t ms) {
  ngx_uint_t row;

  for (row = 0; row < TAGS; row++) {
    ngx_memzero(tags[row].buckets, sizeof(tags[row].buckets));
  }
  epochs.all++;
  epochs.all_ms = after(epochs.latest_ms, ms);
  epochs.all_purge = ++purges;
}

/* $corelane_cache_epoch. It begins with the start of nginx, so pages of an earlier nginx are never found. */
static ngx_int_t cache_epoch(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  u_char *text = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 2 * (NGX_INT32_LEN + 1));
  ngx_uint_t bucket = bucket_of(&r->uri);
  u_char *end;

  if (text == NULL) {
    return NGX_ERROR;
  }
  end = ngx_sprintf(text, "%T.%uD.%uD", epochs.begin, epochs.all, epochs.paths[bucket]);
  return corelane_set_value(value, text, end - text);
}

/* $corelane_cache_changed, for a home: the time of the last change of this path, and of the last purge of any tag. */
static ngx_int_t cache_changed(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  uint64_t ms = changed_ms(bucket_of(&r->uri));
  u_char *text;

  if (ms == 0 && epochs.tags_ms == 0) {
    return corelane_set_no_value(value);
  }
  text = ngx_pnalloc(r->pool, 2 * NGX_INT64_LEN + 1);
  return text == NULL ? NGX_ERROR
                      : corelane_set_value(value, text, ngx_sprintf(text, "%uL %uL", ms, epochs.tags_ms) - text);
}

static ngx_http_variable_value_t *said(ngx_http_request_t *r, ngx_str_t *name) {
  ngx_http_variable_value_t *value = ngx_http_get_variable(r, name, ngx_hash_key(name->data, name->len));

  return value == NULL || value->not_found ? NULL : value;
}

static uint64_t time_of(u_char *from, u_char *end) {
  ngx_int_t ms = ngx_atoi(from, end - from);

  return ms == NGX_ERROR || (uint64_t) ms > now_ms() + AHEAD_MS_MAX ? 0 : ms;
}

/* Reads X-Corelane-Changed: one time, or two. A missing time is 0. */
static void said_times(ngx_http_request_t *r, uint64_t *first, uint64_t *second) {
  static ngx_str_t name = ngx_string("http_x_corelane_changed");
  ngx_http_variable_value_t *value = said(r, &name);
  u_char *blank, *end;

  *first = *second = 0;
  if (value == NULL) {
    return;
  }
  end = value->data + value->len;
  blank = ngx_strlchr(value->data, end, ' ');
  *first = time_of(value->data, blank == NULL ? end : blank);
  if (blank != NULL) {
    *second = time_of(blank + 1, end);
  }
}

/*
 * $corelane_cache_peer_epoch, for a request of a peer. Purges the path if the peer knows a later change of the path, or
 * a later purge of a tag: this pod has not received that purge yet. Marks the request as background: nginx then does
 * not serve an expired page while it updates it, which the peer would cache. It does not count the request either.
 */
static ngx_int_t cache_peer_epoch(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_uint_t bucket = bucket_of(&r->uri);
  uint64_t path_ms, tags_ms;

  r->background = 1;
  said_times(r, &path_ms, &tags_ms);
  if (tags_ms > epochs.tags_ms) {
    path_ms = ngx_max(path_ms, tags_ms);
  }
  if (path_ms > changed_ms(bucket)) {
    purge_bucket(bucket, path_ms);
  }
  return cache_epoch(r, value, data);
}

/* Parses a path as nginx parses a request target: decodes it, removes query, dot segments and double slashes. */
static ngx_int_t path_of(ngx_http_request_t *r, u_char *from, u_char *end, ngx_str_t *path) {
  ngx_http_core_srv_conf_t *conf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
  ngx_http_request_t target = *r;

  target.uri.data = ngx_pnalloc(r->pool, end - from + 1);
  /* ngx_http_parse_complex_uri reads one byte behind the target. */
  target.uri_start = ngx_pnalloc(r->pool, end - from + 1);
  if (target.uri.data == NULL || target.uri_start == NULL) {
    return NGX_ERROR;
  }
  target.uri_end = ngx_cpymem(target.uri_start, from, end - from);
  *target.uri_end = ' ';
  target.empty_path_in_uri = 0;
  if (ngx_http_parse_complex_uri(&target, conf->merge_slashes) != NGX_OK) {
    return NGX_ERROR;
  }
  *path = target.uri;
  return NGX_OK;
}

static ngx_uint_t row_of(u_char *tag, u_char *end) {
  return hash(tag, end - tag) % TAGS;
}

static void purge_tag(ngx_uint_t row, uint64_t ms) {
  u_char *buckets = tags[row].buckets;
  ngx_uint_t bucket;

  /* Lower than the numbers of its buckets, see note_tag. */
  tags[row].purge = ++purges;
  for (bucket = 0; bucket < BUCKETS; bucket++) {
    if ((buckets[bucket / 8] & (1 << bucket % 8)) && purge_bucket(bucket, ms)) {
      buckets[bucket / 8] &= ~(1 << bucket % 8);
    }
  }
  if (ms == 0) {
    ms = now_ms();
  }
  epochs.tags_ms = ngx_max(epochs.tags_ms, ms);
}

/* Reads the time of an item, "MS:ITEM"; 0 if it has none. Moves `*from` behind the colon. */
static uint64_t time_before(u_char **from, u_char *end) {
  u_char *to;
  uint64_t ms;

  for (to = *from; to < end && *to >= '0' && *to <= '9'; to++) /* void */;
  if (to == *from || to == end || *to != ':') {
    return 0;
  }
  ms = time_of(*from, to);
  *from = to + 1;
  return ms;
}

/* Purges "/path", "tag:NAME", or "*" (all). Ignores other items: HAProxy has validated the list. */
static void purge_item(ngx_http_request_t *r, u_char *from, u_char *end) {
  static u_char tag[] = "tag:";
  size_t length = sizeof(tag) - 1;
  uint64_t ms = time_before(&from, end);
  ngx_str_t path;

  if (from < end && *from == '/') {
    if (path_of(r, from, end, &path) == NGX_OK) {
      (void) purge_bucket(bucket_of(&path), ms);
    }
  } else if ((size_t) (end - from) > length && ngx_memcmp(from, tag, length) == 0) {
    purge_tag(row_of(from + length, end), ms);
  } else if (end - from == 1 && *from == '*') {
    purge_all(ms);
  }
}

/* Finds the next item of a comma-separated list and trims it. Moves `*pos` behind it. Returns 0 at the end. */
static ngx_uint_t next_item(u_char **pos, u_char *end, u_char **from, u_char **to) {
  u_char *comma;

  if (*pos >= end) {
    return 0;
  }
  comma = ngx_strlchr(*pos, end, ',');
  if (comma == NULL) {
    comma = end;
  }
  for (*from = *pos; *from < comma && (**from == ' ' || **from == '\t'); (*from)++) /* void */;
  for (*to = comma; *to > *from && ((*to)[-1] == ' ' || (*to)[-1] == '\t'); (*to)--) /* void */;
  *pos = comma + 1;
  return 1;
}

/* $corelane_cache_purge. Reading it purges the items in X-Corelane-Purge. */
static ngx_int_t cache_purge(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  static u_char done[] = "done\n";
  static ngx_str_t name = ngx_string("http_x_corelane_purge");
  ngx_http_variable_value_t *items = said(r, &name);
  u_char *pos, *end, *from, *to;

  if (items != NULL) {
    pos = items->data;
    end = pos + items->len;
    while (next_item(&pos, end, &from, &to)) {
      purge_item(r, from, to);
    }
  }
  return corelane_set_value(value, done, sizeof(done) - 1);
}

uint64_t corelane_purges(void) {
  return purges;
}

/*
 * Stores that the bucket of the request has a page with this tag. If the tag was purged during the render, that purge
 * did not know the page: purges the bucket, unless it was purged after the tag.
 */
static void note_tag(ngx_http_request_t *r, ngx_uint_t row) {
  corelane_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_corelane_module);
  ngx_uint_t bucket = bucket_of(&r->uri);
  uint64_t before = ngx_max(epochs.all_purge, epochs.paths_purge[bucket]);

  if (tags[row].purge > ngx_max(ctx->purges, before)) {
    (void) purge_bucket(bucket, 0);
  }
  tags[row].buckets[bucket / 8] |= 1 << bucket % 8;
}

static void note_line(ngx_http_request_t *r, ngx_str_t *line) {
  u_char *pos = line->data, *end = line->data + line->len, *from, *to;

  while (next_item(&pos, end, &from, &to)) {
    if (to > from) {
      note_tag(r, row_of(from, to));
    }
  }
}

void corelane_note_tags(ngx_http_request_t *r) {
  static ngx_str_t name = ngx_string("Cache-Tag");
  ngx_list_part_t *part;
  ngx_table_elt_t *header;
  ngx_uint_t i;

  if (r->cache == NULL || r->cached) {
    return;
  }
  for (part = &r->upstream->headers_in.headers.part; part != NULL; part = part->next) {
    header = part->elts;
    for (i = 0; i < part->nelts; i++) {
      if (header[i].hash != 0 && header[i].key.len == name.len
          && ngx_strncasecmp(header[i].key.data, name.data, name.len) == 0) {
        note_line(r, &header[i].value);
      }
    }
  }
}

ngx_int_t corelane_add_purge_variables(ngx_conf_t *cf) {
  return corelane_add_variable(cf, "corelane_cache_epoch", cache_epoch) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_changed", cache_changed) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_peer_epoch", cache_peer_epoch) != NGX_OK
                 || corelane_add_variable(cf, "corelane_cache_purge", cache_purge) != NGX_OK
             ? NGX_ERROR
             : NGX_OK;
}

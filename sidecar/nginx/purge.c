/*
 * Purges cached pages by their path, by a tag, or all (docs/cache.md). Nothing is searched or deleted: each path has a
 * number, its epoch, which is part of the cache key. A purge increments it, so a render that is in progress is
 * discarded, too. Several paths share an epoch (a bucket).
 *
 * Times are milliseconds since 1970 of the pod that saw a change, so all pods mean the same change by them.
 */
#include "corelane.h"
#include <ngx_md5.h>
#include <sys/random.h>

#define BUCKETS 16384
/* Tags share a row, like paths a bucket. */
#define TAGS 1024
/* A time that is further ahead is of no clock that is right. */
#define AHEAD_MS_MAX 60000

/* Purges of this nginx so far, by which it knows their order: a clock may be put back. */
static uint64_t purges;

static struct {
  time_t begin;
  /* Of this nginx, so that no client can choose paths, or an application tags, that share a bucket. */
  u_char seed[16];
  /* Of all pages. */
  uint32_t all;
  uint32_t paths[BUCKETS];
  /* When that was last; 0: never. */
  uint64_t all_ms;
  uint64_t paths_ms[BUCKETS];
  /* The last purge of a bucket, by number. */
  uint64_t all_purge;
  uint64_t paths_purge[BUCKETS];
  /* The latest time of a change. */
  uint64_t latest_ms;
  /* Of the last purge of a tag. */
  uint64_t tags_ms;
} epochs;

static struct {
  /* The last purge of the tag, by number. */
  uint64_t purge;
  /* The buckets in which a page has had such a tag since they were purged last. */
  u_char buckets[BUCKETS / 8];
} tags[TAGS];

static ngx_uint_t hash(u_char *data, size_t length) {
  ngx_uint_t result;
  u_char digest[16];
  ngx_md5_t md5;

  if (epochs.begin == 0) {
    epochs.begin = ngx_time();
    /* What cannot be had leaves the seed as it is: that costs nobody a page. */
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

/* The time of a change: later than the one before, be that of a pod whose clock is ahead. 0: nobody says it. */
static uint64_t after(uint64_t last_ms, uint64_t ms) {
  if (ms == 0) {
    ms = now_ms();
  }
  ms = ngx_max(ms, last_ms + 1);
  epochs.latest_ms = ngx_max(epochs.latest_ms, ms);
  return ms;
}

/* Does nothing if the pod has heard of the very same change before; gives whether it has done anything. */
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

/* $corelane_cache_epoch. The pages of an nginx that has ended are of none. */
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

/* $corelane_cache_changed, for a home: when what is at this path was changed last, and when a tag was purged last. */
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

/* X-Corelane-Changed: one time, or two; 0 for what it does not say. */
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
 * $corelane_cache_peer_epoch, for a peer: what was changed there, and not yet here, is no more what it was here. A peer
 * that has heard of a purge of a tag does not know which paths that is about. nginx gives a background request no page
 * that is over while another one is made: the peer would keep it. Nor is it counted among those of clients.
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

/* The path of a target as nginx has it in a request: decoded, without a query, dot segments and double slashes. */
static ngx_int_t path_of(ngx_http_request_t *r, u_char *from, u_char *end, ngx_str_t *path) {
  ngx_http_core_srv_conf_t *conf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
  ngx_http_request_t target = *r;

  target.uri.data = ngx_pnalloc(r->pool, end - from + 1);
  /* nginx reads the byte behind the target. */
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

  /* Before those of the buckets. */
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

/* The time of an item, "MS:ITEM"; 0 if it has none. Moves `*from` behind it. */
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

/* "/path", "tag:NAME", or "*" for all. What is none of these purges nothing: HAProxy has looked at it before. */
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

/* The next item of a list with commas, without the blanks around it; false at its end. Moves `*pos` behind it. */
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

/* $corelane_cache_purge: reading it purges what the header X-Corelane-Purge lists. */
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
 * Notes that a page with this tag is in the bucket of the request. Discards the page if the tag was purged while it was
 * rendered, and the bucket was not purged since: the purge could not know of it.
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

/*
 * Names of headers. nginx, HAProxy and Node.js take any token of RFC 9110 for a name, so an application gets `api_key`
 * and `x.trace` as they were sent. But some programs read "_" and "." as "-", and nginx reads "_" so
 * ($http_x_request_id). A client that must not send a header (a second Content-Length, what only a proxy may say) could
 * send one that is read as that header. Such a header gets another name here, and HAProxy removes all headers of that
 * name. HAProxy answers 400 without a reason to a name that is no token, or longer than 255 bytes; nginx refuses these.
 */
#include "corelane.h"

#define NAME_BYTES_MAX 255
/* Of all in a line of the access log. */
#define TOLD_BYTES_MAX 512
#define PREFIX "http_"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)

/* Letters, digits and "-" only; a token with others; no name that HAProxy takes. */
enum { NAME_PLAIN, NAME_ODD, NAME_NONE };

/*
 * Headers that Corelane sets or trusts (docs/edge.md). Each text is the beginning of a name; a text that ends with "$"
 * is a whole name. A name without "-", such as Forwarded, has no other spelling and is not here. All others that
 * FORWARDING of operator/src/render/haproxy/entrance.ts removes must be here; a unit test compares the two.
 */
static const char *families[] = {
    "x-corelane-",          "x-forwarded",     "x-real-ip$",       "x-request-id$",
    "x-request-start$",     "x-original-",     "x-rewrite-",       "x-client-ip$",
    "x-cluster-client-ip$", "true-client-ip$", "cf-connecting-ip", "fastly-client-ip$",
    "x-host$",              "x-scheme$",       "x-url-scheme$",    "front-end-https$",
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static ngx_str_t removed_name = ngx_string("X-Corelane-Removed");
/* By its address: a client may send such a header, too. */
static u_char removed_key[] = "x-corelane-removed";

static ngx_uint_t is_plain(u_char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '-';
}

static ngx_uint_t is_of_token(u_char byte) {
  return byte != '\0' && (is_plain(byte) || ngx_strchr("!#$%&'*+.^_`|~", byte) != NULL);
}

static ngx_uint_t kind_of(ngx_str_t *name) {
  ngx_uint_t kind = NAME_PLAIN;
  size_t i;

  for (i = 0; i < name->len; i++) {
    if (is_plain(name->data[i])) continue;
    if (!is_of_token(name->data[i])) return NAME_NONE;
    kind = NAME_ODD;
  }
  return name->len == 0 || name->len > NAME_BYTES_MAX ? NAME_NONE : kind;
}

static ngx_uint_t is_in_family(u_char *name, size_t length) {
  ngx_uint_t i, is_whole;
  size_t size;

  for (i = 0; i < FAMILIES; i++) {
    size = ngx_strlen(families[i]);
    is_whole = families[i][size - 1] == '$';
    size -= is_whole;
    if ((is_whole ? length == size : length >= size) && ngx_memcmp(name, families[i], size) == 0) return 1;
  }
  return 0;
}

/* Whether nginx.conf reads a header of this name. nginx keeps `$http_x_trace` as a variable named "http_x_trace". */
static ngx_uint_t is_looked_at(ngx_array_t *variables, u_char *name, size_t length) {
  ngx_http_variable_t *variable = variables->elts;
  ngx_uint_t i;
  size_t at;
  u_char *rest;

  for (i = 0; i < variables->nelts; i++) {
    if (variable[i].name.len != PREFIX_LENGTH + length) continue;
    if (ngx_strncmp(variable[i].name.data, PREFIX, PREFIX_LENGTH) != 0) continue;
    rest = variable[i].name.data + PREFIX_LENGTH;
    for (at = 0; at < length && rest[at] == (name[at] == '-' ? '_' : name[at]); at++) /* void */;
    if (at == length) return 1;
  }
  return 0;
}

/* Whether a program that reads other characters as "-" would take it for a header of nginx or of the proxies. */
static ngx_uint_t looks_like_another(ngx_http_request_t *r, ngx_str_t *name) {
  ngx_http_core_main_conf_t *core = ngx_http_get_module_main_conf(r, ngx_http_core_module);
  u_char read_as[NAME_BYTES_MAX] = {0};
  size_t i;

  for (i = 0; i < name->len; i++) read_as[i] = is_plain(name->data[i]) ? ngx_tolower(name->data[i]) : '-';
  return is_in_family(read_as, name->len) || is_looked_at(&core->variables, read_as, name->len)
         || ngx_hash_find(&core->headers_in_hash, ngx_hash_key(read_as, name->len), read_as, name->len) != NULL;
}

ngx_int_t corelane_check_names(ngx_http_request_t *r) {
  ngx_list_part_t *part;
  ngx_table_elt_t *header;
  ngx_uint_t i, kind;

  for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
    header = part->elts;
    for (i = 0; i < part->nelts; i++) {
      kind = kind_of(&header[i].key);
      if (kind == NAME_NONE) {
        return CORELANE_BAD_REQUEST;
      }
      if (kind == NAME_PLAIN || !looks_like_another(r, &header[i].key)) continue;
      /* Renamed, not removed from the list: nginx has pointers to other headers in it. */
      header[i].value = header[i].key;
      header[i].key = removed_name;
      header[i].lowcase_key = removed_key;
      header[i].hash = ngx_hash_key(removed_key, sizeof(removed_key) - 1);
    }
  }
  return NGX_DECLINED;
}

/* $corelane_removed_headers: their names, as they were sent. */
static ngx_int_t removed_headers(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_list_part_t *part;
  ngx_table_elt_t *header;
  ngx_uint_t i;
  u_char *text = NULL, *to = NULL;

  for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
    header = part->elts;
    for (i = 0; i < part->nelts; i++) {
      if (header[i].lowcase_key != removed_key) continue;
      if (text == NULL) {
        text = to = ngx_pnalloc(r->pool, TOLD_BYTES_MAX);
        if (text == NULL) return NGX_ERROR;
      }
      to = ngx_slprintf(to, text + TOLD_BYTES_MAX, "%s%V", to == text ? "" : ", ", &header[i].value);
    }
  }
  return text == NULL ? corelane_set_value(value, (u_char *) "", 0) : corelane_set_value(value, text, to - text);
}

ngx_int_t corelane_add_names_variables(ngx_conf_t *cf) {
  return corelane_add_variable(cf, "corelane_removed_headers", removed_headers);
}

/*
 * Bytes beyond ASCII in the target of a request, which old clients send as they are. Node.js takes them, HAProxy does
 * not, and would take more than these if it did. They become what a browser sends in their place: %C3%A9. Also
 * the method and the target of a request that nginx refuses before it has read the first line, for the access log.
 */
#include "corelane.h"

#define IS_ASCII(byte) ((byte) < 0x80)
#define ENCODED_MORE 2
/* No method is longer. A client may send anything in its place. */
#define METHOD_BYTES_MAX 32
#define PROTOCOL "HTTP/"

/* Also the query, which is a part of the target: nginx makes a target of path and query where there is no path. */
static void encode(ngx_str_t *target, u_char *to, ngx_str_t *query) {
  static const u_char digits[] = "0123456789ABCDEF";
  u_char *from, *last = target->data + target->len, *query_last = query->data + query->len;
  ngx_str_t encoded = {0, to}, encoded_query = *query;

  for (from = target->data; from <= last; from++) {
    if (from == query->data) encoded_query.data = to;
    if (from == query_last) encoded_query.len = to - encoded_query.data;
    if (from == last) break;
    if (IS_ASCII(*from)) {
      *to++ = *from;
      continue;
    }
    *to++ = '%';
    *to++ = digits[*from >> 4];
    *to++ = digits[*from & 0xf];
  }
  encoded.len = to - encoded.data;
  *target = encoded;
  if (query->len > 0) *query = encoded_query;
}

ngx_int_t corelane_encode_target(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  ngx_str_t *target = &r->unparsed_uri;
  ngx_uint_t i, others = 0;
  size_t length;
  u_char *encoded;

  for (i = 0; i < target->len; i++) {
    /* Browsers send no fragment. HAProxy's parser would answer 400 without a reason. */
    if (target->data[i] == '#') {
      return CORELANE_BAD_REQUEST;
    }
    others += !IS_ASCII(target->data[i]);
  }
  if (others == 0) {
    return NGX_DECLINED;
  }
  length = target->len + others * ENCODED_MORE;
  /* Before it takes memory: who is refused has no place. */
  if (length > conf->head_max) {
    return CORELANE_HEAD_TOO_LARGE;
  }
  encoded = ngx_pnalloc(r->pool, length);
  if (encoded == NULL) {
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  encode(target, encoded, &r->args);
  return NGX_DECLINED;
}

/* The first line, or the part that nginx has read before it refused it. $request of nginx finds it in the same way. */
static ngx_str_t first_line(ngx_http_request_t *r) {
  ngx_str_t line = r->request_line;
  u_char *byte = r->request_start;

  /* Until a line is complete, header_in is the buffer that it is in. */
  if (line.len > 0 || byte == NULL || byte < r->header_in->start || byte >= r->header_in->last) {
    return line;
  }
  line.data = byte;
  while (byte < r->header_in->last && *byte != CR && *byte != LF) byte++;
  line.len = byte - line.data;
  return line;
}

/* A line without its method and version. */
static ngx_str_t target_of(ngx_str_t line) {
  u_char *begin = line.data, *end = line.data + line.len, *word;
  ngx_str_t target = ngx_null_string;

  while (begin < end && *begin != ' ') begin++;
  while (begin < end && *begin == ' ') begin++;
  for (word = end; word > begin && word[-1] != ' '; word--) /* void */;
  if ((size_t) (end - word) >= sizeof(PROTOCOL) - 1
      && ngx_strncasecmp(word, (u_char *) PROTOCOL, sizeof(PROTOCOL) - 1) == 0) {
    for (end = word; end > begin && end[-1] == ' '; end--) /* void */;
  }
  target.data = begin;
  target.len = end - begin;
  return target;
}

ngx_str_t corelane_sent_target(ngx_http_request_t *r) {
  return r->unparsed_uri.len == 0 ? target_of(first_line(r)) : r->unparsed_uri;
}

/* $corelane_target */
static ngx_int_t target(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_str_t text = corelane_sent_target(r);

  return text.len == 0 ? corelane_set_value(value, (u_char *) "", 0) : corelane_set_value(value, text.data, text.len);
}

static ngx_uint_t is_of_method(u_char byte) {
  return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_';
}

/* $corelane_method: the method that the client sent. error_page turns all but HEAD into GET in $request_method. */
static ngx_int_t method(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data) {
  ngx_str_t text = first_line(r);
  size_t length = 0;

  while (length < text.len && length < METHOD_BYTES_MAX && is_of_method(text.data[length])) length++;
  return length == 0 ? corelane_set_value(value, (u_char *) "", 0) : corelane_set_value(value, text.data, length);
}

ngx_int_t corelane_add_target_variables(ngx_conf_t *cf) {
  return corelane_add_variable(cf, "corelane_target", target) != NGX_OK
                 || corelane_add_variable(cf, "corelane_method", method) != NGX_OK
             ? NGX_ERROR
             : NGX_OK;
}

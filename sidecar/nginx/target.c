/*
 * Bytes beyond ASCII in the target of a request, which old clients send as they are. Node.js takes them, HAProxy does
 * not, and would take more than these if it did. They become what a browser sends in their place: %C3%A9.
 */
#include "corelane.h"

#define IS_ASCII(byte) ((byte) < 0x80)
#define ENCODED_MORE 2

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
  ngx_str_t *target = &r->unparsed_uri;
  ngx_uint_t i, others = 0;
  size_t length;
  u_char *encoded;

  for (i = 0; i < target->len; i++) {
    others += !IS_ASCII(target->data[i]);
  }
  if (others == 0) {
    return NGX_DECLINED;
  }
  length = target->len + others * ENCODED_MORE;
  /* Before it takes memory: who is refused has no place. */
  if (length > CORELANE_HEAD_MAX) {
    return CORELANE_BAD_REQUEST;
  }
  encoded = ngx_pnalloc(r->pool, length);
  if (encoded == NULL) {
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  encode(target, encoded, &r->args);
  return NGX_DECLINED;
}

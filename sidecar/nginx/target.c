/*
 * Bytes beyond ASCII in the target of a request, which old clients send as they are. Node.js takes them, HAProxy does
 * not, and would take more than these if it did. They become what a browser sends in their place: %C3%A9.
 */
#include "corelane.h"

#define IS_ASCII(byte) ((byte) < 0x80)
#define ENCODED_MORE 2

ngx_int_t corelane_encode_target(ngx_http_request_t *r) {
  static const u_char digits[] = "0123456789ABCDEF";
  ngx_str_t *target = &r->unparsed_uri, encoded;
  ngx_uint_t i, others = 0;
  u_char *to;

  for (i = 0; i < target->len; i++) {
    others += !IS_ASCII(target->data[i]);
  }
  if (others == 0) {
    return NGX_DECLINED;
  }
  encoded.len = target->len + others * ENCODED_MORE;
  encoded.data = to = ngx_pnalloc(r->pool, encoded.len);
  if (to == NULL) {
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  for (i = 0; i < target->len; i++) {
    u_char byte = target->data[i];

    if (IS_ASCII(byte)) {
      *to++ = byte;
      continue;
    }
    *to++ = '%';
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 0xf];
  }
  *target = encoded;
  return NGX_DECLINED;
}

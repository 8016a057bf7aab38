/*
 * What the head of a request may be (docs/adr/0057-heads.md). HAProxy would answer 400 to one that is too large,
 * without a reason. Control characters, which no header may have, it passes on, and Node.js answers 400: to a request
 * that may be the one of many for whom a page is rendered.
 */
#include "corelane.h"

/* Of each header beside name and value, as HAProxy keeps it. */
#define HEADER_BYTES 8

static ngx_uint_t is_clean(ngx_str_t *value) {
  size_t i;

  for (i = 0; i < value->len; i++) {
    if ((value->data[i] < ' ' && value->data[i] != '\t') || value->data[i] == 0x7f) {
      return 0;
    }
  }
  return 1;
}

size_t corelane_head_bytes(ngx_http_request_t *r) {
  size_t bytes = r->method_name.len + r->unparsed_uri.len;
  ngx_list_part_t *part;
  ngx_table_elt_t *headers;
  ngx_uint_t i;

  for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
    headers = part->elts;
    for (i = 0; i < part->nelts; i++) bytes += headers[i].key.len + headers[i].value.len + HEADER_BYTES;
  }
  return bytes;
}

ngx_int_t corelane_check_size(ngx_http_request_t *r) {
  corelane_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_corelane_module);
  ngx_list_part_t *part;
  ngx_table_elt_t *headers;
  ngx_uint_t i;

  /*
   * The size was checked before the request got its place. corelane_note_personal may have added a header since. A
   * refused request that gets the page of `fallback` passes here a second time, and must not be refused again.
   */
  if (corelane_has_place(r) || r->err_status != 0) {
    return NGX_DECLINED;
  }
  for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
    headers = part->elts;
    for (i = 0; i < part->nelts; i++) {
      if (!is_clean(&headers[i].value)) {
        return CORELANE_BAD_REQUEST;
      }
    }
  }
  return corelane_head_bytes(r) > conf->head_max ? CORELANE_HEAD_TOO_LARGE : NGX_DECLINED;
}

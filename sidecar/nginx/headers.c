/* Headers that nginx has no field for. */
#include "corelane.h"

static ngx_table_elt_t *find(ngx_list_part_t *part, ngx_str_t *name) {
  ngx_table_elt_t *header;
  ngx_uint_t i;

  for (; part != NULL; part = part->next) {
    header = part->elts;
    for (i = 0; i < part->nelts; i++) {
      /* One that was taken back has no hash. */
      if (header[i].hash != 0 && header[i].key.len == name->len
          && ngx_strncasecmp(header[i].key.data, name->data, name->len) == 0) {
        return &header[i];
      }
    }
  }
  return NULL;
}

ngx_table_elt_t *corelane_find_header(ngx_http_upstream_t *u, ngx_str_t *name) {
  return find(&u->headers_in.headers.part, name);
}

ngx_table_elt_t *corelane_find_sent(ngx_http_request_t *r, ngx_str_t *name) {
  return find(&r->headers_out.headers.part, name);
}

/* Responses that nobody may transform (RFC 9111): nginx' gzip does not look for it. */
#include "corelane.h"

static u_char no_transform[] = "no-transform";

void corelane_mind_no_transform(ngx_http_request_t *r) {
  ngx_table_elt_t *header;

  for (header = r->upstream->headers_in.cache_control; header != NULL; header = header->next) {
    if (ngx_strlcasestrn(header->value.data, header->value.data + header->value.len, no_transform,
                         sizeof(no_transform) - 2)) {
      /* What it would have found out of the request. */
      r->gzip_tested = 1;
      r->gzip_ok = 0;
    }
  }
}

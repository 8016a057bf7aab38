/* What this module changes of a request that goes to HAProxy, before nginx sends it. */
#include "corelane.h"

ngx_int_t corelane_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *upstream) {
  corelane_upstream_t *conf = ngx_http_conf_upstream_srv_conf(upstream, ngx_http_corelane_module);
  corelane_ctx_t *ctx = ngx_pcalloc(r->pool, sizeof(corelane_ctx_t));

  if (ctx == NULL) {
    return NGX_ERROR;
  }
  ctx->purges = corelane_purges();
  corelane_init_interim(r, ctx);
  corelane_init_streaming(r, ctx);
  ngx_http_set_ctx(r, ctx, ngx_http_corelane_module);
  return conf->init_peer(r, upstream);
}

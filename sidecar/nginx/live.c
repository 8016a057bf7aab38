/*
 * Settings that change while nginx runs, in a file that kubelet replaces (docs/live-settings.md): how many requests one
 * client may have. It is limit_conn that counts them, whose number is nowhere to be set but in nginx.conf, and a reload
 * would close connections on which a client is about to send.
 */
#include "corelane.h"

/* A change is seen at most this much later. */
#define LOOK_MS 250
/* As HAProxy's Lua has it. */
#define BYTES_MAX 16384
#define NAME "\nper-client="

extern ngx_module_t ngx_http_limit_conn_module;

/* As far as they are looked at here, as ngx_http_limit_conn_module.c has them for itself. */
typedef struct {
  ngx_shm_zone_t *shm_zone;
  ngx_uint_t conn;
} limit_t;
typedef struct {
  ngx_array_t limits;
} limits_t;

static ngx_event_t tick;
static ngx_connection_t tick_connection;
static ngx_array_t *found;
static ngx_str_t *file;
static ngx_uint_t clients_max;

/* What the file says, or 0. */
static ngx_uint_t read_limit(void) {
  static u_char text[BYTES_MAX + 1];
  ssize_t size;
  u_char *begin, *end;
  ngx_int_t limit;
  ngx_fd_t fd = ngx_open_file(file->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

  if (fd == NGX_INVALID_FILE) return 0;
  size = ngx_read_fd(fd, text, BYTES_MAX);
  ngx_close_file(fd);
  /* One that is too long, or not written to its end. */
  if (size <= 0 || size == BYTES_MAX || text[size - 1] != '\n') return 0;
  text[size] = '\0';
  begin = (u_char *) ngx_strstr(text, NAME);
  if (begin == NULL) return 0;
  begin += sizeof(NAME) - 1;
  end = (u_char *) ngx_strchr(begin, '\n');
  limit = ngx_atoi(begin, end - begin);
  return limit >= 1 && (ngx_uint_t) limit <= clients_max ? (ngx_uint_t) limit : 0;
}

static void look(void) {
  ngx_uint_t i, limit = read_limit();
  limit_t **limits = found->elts;

  /* What is wrong changes nothing; HAProxy says so. */
  if (limit == 0) return;
  for (i = 0; i < found->nelts; i++) limits[i]->conn = limit;
}

static void look_again(ngx_event_t *ev) {
  look();
  ngx_add_timer(ev, LOOK_MS);
}

/* The limits of clients in a location, those that it has from its server once more. */
static ngx_int_t find(ngx_cycle_t *cycle, void **locations) {
  limits_t *conf = locations[ngx_http_limit_conn_module.ctx_index];
  limit_t *limits = conf->limits.elts, **one;
  ngx_uint_t i;

  for (i = 0; limits != NULL && i < conf->limits.nelts; i++) {
    if (limits[i].shm_zone->shm.name.len != sizeof("clients") - 1
        || ngx_strncmp(limits[i].shm_zone->shm.name.data, "clients", sizeof("clients") - 1) != 0) continue;
    if (limits[i].conn != clients_max) {
      ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "limit_conn is another one than corelane_clients says");
      return NGX_ERROR;
    }
    one = ngx_array_push(found);
    if (one == NULL) return NGX_ERROR;
    *one = &limits[i];
  }
  return NGX_OK;
}

ngx_int_t corelane_init_live(ngx_cycle_t *cycle) {
  corelane_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_corelane_module);
  ngx_http_core_main_conf_t *core = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);
  ngx_http_core_srv_conf_t **servers = core->servers.elts;
  ngx_uint_t i;

  if (conf->live_file.len == 0) return NGX_OK;
  file = &conf->live_file;
  clients_max = conf->clients_max;
  found = ngx_array_create(cycle->pool, 4, sizeof(limit_t *));
  if (found == NULL) return NGX_ERROR;
  for (i = 0; i < core->servers.nelts; i++) {
    if (find(cycle, servers[i]->ctx->loc_conf) != NGX_OK) return NGX_ERROR;
  }
  look();
  tick_connection.fd = (ngx_socket_t) -1;
  tick.handler = look_again;
  tick.data = &tick_connection;
  tick.log = cycle->log;
  tick.cancelable = 1;
  ngx_add_timer(&tick, LOOK_MS);
  return NGX_OK;
}

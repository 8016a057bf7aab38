/*
 * Listening sockets that belong to the entry point. A proxy gets them as open files, and the next one the same: what
 * comes while none is there waits in the kernel.
 */
#define _GNU_SOURCE
#include "entrypoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096
#define PORTS_MAX 4

/* Files of the ports, which are given up before the proxies end. */
static int ports[PORTS_MAX];
static size_t ports_count;

bool has_ipv6(void) {
  return access("/proc/net/if_inet6", F_OK) == 0;
}

/* nginx leaves a socket that it is given as it is, and must not wait for a client that another process has taken. */
static int new_socket(int family, const char *what) {
  int file = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (file < 0) fail("%s: %s", what, strerror(errno));
  return file;
}

static void set_option(int file, int level, int option, int value, const char *what) {
  if (setsockopt(file, level, option, &value, sizeof value) < 0) fail("%s: %s", what, strerror(errno));
}

static void start_listening(int file, const void *address, socklen_t length, const char *what) {
  if (bind(file, address, length) < 0 || listen(file, BACKLOG) < 0) fail("%s: %s", what, strerror(errno));
}

/* A socket in the folder of the pod, for its own user only. HAProxy finds it by `variable`. */
void hold_socket(const char *name, const char *variable) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, RUN_FOLDER "/%s.sock", name);
  unlink(address.sun_path);
  int file = new_socket(AF_UNIX, name);
  mode_t before = umask(0177);
  start_listening(file, &address, sizeof address, address.sun_path);
  umask(before);
  set_variable(variable, "fd@%d", file);
}

/* IPv6 only, or for both families. */
static int listen_ipv6(long port, bool ipv6_only) {
  char what[32];
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
  snprintf(what, sizeof what, "[::]:%ld", port);
  int file = new_socket(AF_INET6, what);
  set_option(file, SOL_SOCKET, SO_REUSEADDR, 1, what);
  set_option(file, IPPROTO_IPV6, IPV6_V6ONLY, ipv6_only, what);
  start_listening(file, &address, sizeof address, what);
  return ports[ports_count++] = file;
}

static int listen_ipv4(in_addr_t host, long port) {
  char what[32];
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {.s_addr = htonl(host)}};
  snprintf(what, sizeof what, "port %ld", port);
  int file = new_socket(AF_INET, what);
  set_option(file, SOL_SOCKET, SO_REUSEADDR, 1, what);
  start_listening(file, &address, sizeof address, what);
  return ports[ports_count++] = file;
}

/* A port of HAProxy, which finds it by `variable`. */
void hold_port(long port, const char *variable) {
  set_variable(variable, "fd@%d", has_ipv6() ? listen_ipv6(port, false) : listen_ipv4(INADDR_ANY, port));
}

/*
 * Ports of nginx, the second one on loopback. nginx takes them for those of its predecessor: so it hands its sockets on
 * when it is upgraded.
 */
void hold_nginx_ports(long http_port, long figures_port) {
  int http = listen_ipv4(INADDR_ANY, http_port), figures = listen_ipv4(INADDR_LOOPBACK, figures_port);
  if (has_ipv6()) set_variable("NGINX", "%d;%d;%d;", http, figures, listen_ipv6(http_port, true));
  else set_variable("NGINX", "%d;%d;", http, figures);
}

/* From here on whoever comes is refused as soon as the proxy has closed its own copies. */
void give_up_ports(void) {
  while (ports_count > 0) close(ports[--ports_count]);
  unsetenv("NGINX");
}

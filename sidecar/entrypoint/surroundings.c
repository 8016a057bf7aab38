/* What HAProxy cannot find out: who answers DNS, the cluster's domain, and where kubelet's probes come from. */
#define _GNU_SOURCE
#include "entrypoint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES_MAX_BYTES 1000
#define BLANKS " \t\n"
/* Istio's ambient mode gives connections of the node itself these addresses. No pod has them. */
#define AMBIENT_IPV4 "169.254.7.127"
#define AMBIENT_IPV6 "fd16:9254:7127:1337:ffff:ffff:ffff:ffff"

static bool is_address(const char *text) {
  unsigned char parsed[sizeof(struct in6_addr)];
  return inet_pton(AF_INET, text, parsed) == 1 || inet_pton(AF_INET6, text, parsed) == 1;
}

/* The next word of a `nameserver` line, without the zone of a link-local address. True if it is one. */
static bool take_name_server(void) {
  char *address = strtok(NULL, BLANKS);
  if (address == NULL) return false;
  address[strcspn(address, "%")] = '\0';
  if (!is_address(address)) return false;
  set_variable("CORELANE_NAMESERVER", "%s", address);
  return true;
}

/*
 * The rest of `search NAMESPACE.svc.DOMAIN svc.DOMAIN DOMAIN`, as kubelet writes it; the domains of the node and of the
 * pod's own dnsConfig stand behind them. True if there is one.
 */
static bool take_cluster_domain(char *domain, size_t size) {
  for (char *name = strtok(NULL, BLANKS); name != NULL; name = strtok(NULL, BLANKS)) {
    if (strncmp(name, "svc.", 4) != 0 || strlen(name + 4) >= size) continue;
    strcpy(domain, name + 4);
    return true;
  }
  return false;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* $CORELANE_NAMESERVER, and $CORELANE_PEERS with the cluster's domain. */
void find_cluster_dns(void) {
  char *line = NULL, domain[256] = "cluster.local";
  size_t line_size = 0;
  const char *peers = getenv("CORELANE_PEERS");
  bool has_name_server = false, has_domain = false; /* the first one counts */
  FILE *file = fopen("/etc/resolv.conf", "re");
  while (file != NULL && getline(&line, &line_size, file) > 0) {
    const char *word = strtok(line, BLANKS);
    if (word == NULL) continue;
    if (!has_name_server && strcmp(word, "nameserver") == 0) has_name_server = take_name_server();
    if (!has_domain && strcmp(word, "search") == 0) has_domain = take_cluster_domain(domain, sizeof domain);
  }
  free(line);
  if (file != NULL) fclose(file);
  if (peers != NULL && ends_with(peers, ".svc")) {
    char host[512];
    snprintf(host, sizeof host, "%s.%s", peers, domain);
    set_variable("CORELANE_PEERS", "%s", host);
  }
}

/* HAProxy would not start with anything but addresses in there. */
static void add_address(char *addresses, const char *address) {
  if (!is_address(address)) return;
  size_t length = strlen(addresses);
  if (length + strlen(address) + 2 <= ADDRESSES_MAX_BYTES) sprintf(addresses + length, "%s ", address);
}

/* Gateway of the default route. The first of several, as the kernel's list has it. */
static void add_ipv4_gateway(char *addresses) {
  char line[256], text[INET_ADDRSTRLEN];
  FILE *file = fopen("/proc/net/route", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    /* Interface, destination, gateway, flags, three counters, mask; addresses as the machine has them in memory. */
    unsigned destination, gateway, mask;
    if (sscanf(line, "%*s %x %x %*s %*s %*s %*s %x", &destination, &gateway, &mask) != 3) continue;
    struct in_addr address = {.s_addr = gateway};
    if (destination == 0 && mask == 0 && gateway != 0 && inet_ntop(AF_INET, &address, text, sizeof text) != NULL)
      add_address(addresses, text);
  }
  if (file != NULL) fclose(file);
}

static void add_ipv6_gateway(char *addresses) {
  char line[256], destination[33], gateway[33], text[INET6_ADDRSTRLEN];
  unsigned prefix;
  FILE *file = fopen("/proc/net/ipv6_route", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    /* Destination and its prefix, source and its prefix, next hop; 32 hex digits each. */
    if (sscanf(line, "%32s %x %*s %*s %32s", destination, &prefix, gateway) != 3 || strlen(gateway) != 32) continue;
    if (prefix != 0 || strspn(destination, "0") != 32 || strspn(gateway, "0") == 32) continue;
    struct in6_addr address;
    for (size_t i = 0; i < sizeof address.s6_addr; i++) {
      unsigned byte = 0;
      sscanf(gateway + 2 * i, "%2x", &byte);
      address.s6_addr[i] = (unsigned char)byte;
    }
    if (inet_ntop(AF_INET6, &address, text, sizeof text) != NULL) add_address(addresses, text);
  }
  if (file != NULL) fclose(file);
}

/*
 * $CORELANE_NODE: addresses of the node, as far as known here. kubelet's probes come from one of these, or from the
 * default gateway, which most networks of pods have on the node, or from those of Istio's ambient mode.
 */
void find_node_addresses(void) {
  char addresses[ADDRESSES_MAX_BYTES] = "", given[ADDRESSES_MAX_BYTES];
  const char *host_ips = getenv("CORELANE_HOST_IPS");
  add_ipv4_gateway(addresses);
  add_ipv6_gateway(addresses);
  /* Two in practice. Half an address could be somebody else's. */
  if (snprintf(given, sizeof given, "%s", host_ips == NULL ? "" : host_ips) >= (int)sizeof given)
    fail("CORELANE_HOST_IPS is too long");
  for (char *address = strtok(given, ", "); address != NULL; address = strtok(NULL, ", "))
    add_address(addresses, address);
  add_address(addresses, AMBIENT_IPV4);
  add_address(addresses, AMBIENT_IPV6);
  set_variable("CORELANE_NODE", "%s", addresses);
}

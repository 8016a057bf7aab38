/* What the files of the entry point share. entrypoint.c tells what it is for. */
#ifndef CORELANE_ENTRYPOINT_H
#define CORELANE_ENTRYPOINT_H

#include <stdbool.h>

/* The ConfigMap that the operator has rendered. */
#define CONFIG_FOLDER "/etc/corelane"
/* Sockets and marks that both proxies see. */
#define RUN_FOLDER "/run/corelane"
/* Marks of a drain that the hooks of all other containers see, too: a volume of its own. */
#define DRAIN_FOLDER RUN_FOLDER "/drain"
/* Version of docs/protocol.md that this image speaks; PROTOCOL_VERSION of the operator. */
#define PROTOCOL_VERSION 9

/* Says why, to the log and to kubelet, and ends the container. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* settings.c */
void read_settings(void);
long number_setting(const char *name, long min, long max);
void set_variable(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* listeners.c */
bool has_ipv6(void);
void hold_socket(const char *name, const char *variable);
void hold_port(long port, const char *variable);
void hold_nginx_ports(long http_port, long figures_port);
void give_up_ports(void);

/* surroundings.c */
void find_cluster_dns(void);
void find_node_addresses(void);

#endif

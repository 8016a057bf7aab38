/*
 * corelane-entrypoint haproxy|nginx [ARGUMENT...]: process 1 of the proxy containers. Any other command is executed as
 * it is.
 *
 * kubelet sends SIGTERM, which both proxies take as "drop everything"; an image can name only one STOPSIGNAL for its
 * two containers. So this process stays and translates: nginx gets QUIT, HAProxy gets USR1 (their graceful stops).
 *
 * It also starts a proxy that has died anew: kubelet would take a second or more, and make the pod NotReady meanwhile.
 * The sockets on which the two listen for requests, and for kubelet's probes, belong to it and not to them: while a
 * proxy is away, requests and probes wait in there (docs/adr/0008).
 */
#define _GNU_SOURCE
#include "entrypoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A proxy that has died so many times without living that long is left to kubelet, whose back-off everybody can see. */
#define DEATHS_MAX 3
#define HEALTHY_SECONDS 10
/* Exit code of a process that a signal has ended, as shells have it. */
#define ENDED_BY_SIGNAL 128
#define ARGUMENTS_MAX 64

#define DRAINING_MARK RUN_FOLDER "/draining"
#define FORGOTTEN_MARK RUN_FOLDER "/forgotten"
#define DRAINED_MARK RUN_FOLDER "/drained"

/* One of the two proxies. */
struct proxy {
  const char *name;
  /* It makes the proxy finish what it has, and end. */
  int graceful;
  /* Says that it has ended. */
  const char *stopped_mark;
  const char *command[8];
};

static const struct proxy HAPROXY = {
    .name = "haproxy",
    .graceful = SIGUSR1,
    .stopped_mark = RUN_FOLDER "/haproxy-stopped",
    .command = {"haproxy", "-db", "-f", CONFIG_FOLDER "/haproxy.cfg"},
};
static const struct proxy NGINX = {
    .name = "nginx",
    .graceful = SIGQUIT,
    .stopped_mark = RUN_FOLDER "/nginx-stopped",
    .command = {"nginx", "-e", "stderr", "-c", CONFIG_FOLDER "/nginx.conf", "-g", "daemon off;"},
};

/* The proxy's process while it runs, else 0. */
static pid_t child;
/* The last signal that made it finish, else 0. */
static int told;
/* kubelet stops the container. */
static bool stopping;

void fail(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "corelane-entrypoint: %s\n", text);
  /* kubelet shows it in the status of the container, and the operator in that of the RenderService. */
  FILE *message = fopen("/dev/termination-log", "w");
  if (message != NULL) {
    fprintf(message, "%s\n", text);
    fclose(message);
  }
  exit(1);
}

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

static void make_mark(const char *path) {
  int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (file >= 0) close(file);
}

/* What this process waits for. Blocked all the time, so that none comes between two looks. */
static sigset_t awaited_signals(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

static void start(const struct proxy *proxy, char *const *more) {
  const char *arguments[ARGUMENTS_MAX + 1];
  size_t count = 0;
  while (proxy->command[count] != NULL) {
    arguments[count] = proxy->command[count];
    count++;
  }
  while (*more != NULL && count < ARGUMENTS_MAX) arguments[count++] = *more++;
  arguments[count] = NULL;

  unlink(proxy->stopped_mark);
  child = fork();
  if (child < 0) fail("fork: %s", strerror(errno));
  if (child > 0) return;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(arguments[0], (char *const *)arguments);
  fprintf(stderr, "corelane-entrypoint: %s: %s\n", arguments[0], strerror(errno));
  _exit(127);
}

/*
 * Lets the proxy finish what it has. Also the drain hook's last step for nginx (USR1): nobody must be accepted any
 * more, not even by the kernel.
 */
static void finish(const struct proxy *proxy) {
  give_up_ports();
  /* HAProxy has made that mark when it had nothing left, and nobody to get anything from. */
  bool is_drained = proxy == &HAPROXY && exists(DRAINED_MARK);
  told = is_drained ? SIGTERM : proxy->graceful;
  if (child > 0) kill(child, told);
}

/* Collects all that have ended, orphans too. True if the proxy is among them; its exit code is in `status`. */
static bool proxy_has_ended(int *status) {
  bool found = false;
  int result;
  pid_t pid;
  while ((pid = waitpid(-1, &result, WNOHANG)) > 0) {
    if (pid != child) continue;
    found = true;
    /* What we have ended has not failed. (A proxy that has just begun does not listen to signals yet.) */
    if (WIFEXITED(result)) *status = WEXITSTATUS(result);
    else *status = WTERMSIG(result) == told ? 0 : ENDED_BY_SIGNAL + WTERMSIG(result);
  }
  if (found) child = 0;
  return found;
}

/* Runs the proxy until it has ended; its exit code. */
static int run(const struct proxy *proxy, char *const *more) {
  const sigset_t signals = awaited_signals();
  int status = 0;
  start(proxy, more);
  for (;;) {
    int received = sigwaitinfo(&signals, NULL);
    if (received == SIGTERM || received == SIGINT) stopping = true;
    if (received == SIGTERM || received == SIGINT || (received == SIGUSR1 && proxy == &NGINX)) finish(proxy);
    if (received == SIGCHLD && proxy_has_ended(&status)) return status;
  }
}

static time_t now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/* Not after a stop; and nginx not when a drain waits for its end. `deaths` counts those that came soon. */
static bool should_restart(const struct proxy *proxy, time_t began, int *deaths) {
  if (stopping || (proxy == &NGINX && exists(FORGOTTEN_MARK))) return false;
  if (now_seconds() - began >= HEALTHY_SECONDS) *deaths = 0;
  return ++*deaths <= DEATHS_MAX;
}

static bool is_nginx(const char *pid) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool found = fgets(name, sizeof name, file) != NULL && strcmp(name, "nginx\n") == 0;
  fclose(file);
  return found;
}

/*
 * What nginx leaves behind when only its master process has died: workers that go on accepting beside those of the next
 * master. They finish what they have.
 */
static void let_orphans_finish(void) {
  struct dirent *entry;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return;
  while ((entry = readdir(folder)) != NULL) {
    pid_t pid = atoi(entry->d_name);
    if (pid > 0 && is_nginx(entry->d_name)) kill(pid, SIGQUIT);
  }
  closedir(folder);
}

/*
 * The drain hook has let nginx finish already. The container stays until kubelet stops it, so that nobody takes the
 * early end for a crash; or until the drain is over without it.
 */
static void wait_for_kubelet(void) {
  const sigset_t signals = awaited_signals();
  const struct timespec look = {.tv_sec = 1};
  while (!stopping && exists(DRAINING_MARK)) {
    int received = sigtimedwait(&signals, NULL, &look), ignored;
    if (received == SIGTERM || received == SIGINT) stopping = true;
    if (received == SIGCHLD) proxy_has_ended(&ignored);
  }
}

static void prepare_haproxy(void) {
  hold_socket("front", "CORELANE_FRONT");
  hold_socket("replay", "CORELANE_REPLAY");
  hold_port(port_setting("CORELANE_HEALTH_PORT"), "CORELANE_HEALTH");
  find_cluster_dns();
  find_node_addresses();
  set_variable("CORELANE_ANY_ADDRESS", "%s", has_ipv6() ? "::" : "*");
}

static void prepare_nginx(void) {
  hold_nginx_port(port_setting("CORELANE_HTTP_PORT"));
  /* `listen [::]` is fatal where the kernel has no IPv6. nginx.conf includes this file if it is there. */
  unlink("/tmp/listen-ipv6.conf");
  if (has_ipv6() && symlink(CONFIG_FOLDER "/listen-ipv6.conf", "/tmp/listen-ipv6.conf") < 0)
    fail("/tmp/listen-ipv6.conf: %s", strerror(errno));
  /* Of the container before this one; the drain hook asks for it. */
  unlink("/tmp/nginx.pid");
}

/* Thousands of idle clients: more than the 1,024 files that some container engines begin with. */
static void raise_file_limit(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) < 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv) {
  const struct proxy *proxy = NULL;
  if (argc < 2) fail("usage: corelane-entrypoint haproxy|nginx|COMMAND [ARGUMENT...]");
  if (strcmp(argv[1], HAPROXY.name) == 0) proxy = &HAPROXY;
  if (strcmp(argv[1], NGINX.name) == 0) proxy = &NGINX;
  if (proxy == NULL) {
    execvp(argv[1], argv + 1);
    fail("%s: %s", argv[1], strerror(errno));
  }
  const sigset_t signals = awaited_signals();
  sigprocmask(SIG_BLOCK, &signals, NULL);
  raise_file_limit();
  read_settings();
  if (proxy == &HAPROXY) prepare_haproxy();
  else prepare_nginx();
  /* kubelet also runs the hook before it replaces a container whose probe fails. In a pod that ends it starts none. */
  unlink(DRAINING_MARK);

  int status, deaths = 0;
  for (;;) {
    time_t began = now_seconds();
    status = run(proxy, argv + 2);
    if (!should_restart(proxy, began, &deaths)) break;
    fprintf(stderr, "corelane-entrypoint: %s ended with %d and is started again\n", proxy->name, status);
    if (proxy == &NGINX) let_orphans_finish();
  }
  give_up_ports();
  make_mark(proxy->stopped_mark);
  if (status == 0) wait_for_kubelet();
  return status;
}

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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A proxy that has died so many times without living that long is left to kubelet, whose back-off everybody can see. */
#define DEATHS_MAX 3
#define HEALTHY_SECONDS 10
/* Exit codes as shells have them. */
#define ENDED_BY_SIGNAL 128
#define NOT_FOUND 127
#define NOT_EXECUTABLE 126
#define ARGUMENTS_MAX 64
#define FORKS_MAX 5
#define PORT_MAX 65535
#define DRAIN_MS_MAX 86400000
static const struct timespec LOOK = {.tv_sec = 1};
/* Where this is not process 1 of its container (a pod may share its processes) they would end it. */
static const int IGNORED[] = {SIGHUP, SIGQUIT};

#define DRAINING_MARK DRAIN_FOLDER "/begun"
#define FORGOTTEN_MARK RUN_FOLDER "/forgotten"
#define DRAINED_MARK RUN_FOLDER "/drained"
#define NGINX_PID_FILE "/tmp/nginx.pid"
/* Sockets of nginx for HAProxy. While one is missing, HAProxy renders the page itself, or does without the file. */
static const char *const NGINX_SOCKETS[] = {RUN_FOLDER "/pages.sock", RUN_FOLDER "/assets.sock"};

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

static time_t now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
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

/* Where the node has no process left the next moment may have one. */
static pid_t fork_patiently(void) {
  pid_t pid;
  for (int tries = 1; (pid = fork()) < 0; tries++) {
    if (tries == FORKS_MAX) fail("fork: %s", strerror(errno));
    sleep(1);
  }
  return pid;
}

static void start(const struct proxy *proxy, char *const *more) {
  const char *arguments[ARGUMENTS_MAX + 1];
  size_t count = 0;
  while (proxy->command[count] != NULL) {
    arguments[count] = proxy->command[count];
    count++;
  }
  while (*more != NULL) {
    if (count == ARGUMENTS_MAX) fail("more than %d arguments", ARGUMENTS_MAX);
    arguments[count++] = *more++;
  }
  arguments[count] = NULL;

  unlink(proxy->stopped_mark);
  /* nginx cannot listen at a socket file that exists, and an nginx that was killed leaves its files. */
  for (size_t i = 0; proxy == &NGINX && i < sizeof NGINX_SOCKETS / sizeof *NGINX_SOCKETS; i++) unlink(NGINX_SOCKETS[i]);
  told = 0;
  child = fork_patiently();
  if (child > 0) return;
  sigset_t none;
  sigemptyset(&none);
  for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++) signal(IGNORED[i], SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(arguments[0], (char *const *)arguments);
  fprintf(stderr, "corelane-entrypoint: %s: %s\n", arguments[0], strerror(errno));
  _exit(NOT_FOUND);
}

/*
 * nginx writes its number down when it has read its configuration. Before that, QUIT would be a crash with a core file.
 */
static bool nginx_listens_to_signals(void) {
  int pid = 0;
  FILE *file = fopen(NGINX_PID_FILE, "re");
  if (file == NULL) return false;
  bool found = fscanf(file, "%d", &pid) == 1 && pid == child;
  fclose(file);
  return found;
}

/*
 * Lets the proxy finish what it has. Also the drain hook's last step for nginx (USR1): nobody must be accepted any
 * more, not even by the kernel.
 */
static void finish(const struct proxy *proxy) {
  give_up_ports();
  /* HAProxy has made that mark when it had nothing left, and nobody to get anything from. */
  bool at_once = proxy == &HAPROXY ? exists(DRAINED_MARK) : !nginx_listens_to_signals();
  told = at_once ? SIGTERM : proxy->graceful;
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
    int received = sigtimedwait(&signals, NULL, &LOOK);
    /* nginx forgets a signal that comes just before it begins to wait for some; told again it does the same. */
    if (received < 0 && told != 0 && proxy == &NGINX) finish(proxy);
    if (received == SIGTERM || received == SIGINT) stopping = true;
    if (received == SIGTERM || received == SIGINT || (received == SIGUSR1 && proxy == &NGINX)) finish(proxy);
    if (received == SIGCHLD && proxy_has_ended(&status)) return status;
  }
}

/* Not after a stop; and nginx not when a drain waits for its end. `deaths` counts those that came soon. */
static bool should_restart(const struct proxy *proxy, time_t began, int *deaths) {
  if (stopping || (proxy == &NGINX && exists(FORGOTTEN_MARK))) return false;
  if (now_seconds() - began >= HEALTHY_SECONDS) *deaths = 0;
  return ++*deaths <= DEATHS_MAX;
}

/* Whether it is a child of ours: not the nginx of another container, where a pod shares its processes. */
static bool is_our_nginx(pid_t pid) {
  char path[64];
  int parent = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool found = fscanf(file, "%*d (nginx) %*c %d", &parent) == 1 && parent == getpid();
  fclose(file);
  return found;
}

/*
 * What nginx leaves behind when only its master process has died: workers that go on accepting beside those of the next
 * master. They are our children from then on, and finish what they have.
 */
static void let_orphans_finish(void) {
  struct dirent *entry;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return;
  while ((entry = readdir(folder)) != NULL) {
    pid_t pid = atoi(entry->d_name);
    if (pid > 0 && is_our_nginx(pid)) kill(pid, SIGQUIT);
  }
  closedir(folder);
}

/*
 * The drain hook has let nginx finish already. The container stays until kubelet stops it, so that nobody takes the
 * early end for a crash; or until the drain is over without it.
 */
static void wait_for_kubelet(void) {
  const sigset_t signals = awaited_signals();
  while (!stopping && exists(DRAINING_MARK)) {
    int received = sigtimedwait(&signals, NULL, &LOOK), ignored;
    if (received == SIGTERM || received == SIGINT) stopping = true;
    if (received == SIGCHLD) proxy_has_ended(&ignored);
  }
}

static void prepare_haproxy(void) {
  hold_socket("front", "CORELANE_FRONT");
  hold_socket("replay", "CORELANE_REPLAY");
  hold_socket("timed", "CORELANE_TIMED");
  hold_socket("cache", "CORELANE_CACHE");
  hold_socket("cache-again", "CORELANE_CACHE_AGAIN");
  hold_port(number_setting("CORELANE_HEALTH_PORT", 1, PORT_MAX), "CORELANE_HEALTH");
  find_cluster_dns();
  find_node_addresses();
  set_variable("CORELANE_ANY_ADDRESS", "%s", has_ipv6() ? "::" : "*");
  /* Else HAProxy 3.0 keeps its messages of the start in /dev/shm, which all containers of a pod share: where a worker
   * has filled that, HAProxy ends by SIGBUS as often as it is started. It takes what is no number for no place. */
  set_variable("HAPROXY_STARTUPLOGS_FD", "none");
}

static void prepare_nginx(void) {
  /* The hook calculates with it. */
  number_setting("CORELANE_DRAIN_ACCEPT_MS_MAX", 0, DRAIN_MS_MAX);
  hold_nginx_ports(number_setting("CORELANE_HTTP_PORT", 1, PORT_MAX),
                   number_setting("CORELANE_FIGURES_PORT", 1, PORT_MAX));
  /* `listen [::]` is fatal where the kernel has no IPv6. nginx.conf includes this file if it is there. */
  unlink("/tmp/listen-ipv6.conf");
  if (has_ipv6() && symlink(CONFIG_FOLDER "/listen-ipv6.conf", "/tmp/listen-ipv6.conf") < 0)
    fail("/tmp/listen-ipv6.conf: %s", strerror(errno));
  /* Of the container before this one; the drain hook asks for it. */
  unlink(NGINX_PID_FILE);
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
    int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    fprintf(stderr, "corelane-entrypoint: %s: %s\n", argv[1], strerror(errno));
    return code;
  }
  const sigset_t signals = awaited_signals();
  sigprocmask(SIG_BLOCK, &signals, NULL);
  signal(SIGCHLD, SIG_DFL); /* ignored, as an engine may leave it, children would end without a word */
  for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++) signal(IGNORED[i], SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  raise_file_limit();
  read_settings();
  if (proxy == &HAPROXY) prepare_haproxy();
  else prepare_nginx();
  /* Where there is no volume, as in the tests of this program, the hook needs the folder all the same. */
  mkdir(DRAIN_FOLDER, 0755);
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

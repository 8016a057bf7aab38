/*
 * reaper FILE ARGV0 [ARGUMENT...]: runs FILE and waits for it, as the parent of whatever it leaves behind.
 *
 * Node.js waits for children that it knows and for no others. As process 1 of a container, or with a server that starts
 * helpers (a browser, say), it would collect zombies until no process can be made any more. So this process stands
 * between the supervisor and the worker: orphans below it become its children. When FILE has ended it kills and reaps
 * all of them, and ends in the same way as FILE: with its code, or by its signal.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two seconds. What is left then becomes the child of the process above. */
#define LOOKS_MAX 200

static volatile pid_t worker;

static void forward(int number) {
  if (worker > 0) kill(worker, number);
}

/*
 * 0 if it has ended. The name of a process, which may have blanks and brackets in it, ends with the last bracket of the
 * line.
 */
static pid_t parent_of(pid_t pid) {
  char path[64], line[512], *end;
  int parent = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fgets(line, sizeof line, file) != NULL && (end = strrchr(line, ')')) != NULL) sscanf(end + 1, " %*c %d", &parent);
  fclose(file);
  return parent;
}

/*
 * Children only: what is below them becomes ours when they have ended. By their parent, because not every kernel has a
 * list of children (CONFIG_PROC_CHILDREN).
 */
static void kill_children(void) {
  struct dirent *entry;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return;
  while ((entry = readdir(folder)) != NULL) {
    pid_t pid = atoi(entry->d_name);
    if (pid > 0 && parent_of(pid) == getpid()) kill(pid, SIGKILL);
  }
  closedir(folder);
}

static void end_like(int status) {
  if (WIFSIGNALED(status)) {
    struct rlimit none = {0, 0}; /* the worker has written its core file, if any */
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  exit(WEXITSTATUS(status));
}

int main(int argc, char **argv) {
  static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};
  pid_t parent = getppid();
  sigset_t all, before;
  int status = 0, result;
  pid_t pid;

  if (argc < 3) {
    fputs("usage: reaper FILE ARGV0 [ARGUMENT...]\n", stderr);
    return 2;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  /* Without its supervisor a worker would hold its port, and nobody would watch it. */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) return 1;

  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  worker = fork();
  if (worker < 0) {
    perror("reaper: fork");
    return 1;
  }
  if (worker == 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    execv(argv[1], argv + 2);
    perror("reaper: exec");
    _exit(127);
  }
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction action = {.sa_handler = forward, .sa_flags = SA_RESTART};
    sigaction(signals[i], &action, NULL);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);

  do {
    pid = waitpid(-1, &result, 0);
    if (pid == worker) status = result;
  } while (pid != worker && (pid > 0 || errno == EINTR));
  worker = 0;

  /*
   * 10 ms: one that is just being made may be missing in the list. One that cannot be killed must not hide the worker's
   * end for ever.
   */
  for (int n = 0; n < LOOKS_MAX; n++) {
    kill_children();
    pid = waitpid(-1, &result, WNOHANG);
    if (pid < 0 && errno == ECHILD) break;
    if (pid == 0) usleep(10000);
  }
  end_like(status);
}

/*
 * wait-for-drain: preStop hook of the workers and of the containers beside them. It ends when the pod has drained, and
 * kubelet then sends SIGTERM (docs/adr/0067-hooks-without-a-network.md).
 *
 * It reads two marks in a folder that is mounted read-only. A service mesh may refuse a request of kubelet to the pod,
 * and a program in the container cannot make the marks. Static, as it runs in the user's images.
 *
 * kubelet bounds the wait by the grace period of the pod.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "/corelane-drain"
#define LOOKS_PER_SECOND 20
/*
 * kubelet also runs the hook before it replaces a container whose probe fails, and nothing drains then. In a pod that
 * ends all hooks start at the same time, and 66 of them may take many seconds on a node without CPU.
 */
#define LOOKS_IN_VAIN_MAX (30 * LOOKS_PER_SECOND)

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

int main(void) {
  static const struct timespec pause = {.tv_nsec = 1000000000 / LOOKS_PER_SECOND};
  int looks_in_vain = 0;
  while (looks_in_vain < LOOKS_IN_VAIN_MAX) {
    /* An end without a beginning is that of a drain before this one, which was taken back. */
    bool drains = exists(FOLDER "/begun");
    if (drains && exists(FOLDER "/over")) {
      puts("drained");
      return 0;
    }
    looks_in_vain = drains ? 0 : looks_in_vain + 1;
    nanosleep(&pause, NULL);
  }
  puts("not draining");
  return 0;
}

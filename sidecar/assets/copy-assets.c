/*
 * copy-assets BYTES_MAX [TO FROM]...: copies the files below each folder FROM into the folder TO, for nginx to serve.
 *
 * Runs in an init container of the user's image, of which nothing is known: it may have no shell, no cp, no C library
 * and no Node.js where one would look for it. So this program is static. Times are kept, because nginx makes its ETags
 * of them and all pods must have the same. Links are followed as long as they stay below FROM: in nginx' container they
 * would lead to nginx' own files. FROM may be relative to the image's folder, and one part of it may be "*", for which
 * there must be exactly one folder. If it begins with "**" and a slash, the folder may be in another one: a standalone
 * build of a monorepo has its files in apps/NAME.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 100000
#define DEPTH_MAX 32
/* Of the files that are left out so many are named. */
#define NAMED_MAX 20
#define CHUNK_BYTES (256 * 1024)
/* How FROM begins if it may be in another folder, and how deep that may be. */
#define ANYWHERE "**/"
#define SEARCHED_MAX 2
/* Of the disk, as kubelet counts. */
#define BLOCK_BYTES 4096

/* A folder on the way to the one that is copied, so that a link to one of them has an end. */
struct folder {
  const struct folder *parent;
  dev_t device;
  ino_t inode;
  int depth;
};

/* The real path of what is copied at present, and as the user has written it. */
static char base[PATH_MAX];
static const char *from;
static unsigned long long bytes, bytes_max;
static unsigned files, left_out;

static void fail(const char *format, ...) {
  char text[2 * PATH_MAX + 512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "corelane-assets: %s\n", text);
  /* kubelet shows it in the status of the container, and the operator in that of the RenderService. */
  FILE *message = fopen("/dev/termination-log", "w");
  if (message != NULL) {
    fprintf(message, "%s\n", text);
    fclose(message);
  }
  exit(1);
}

static void leave_out(const char *path, const char *why) {
  if (left_out++ < NAMED_MAX) printf("corelane-assets: left out, a worker is asked for it: %s %s\n", path, why);
}

static void join(char *path, const char *folder, const char *name) {
  int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
  if (length < 0 || length >= PATH_MAX) fail("%s/%s: the name is too long", folder, name);
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void make_folders(const char *path) {
  char part[PATH_MAX];
  for (const char *end = path + 1; end != NULL; end = *end == '\0' ? NULL : end + 1) {
    end = strchrnul(end, '/');
    snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
    if (mkdir(part, 0755) < 0 && errno != EEXIST) fail("%s: %s", part, strerror(errno));
    if (*end == '\0') break;
  }
}

/* kubelet would evict the whole pod some seconds later. */
static void count_bytes(unsigned long long more) {
  bytes += more;
  if (bytes > bytes_max)
    fail("the assets take more than the %llu bytes of sidecar.assets.sizeLimit: make it larger, or name smaller folders",
         bytes_max);
}

static void copy_bytes(int in, int out, const char *source) {
  static char chunk[CHUNK_BYTES];
  ssize_t count;
  while ((count = read(in, chunk, sizeof chunk)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("%s cannot be read: %s", source, strerror(errno));
    count_bytes(((unsigned long long)count + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    for (ssize_t done = 0, written; done < count; done += written)
      if ((written = write(out, chunk + done, (size_t)(count - done))) <= 0) fail("%s: %s", source, strerror(errno));
  }
}

static void copy_file(const char *source, const char *target) {
  struct stat status;
  int in = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (in < 0 || fstat(in, &status) < 0)
    fail("%s cannot be read by user %u: %s. Make it readable for others, or set securityContext.runAsUser of the worker",
         source, (unsigned)getuid(), strerror(errno));
  if (++files > FILES_MAX) fail("there are more than %d files: name smaller folders", FILES_MAX);
  /* One of the run before, when the pod's sandbox was made anew. */
  if (unlink(target) < 0 && errno != ENOENT) fail("%s: %s", target, strerror(errno));
  int out = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (out < 0) fail("%s: %s", target, strerror(errno));
  copy_bytes(in, out, source);
  const struct timespec times[] = {status.st_atim, status.st_mtim};
  if (futimens(out, times) < 0 || close(out) < 0) fail("%s: %s", target, strerror(errno));
  close(in);
}

static bool is_below_base(const char *path) {
  size_t length = strlen(base);
  return strncmp(path, base, length) == 0 && (path[length] == '/' || path[length] == '\0' || length == 1);
}

/* Whether it is a link that leads to somewhere else, or nowhere. */
static bool leads_out(const char *path) {
  char real[PATH_MAX];
  struct stat status;
  if (lstat(path, &status) < 0 || !S_ISLNK(status.st_mode)) return false;
  return realpath(path, real) == NULL || !is_below_base(real);
}

static bool is_within(const struct folder *folder, const struct stat *status) {
  for (; folder != NULL; folder = folder->parent)
    if (folder->inode == status->st_ino && folder->device == status->st_dev) return true;
  return false;
}

static void copy_folder(const char *source, const char *target, const struct folder *parent) {
  struct stat status;
  struct dirent *entry;
  DIR *entries = opendir(source);
  if (entries == NULL || fstat(dirfd(entries), &status) < 0)
    fail("%s cannot be read by user %u: %s. Make it readable for others, or set securityContext.runAsUser of the worker",
         source, (unsigned)getuid(), strerror(errno));
  const struct folder self = {parent, status.st_dev, status.st_ino, parent == NULL ? 0 : parent->depth + 1};
  if (self.depth > DEPTH_MAX) fail("%s: folders are more than %d deep", source, DEPTH_MAX);
  make_folders(target);
  count_bytes(BLOCK_BYTES);
  while ((entry = readdir(entries)) != NULL) {
    char one[PATH_MAX], other[PATH_MAX];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    join(one, source, entry->d_name);
    join(other, target, entry->d_name);
    if (leads_out(one)) leave_out(one, "is a link that leads out of the folder");
    else if (stat(one, &status) < 0) fail("%s: %s", one, strerror(errno));
    else if (S_ISREG(status.st_mode)) copy_file(one, other);
    else if (!S_ISDIR(status.st_mode)) leave_out(one, "is no file");
    else if (is_within(&self, &status)) leave_out(one, "is a link to a folder that it is in");
    else copy_folder(one, other, &self);
  }
  closedir(entries);
}

/* The one folder that a path with "*" stands for. */
static void find_only(char *path, const char *star) {
  char before[PATH_MAX], folder[PATH_MAX], candidate[PATH_MAX];
  unsigned found = 0;
  struct dirent *entry;
  snprintf(before, sizeof before, "%.*s", (int)(star - from), from);
  DIR *entries = opendir(*before == '\0' ? "." : before);
  while (entries != NULL && (entry = readdir(entries)) != NULL) {
    if (*entry->d_name == '.') continue;
    int length = snprintf(folder, sizeof folder, "%s%s", before, entry->d_name);
    if (length < 0 || (size_t)length >= sizeof folder) continue;
    length = snprintf(candidate, sizeof candidate, "%s%s", folder, star + 1);
    if (length < 0 || (size_t)length >= sizeof candidate || !is_folder(candidate)) continue;
    if (found++ == 0) memcpy(path, candidate, sizeof candidate);
    else fail("assets: from \"%s\" could be \"%s\" or \"%s\": name one", from, path, candidate);
  }
  if (entries != NULL) closedir(entries);
  if (found == 0) memcpy(path, from, strlen(from) + 1);
}

/* The one folder of that name in others. Packages bring folders of such names, too. */
static void search(char *path, const char *folder, int depth) {
  struct dirent *entry;
  struct stat status;
  DIR *entries = opendir(*folder == '\0' ? "." : folder);
  while (entries != NULL && (entry = readdir(entries)) != NULL) {
    char below[PATH_MAX], candidate[PATH_MAX];
    if (*entry->d_name == '.' || strcmp(entry->d_name, "node_modules") == 0) continue;
    int length = snprintf(below, sizeof below, "%s%s%s", folder, *folder == '\0' ? "" : "/", entry->d_name);
    if (length < 0 || (size_t)length >= sizeof below || lstat(below, &status) < 0 || !S_ISDIR(status.st_mode)) continue;
    length = snprintf(candidate, sizeof candidate, "%s/%s", below, from);
    if (length < 0 || (size_t)length >= sizeof candidate) continue;
    if (!is_folder(candidate)) {
      if (depth < SEARCHED_MAX) search(path, below, depth + 1);
    } else if (*path != '\0') {
      fail("assets: from \"%s\" could be \"%s\" or \"%s\": name one", from, path, candidate);
    } else {
      memcpy(path, candidate, sizeof candidate);
    }
  }
  if (entries != NULL) closedir(entries);
}

static void find_base(void) {
  char path[PATH_MAX], found[PATH_MAX] = "", here[PATH_MAX];
  bool is_anywhere = strncmp(from, ANYWHERE, strlen(ANYWHERE)) == 0;
  if (is_anywhere) from += strlen(ANYWHERE);
  const char *star = strchr(from, '*');
  if (strlen(from) >= sizeof path) fail("assets: from is too long");
  if (star != NULL) find_only(path, star);
  else memcpy(path, from, strlen(from) + 1);
  if (is_anywhere && star == NULL && !is_folder(path)) search(found, "", 1);
  if (*found != '\0') memcpy(path, found, sizeof found);
  if (realpath(path, base) != NULL && is_folder(base)) return;
  const char *why = errno == EACCES ? "cannot be read" : "is no folder of the image";
  fail("assets: from \"%s\" %s%s%s%s. docs/assets.md tells how to look", from, why,
       *from == '/' ? "" : " (looked in ", *from == '/' ? "" : getcwd(here, sizeof here), *from == '/' ? "" : ")");
}

int main(int count, char **arguments) {
  if (count < 2 || count % 2 != 0) fail("usage: copy-assets BYTES_MAX [TO FROM]...");
  bytes_max = strtoull(arguments[1], NULL, 10);
  umask(022);
  for (int i = 2; i + 1 < count; i += 2) {
    from = arguments[i + 1];
    find_base();
    copy_folder(base, arguments[i], NULL);
  }
  printf("corelane-assets: %u files, %llu KiB of the disk\n", files, bytes / 1024);
  if (left_out > NAMED_MAX) printf("corelane-assets: left out: %u more\n", left_out - NAMED_MAX);
  return 0;
}

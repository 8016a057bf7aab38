/*
 * pod.env: what the operator tells the programs of this image, a line NAME=VALUE each (docs/protocol.md). The proxies
 * get it as environment.
 */
#define _GNU_SOURCE
#include "entrypoint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_FILE CONFIG_FOLDER "/pod.env"
#define PREFIX "CORELANE_"
#define VERSION_LINE PREFIX "PROTOCOL_VERSION="

static const char NAMES[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char VALUES[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-";

/* Puts a variable into the environment of the proxy. */
void set_variable(const char *name, const char *format, ...) {
  char value[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof value) fail("%s is too long", name);
  if (setenv(name, value, 1) < 0) fail("%s: %s", name, strerror(errno));
}

/* A whole number from 0 on, as a shell reads it, too; -1 if the text is none. */
static long number(const char *text) {
  size_t digits = text == NULL ? 0 : strspn(text, "0123456789");
  if (digits == 0 || digits > 9 || text[digits] != '\0' || (*text == '0' && digits > 1)) return -1;
  return strtol(text, NULL, 10);
}

static FILE *open_settings(void) {
  FILE *file = fopen(SETTINGS_FILE, "re");
  if (file != NULL) return file;
  bool is_missing = errno == ENOENT;
  fail("%s: %s%s", SETTINGS_FILE, strerror(errno),
       is_missing ? ". The operator that made this pod is older than this sidecar image: update the operator" : "");
}

/*
 * First of all, and whatever else stands in the file: another version may write it in another way. Only this line is
 * the same in all of them.
 */
static void check_protocol_version(void) {
  char *line = NULL;
  size_t size = 0;
  long spoken = -1;
  FILE *file = open_settings();
  while (spoken < 0 && getline(&line, &size, file) > 0)
    if (strncmp(line, VERSION_LINE, strlen(VERSION_LINE)) == 0) {
      line[strcspn(line, "\n")] = '\0';
      spoken = number(line + strlen(VERSION_LINE));
    }
  free(line);
  fclose(file);
  if (spoken < 0) fail("%s has no " VERSION_LINE "N", SETTINGS_FILE);
  if (spoken != PROTOCOL_VERSION)
    fail("this sidecar image speaks version %d of the protocol, the operator that made this pod version %ld: "
         "give the operator the sidecar image of its own release",
         PROTOCOL_VERSION, spoken);
}

static void take_line(char *line, size_t length, unsigned line_number) {
  if (length > 0 && line[length - 1] == '\n') line[--length] = '\0';
  char *value = strchr(line, '=');
  bool is_comment = length == 0 || *line == '#';
  bool is_whole = strlen(line) == length; /* no NUL in it */
  if (value != NULL) *value++ = '\0';
  if (is_comment && is_whole) return;
  if (!is_whole || value == NULL || strncmp(line, PREFIX, strlen(PREFIX)) != 0 || line[strspn(line, NAMES)] != '\0' ||
      value[strspn(value, VALUES)] != '\0')
    fail("%s, line %u: not " PREFIX "NAME=VALUE", SETTINGS_FILE, line_number);
  set_variable(line, "%s", value);
}

/* Puts them into the environment. What the pod or the image has of these names counts for nothing. */
void read_settings(void) {
  static const char *const names[] = {"CORELANE_PROTOCOL_VERSION", "CORELANE_HTTP_PORT", "CORELANE_FIGURES_PORT",
                                      "CORELANE_HEALTH_PORT", "CORELANE_DRAIN_ACCEPT_MS_MAX"};
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  unsigned line_number = 0;
  check_protocol_version();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  FILE *file = open_settings();
  while ((length = getline(&line, &size, file)) > 0) take_line(line, (size_t)length, ++line_number);
  if (ferror(file)) fail("%s: %s", SETTINGS_FILE, strerror(errno));
  free(line);
  fclose(file);
}

/* The whole number that a setting is, from `min` to `max`. */
long number_setting(const char *name, long min, long max) {
  long value = number(getenv(name));
  if (value < min || value > max)
    fail("%s in %s must be a whole number from %ld to %ld", name, SETTINGS_FILE, min, max);
  return value;
}

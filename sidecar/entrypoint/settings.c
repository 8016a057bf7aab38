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

/* A whole number from 1 to `max`; 0 if the text is none. */
static unsigned long number(const char *text, unsigned long max) {
  size_t digits = text == NULL ? 0 : strspn(text, "0123456789");
  if (digits == 0 || digits > 9 || text[digits] != '\0') return 0;
  unsigned long value = strtoul(text, NULL, 10);
  return value <= max ? value : 0;
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

static void check_protocol_version(void) {
  const char *version = getenv("CORELANE_PROTOCOL_VERSION");
  unsigned long spoken = number(version, 1000000);
  if (spoken == 0) fail("%s has no CORELANE_PROTOCOL_VERSION", SETTINGS_FILE);
  if (spoken != PROTOCOL_VERSION)
    fail("this sidecar image speaks version %d of the protocol, the operator that made this pod version %lu: "
         "give the operator the sidecar image of its own release",
         PROTOCOL_VERSION, spoken);
}

/* Puts them into the environment, and looks whether operator and image speak the same version of the protocol. */
void read_settings(void) {
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  unsigned line_number = 0;
  unsetenv("CORELANE_PROTOCOL_VERSION"); /* of the image or the pod: only the file counts */
  FILE *file = fopen(SETTINGS_FILE, "re");
  if (file == NULL)
    fail("%s: %s. The operator that made this pod is older than this sidecar image: update the operator", SETTINGS_FILE,
         strerror(errno));
  while ((length = getline(&line, &size, file)) > 0) take_line(line, (size_t)length, ++line_number);
  free(line);
  fclose(file);
  check_protocol_version();
}

/* The port that a setting names. */
unsigned port_setting(const char *name) {
  unsigned long port = number(getenv(name), 65535);
  if (port == 0) fail("%s in %s is no port", name, SETTINGS_FILE);
  return (unsigned)port;
}

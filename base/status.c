/* SPDX-License-Identifier: Apache-2.0
 * Keeps the text of the last failure in one buffer per thread. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 2048

static _Thread_local char text[TEXT_SIZE];

enum status status_fail(enum status code, const char *format, ...) {
    char fresh[TEXT_SIZE]; /* a second buffer, because the arguments may point into `text` */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    memcpy(text, fresh, sizeof text);
    return code;
}

enum status status_prefix(enum status code, const char *format, ...) {
    char prefix[TEXT_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    char old[TEXT_SIZE];
    memcpy(old, text, sizeof old);
    size_t used = strlen(prefix);
    memcpy(text, prefix, used);
    const int room = (int)(sizeof text - used - sizeof ": ");
    snprintf(text + used, sizeof text - used, ": %.*s", room, old);
    return code;
}

const char *status_text(void) {
    return text;
}

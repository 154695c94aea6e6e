/* SPDX-License-Identifier: Apache-2.0
 * Cuts a path behind its last slash, which it keeps: the folder of "/x" is "/", and that of "a/"
 * is "a/". */
#include "base/parent.h"

#include <stdio.h>
#include <string.h>

struct parent parent_of(const char *path) {
    struct parent parent;
    const char *const slash = strrchr(path, '/');
    if (slash == NULL)
        snprintf(parent.text, sizeof parent.text, ".");
    else
        snprintf(parent.text, sizeof parent.text, "%.*s", (int)(slash - path) + 1, path);
    return parent;
}

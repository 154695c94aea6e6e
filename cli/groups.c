/* SPDX-License-Identifier: Apache-2.0
 * Walks from the group of this process to the top. In a container the path of the group may be one
 * of outside: then only the top can be seen. */
#include "cli/groups.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"

int groups_read(const char *path, char *text, size_t room) {
    struct input input;
    if (input_open(path, INPUT_FILE, path, "a file of the system", &input) != STATUS_OK) return 0;
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < room - 1) {
        got = read(input.descriptor, text + length, room - 1 - length);
        if (got > 0) length += (size_t)got;
    }
    close(input.descriptor);
    text[length] = '\0';
    return got >= 0;
}

uint64_t groups_number(const char *folder, const char *name) {
    char path[4096 + 64], text[64];
    unsigned long long number;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!groups_read(path, text, sizeof text) || sscanf(text, "%llu", &number) != 1)
        return GROUPS_UNKNOWN;
    return number;
}

static uint64_t least_around(const char *top, const char *group, int version,
                             uint64_t (*left)(const char *folder, int version)) {
    char folder[4096];
    uint64_t least = GROUPS_UNKNOWN;
    snprintf(folder, sizeof folder, "%s%s", top, group);
    for (;;) {
        const uint64_t here = left(folder, version);
        if (here < least) least = here;
        char *const slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < strlen(top)) return least;
        *slash = '\0';
    }
}

/* Whether the words between commas hold this one. */
static int lists(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == '\0' || at[length] == ',')) return 1;
    }
    return 0;
}

/* Lines of /proc/self/cgroup are "number:controllers:path"; version 2 has number 0 and no
 * controllers. Version 1 has a folder by the name of each controller, a link where several share
 * one. */
uint64_t groups_least(const char *controller, uint64_t (*left)(const char *folder, int version)) {
    char text[8192], top[128], *rest = text, *line;
    uint64_t least = GROUPS_UNKNOWN;
    if (!groups_read("/proc/self/cgroup", text, sizeof text)) return GROUPS_UNKNOWN;
    snprintf(top, sizeof top, "/sys/fs/cgroup/%s", controller);
    while ((line = strtok_r(rest, "\n", &rest)) != NULL) {
        char *const controllers = strchr(line, ':');
        char *const group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (group == NULL) continue;
        *group = '\0';
        uint64_t here = GROUPS_UNKNOWN;
        if (controllers[1] == '\0')
            here = least_around("/sys/fs/cgroup", group + 1, 2, left);
        else if (lists(controllers + 1, controller))
            here = least_around(top, group + 1, 1, left);
        if (here < least) least = here;
    }
    return least;
}

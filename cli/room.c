/* SPDX-License-Identifier: Apache-2.0
 * Asks the system for free disk and memory. Linux kills a process that uses more memory than its
 * control group has, and hands out more than there is before that, so the limits are read here:
 * MemAvailable, and memory.max (version 2) or memory.limit_in_bytes (version 1) of the group and of
 * those around it. */
#include "cli/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/network.h"
#include "cli/groups.h"

#define UNKNOWN GROUPS_UNKNOWN

/* The number behind a name in lines "name number"; UNKNOWN where there is none. */
static uint64_t number_behind(const char *text, const char *name) {
    const size_t length = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        unsigned long long number;
        if (strncmp(line, name, length) == 0 && sscanf(line + length, " %llu", &number) == 1)
            return number;
    }
    return UNKNOWN;
}

/* What is left below the limit of a group: its page cache that nobody uses counts as free. */
static uint64_t left_in(const char *folder, int version) {
    static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
    static const char *const usages[] = {"memory.usage_in_bytes", "memory.current"};
    static const char *const caches[] = {"total_inactive_file", "inactive_file"};
    char path[4096 + 64], text[8192];
    const uint64_t limit = groups_number(folder, limits[version - 1]);
    uint64_t usage = groups_number(folder, usages[version - 1]), cache = UNKNOWN;
    if (limit == UNKNOWN || usage == UNKNOWN) return UNKNOWN;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (groups_read(path, text, sizeof text)) cache = number_behind(text, caches[version - 1]);
    if (cache != UNKNOWN) usage = usage > cache ? usage - cache : 0;
    return limit > usage ? limit - usage : 0;
}

static uint64_t left_of_system(void) {
    char text[8192];
    if (!groups_read("/proc/meminfo", text, sizeof text)) return UNKNOWN;
    const uint64_t kibibytes = number_behind(text, "MemAvailable:");
    return kibibytes == UNKNOWN ? UNKNOWN : kibibytes * 1024;
}

/* What this process holds already, which is a part of what it needs. */
static uint64_t resident(void) {
    char text[128];
    unsigned long long all, pages;
    const long page = sysconf(_SC_PAGESIZE);
    if (page <= 0 || !groups_read("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%llu %llu", &all, &pages) != 2)
        return 0;
    return pages * (uint64_t)page;
}

struct size_text {
    char text[32];
};

static struct size_text size_text(uint64_t bytes) {
    struct size_text out;
    const int large = bytes >= (uint64_t)1 << 30;
    snprintf(out.text, sizeof out.text, large ? "%.2f GiB" : "%.2f MiB",
             (double)bytes / (large ? 0x1p30 : 0x1p20));
    return out;
}

uint64_t room_memory(void) {
    const uint64_t system = left_of_system(), groups = groups_least("memory", left_in);
    return system < groups ? system : groups;
}

static enum status check_memory(const struct experiment_needs *needs) {
    const uint64_t system = left_of_system(), groups = groups_least("memory", left_in);
    uint64_t has = system < groups ? system : groups;
    if (needs->memory == 0 || has == UNKNOWN) return STATUS_OK;
    has += resident();
    if (needs->memory <= has) return STATUS_OK;
    FAIL(STATUS_MEMORY,
         "the arms need %s of memory at once, and %s has %s left: make the model, "
         "batch.micro or data.max_len smaller%s; --no-room-check trains all the same",
         size_text(needs->memory).text,
         system < groups ? "this machine" : "the control group of this process",
         size_text(has).text, system < groups ? ", or end other programs" : ", or raise its limit");
}

/* Free bytes where a file of that name goes. */
static uint64_t free_at(const char *path) {
    struct statvfs disk;
    char folder[4096];
    const char *const slash = strrchr(path, '/');
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    if (statvfs(folder, &disk) != 0 || disk.f_frsize == 0) return UNKNOWN;
    return (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize;
}

static enum status check_disk(const struct experiment_needs *needs) {
    const uint64_t has = free_at(needs->path);
    if (needs->disk <= has) return STATUS_OK;
    FAIL(STATUS_IO,
         "%s: a trace of %llu updates in all needs about %s, and its folder has %s free: name "
         "another --output, free some, train fewer updates (steps), record less (record.tensors, "
         "record.phases) or store fewer states (--checkpoint-every); --no-room-check trains all "
         "the same",
         needs->path, (unsigned long long)needs->updates, size_text(needs->disk).text,
         size_text(has).text);
}

static void tell_network(const char *path, FILE *out) {
    const char *name;
    const enum network_kind kind = network_of(path, &name);
    if (kind == NETWORK_LOOSE)
        fprintf(out,
                "twinstep: %s: lies on %s, where a trace cannot be read while it is written: wait "
                "for the end, or name a local disk (--output)\n",
                path, name);
    if (kind == NETWORK_COHERENT)
        fprintf(out,
                "twinstep: %s: lies on %s: from another machine it can be read while it is written "
                "only where that is mounted with POSIX locks and coherent caches\n",
                path, name);
}

void room_tell(const struct experiment_needs *needs, FILE *out) {
    const uint64_t has = free_at(needs->path);
    tell_network(needs->path, out);
    if (needs->disk < (uint64_t)1 << 28) return;
    fprintf(out, "twinstep: %s: about %s for %llu updates in all", needs->path,
            size_text(needs->disk).text, (unsigned long long)needs->updates);
    if (has != UNKNOWN) fprintf(out, ", %s free", size_text(has).text);
    if (needs->memory > 0) fprintf(out, "; memory %s", size_text(needs->memory).text);
    fputc('\n', out);
}

enum status room_check(const struct experiment_needs *needs) {
    TRY(check_disk(needs));
    return check_memory(needs);
}

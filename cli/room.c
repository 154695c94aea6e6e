/* SPDX-License-Identifier: Apache-2.0
 * Asks the system for free disk and memory. Linux kills a process that uses more memory than its
 * control group has, and hands out more than there is before that, so the limits are read here:
 * MemAvailable, and memory.max (version 2) or memory.limit_in_bytes (version 1) of the group and of
 * those around it. */
#include "cli/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/network.h"
#include "base/parent.h"
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
    const uint64_t held = resident();
    uint64_t has = system < groups ? system : groups;
    if (needs->memory == 0 || has == UNKNOWN) return STATUS_OK;
    has += needs->held < held ? needs->held : held;
    if (needs->memory <= has) return STATUS_OK;
    FAIL(STATUS_MEMORY,
         "up to %s of memory at once are needed, and %s has %s left: %s%s; --no-room-check trains "
         "all the same",
         size_text(needs->memory).text,
         system < groups ? "this machine" : "the control group of this process",
         size_text(has).text, needs->less_memory,
         system < groups ? ", or end other programs" : ", or raise its limit");
}

/* Where files go: into a folder that is there, or beside one that is not. A file system of 0 blocks
 * in all says nothing of its room: statfs of Linux leaves the counts at 0 for ramfs and for a tmpfs
 * without a limit (size=0), and libfuse answers so for a file system that implements no statfs. */
struct place {
    uint64_t free;   /* bytes; UNKNOWN */
    uint64_t device; /* its file system; UNKNOWN */
};

static struct place place_of(const char *path) {
    const struct parent folder = parent_of(path);
    struct place place = {UNKNOWN, UNKNOWN};
    struct statvfs disk;
    struct stat info;
    if ((statvfs(path, &disk) == 0 || statvfs(folder.text, &disk) == 0) && disk.f_frsize != 0 &&
        disk.f_blocks != 0)
        place.free = (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize;
    if (stat(path, &info) == 0 || stat(folder.text, &info) == 0)
        place.device = (uint64_t)info.st_dev;
    return place;
}

/* What goes to the file system of the trace: kept states, and the models that are saved there. */
struct beside {
    uint64_t kept, saved;
};

static struct beside beside(const struct experiment_needs *needs) {
    const struct place at = place_of(needs->path);
    struct beside beside = {needs->kept, 0};
    for (int arm = 0; arm < 2; arm++)
        if (needs->save[arm] != NULL && place_of(needs->save[arm]).device == at.device)
            beside.saved += needs->saved[arm];
    return beside;
}

/* "a trace of 40 updates in all needs about 2.00 MiB, its kept states up to 0.50 MiB, saved models
 * 0.10 MiB": as much of it as there is. */
static void print_needs(const struct experiment_needs *needs, char *text, size_t room) {
    const struct beside with = beside(needs);
    int at = snprintf(text, room, "%s needs about %s", needs->what, size_text(needs->disk).text);
    if (with.kept > 0)
        at += snprintf(text + at, room - (size_t)at, ", its kept states up to %s",
                       size_text(with.kept).text);
    if (with.saved > 0)
        snprintf(text + at, room - (size_t)at, ", saved models %s", size_text(with.saved).text);
}

/* Models that go to another file system than the trace, both to one or each to its own. */
static enum status check_saved(const struct experiment_needs *needs) {
    const uint64_t trace = place_of(needs->path).device;
    for (int arm = 0; arm < 2; arm++) {
        if (needs->save[arm] == NULL) continue;
        const struct place at = place_of(needs->save[arm]);
        uint64_t all = needs->saved[arm];
        if (needs->save[!arm] != NULL && place_of(needs->save[!arm]).device == at.device)
            all += needs->saved[!arm];
        if (at.device == trace || all <= at.free) continue;
        FAIL(STATUS_IO,
             "%s: saved models need about %s, and their folder has %s free: name another one "
             "(--save-model) or free some; --no-room-check trains all the same",
             needs->save[arm], size_text(all).text, size_text(at.free).text);
    }
    return STATUS_OK;
}

static enum status check_disk(const struct experiment_needs *needs) {
    const struct beside with = beside(needs);
    const uint64_t has = place_of(needs->path).free;
    char text[512];
    if (needs->disk + with.kept + with.saved <= has) return check_saved(needs);
    print_needs(needs, text, sizeof text);
    FAIL(STATUS_IO,
         "%s: %s, and its folder has %s free: name another --output, free some, %s; "
         "--no-room-check trains all the same",
         needs->path, text, size_text(has).text, needs->less_disk);
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
    const struct beside with = beside(needs);
    const uint64_t has = place_of(needs->path).free;
    char text[512];
    tell_network(needs->path, out);
    if (needs->disk + with.kept + with.saved < (uint64_t)1 << 28) return;
    print_needs(needs, text, sizeof text);
    fprintf(out, "twinstep: %s: %s", needs->path, text);
    if (has != UNKNOWN) fprintf(out, "; %s free", size_text(has).text);
    if (needs->memory > 0) fprintf(out, "; memory up to %s", size_text(needs->memory).text);
    fputc('\n', out);
}

enum status room_check(const struct experiment_needs *needs) {
    if (needs->path != NULL) TRY(check_disk(needs));
    return check_memory(needs);
}

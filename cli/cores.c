/* SPDX-License-Identifier: Apache-2.0
 * Asks the system. How many processors may be filled is never asked of sysconf(), which tells of
 * the whole machine: a container or a batch system gives away a part of them. How many of them work
 * is a number of the whole machine, so it is held against those of the machine. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cli/cores.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/groups.h"

/* Processors that a set has room for; the largest machines that Linux runs on have 8192. */
#define PROCESSORS_MOST 8192

/* Version 2 says "quota period" or "max period" in one file; version 1 has a file for each, and a
 * quota of -1, which is no number here, where there is none. */
static uint64_t whole_cores(const char *folder, int version) {
    char path[4096 + 64], text[128];
    unsigned long long quota, period;
    if (version == 1) {
        quota = groups_number(folder, "cpu.cfs_quota_us");
        period = groups_number(folder, "cpu.cfs_period_us");
        if (quota > INT64_MAX || period == GROUPS_UNKNOWN) return GROUPS_UNKNOWN;
    } else {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (!groups_read(path, text, sizeof text) ||
            sscanf(text, "%llu %llu", &quota, &period) != 2)
            return GROUPS_UNKNOWN;
    }
    return period == 0 ? GROUPS_UNKNOWN : quota / period;
}

union processors {
    cpu_set_t set;
    unsigned char room[PROCESSORS_MOST / 8];
};

/* Returns how many there are; 0: the system does not say. */
static int ask_processors(union processors *allowed) {
    if (sched_getaffinity(0, sizeof allowed->room, &allowed->set) != 0) return 0;
    return CPU_COUNT_S(sizeof allowed->room, &allowed->set);
}

static uint64_t processors(void) {
    union processors allowed;
    const int count = ask_processors(&allowed);
    return count > 0 ? (uint64_t)count : 1;
}

void cores_set_aside(pid_t pid, int processes) {
    union processors allowed;
    const int count = ask_processors(&allowed);
    size_t first = 0;
    if (count < 2 || count >= processes) return;
    while (!CPU_ISSET_S(first, sizeof allowed.room, &allowed.set))
        first++;
    CPU_CLR_S(first, sizeof allowed.room, &allowed.set);
    (void)sched_setaffinity(pid, sizeof allowed.room, &allowed.set);
}

void cores_let_back(pid_t pid) {
    union processors allowed;
    if (ask_processors(&allowed) > 0)
        (void)sched_setaffinity(pid, sizeof allowed.room, &allowed.set);
}

void cores_give_way(pid_t pid) {
    const int own = getpriority(PRIO_PROCESS, 0);
    (void)setpriority(PRIO_PROCESS, (id_t)pid, own + 1);
}

uint64_t cores_usable(void) {
    const uint64_t quota = groups_least("cpu", whole_cores);
    uint64_t cores = processors();
    if (quota < cores) cores = quota;
    return cores < 1 ? 1 : cores > CORES_MOST ? CORES_MOST : cores;
}

/* "0.20 0.18 0.12 1/80 11206": of 80 threads of the machine, one runs or waits for a processor.
 * That is this one, at least. Returns UINT64_MAX where the system does not say. */
static uint64_t others_running(void) {
    char text[128];
    unsigned long long running;
    if (!groups_read("/proc/loadavg", text, sizeof text) ||
        sscanf(text, "%*s %*s %*s %llu/", &running) != 1)
        return UINT64_MAX;
    return running - 1;
}

/* Who starts this program, and what a shell starts beside it, run for a moment yet: the least of
 * some numbers counts. */
int cores_are_spare(void) {
    const struct timespec pause = {.tv_nsec = 250000};
    const long machine = sysconf(_SC_NPROCESSORS_ONLN);
    for (int readings = 8; machine > 0 && readings > 0; readings--) {
        const uint64_t running = others_running();
        if (running < ((uint64_t)machine + 3) / 4) return 1;
        if (running == UINT64_MAX) return 0;
        nanosleep(&pause, NULL);
    }
    return 0;
}

enum status cores_asked(const struct options *options, int key, const char *verb, uint64_t *out) {
    const char *const text = options_value(options, key);
    *out = cores_usable();
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, out) != STATUS_OK || *out < 1 || *out > CORES_MOST)
        FAIL(STATUS_INPUT, "%s: --jobs: expected a number from 1 to %d, got \"%s\"", verb,
             CORES_MOST, text);
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * A child writes what it has trained into memory that has a file's form and no name, so it needs no
 * disk and leaves nothing behind; a pipe that only it holds open tells how far it is, and that it
 * has ended, however it does. */
#define _GNU_SOURCE /* memfd_create, pipe2 */
#include "cli/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/room.h"

#define WAIT_MS 100
#define GIVEN_BACK ((uint64_t)1 << 20)
#define MOST_AT_ONCE 64 /* pages of this process are copied for each */

uint32_t children_most(uint64_t cores, uint64_t memory, uint64_t threads) {
    const uint64_t each = memory + memory / 4; /* a run is not all that a process has */
    if (!child_is_possible()) return 0;
    const uint64_t by_cores = cores / threads, by_memory = each == 0 ? 0 : room_memory() / each;
    const uint64_t most = by_cores < by_memory ? by_cores : by_memory;
    return (uint32_t)(most < MOST_AT_ONCE ? most : MOST_AT_ONCE);
}

struct beginning {
    void (*work)(void *of, uint32_t number, int file, int said);
    void *of;
    uint32_t number;
    int file, said[2];
};

static void do_work(void *context) {
    const struct beginning *const beginning = (const struct beginning *)context;
    close(beginning->said[0]);
    beginning->work(beginning->of, beginning->number, beginning->file, beginning->said[1]);
}

static enum status fail_errno(const char *action, int reason) {
    return status_fail(STATUS_IO, "cannot %s: %s", action, strerror(reason));
}

enum status children_start(void (*work)(void *of, uint32_t number, int file, int said), void *of,
                           uint32_t number, struct experiment_child *out) {
    struct beginning child = {.work = work, .of = of, .number = number};
    pid_t pid;
    child.file = memfd_create("twinstep", MFD_CLOEXEC);
    if (child.file < 0) return fail_errno("make a file for a process", errno);
    if (pipe2(child.said, O_CLOEXEC) != 0) {
        const int reason = errno;
        close(child.file);
        return fail_errno("open a pipe", reason);
    }
    const int failed = child_start(do_work, &child, NULL, &pid);
    close(child.said[1]);
    if (failed != 0) {
        close(child.said[0]);
        close(child.file);
        return fail_errno("start a process", failed);
    }
    *out = (struct experiment_child){.pid = (int)pid, .file = child.file, .said = child.said[0]};
    return STATUS_OK;
}

static void wait_for(struct experiment_child *child) {
    int how = 0;
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    child->has_ended = 1;
}

static void hear(struct experiment_child *child) {
    char said[64];
    const ssize_t got = read(child->said, said, sizeof said);
    if (got < 0 && errno == EINTR) return;
    if (got > 0)
        child->done += (uint64_t)got;
    else
        wait_for(child);
}

enum status children_wait(struct experiment_child *children, uint32_t count) {
    struct pollfd waiting[MOST_AT_ONCE];
    for (uint32_t i = 0; i < count; i++)
        waiting[i] = (struct pollfd){children[i].has_ended ? -1 : children[i].said, POLLIN, 0};
    const int ready = poll(waiting, count, WAIT_MS);
    if (ready < 0 && errno != EINTR) return fail_errno("wait for a process", errno);
    for (uint32_t i = 0; i < count && ready > 0; i++)
        if (waiting[i].revents != 0) hear(&children[i]);
    return STATUS_OK;
}

/* The end of a pipe is told to all who hold its other end, and takes nothing from what it says. */
void children_await(int said) {
    struct pollfd waiting = {said, 0, 0};
    while (said >= 0 && poll(&waiting, 1, -1) < 0 && errno == EINTR)
        continue;
}

/* What was read is not asked for again, so its memory is given back, whole pieces at a time. */
static void give_back(int file, uint64_t from, uint64_t to) {
    const uint64_t first = from / GIVEN_BACK * GIVEN_BACK, last = to / GIVEN_BACK * GIVEN_BACK;
    if (first < last)
        (void)!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
                         (off_t)(last - first));
}

enum status children_read(void *context, const struct experiment_child *child, uint64_t at,
                          void *bytes, size_t length) {
    char *const to = (char *)bytes;
    size_t had = 0;
    (void)context;
    while (had < length) {
        const ssize_t got = pread(child->file, to + had, length - had, (off_t)(at + had));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            FAIL(STATUS_INTERNAL, "a process that trained ahead has left too little: %s",
                 got < 0 ? strerror(errno) : "its file ends");
        had += (size_t)got;
    }
    give_back(child->file, at, at + length);
    return STATUS_OK;
}

void children_end(struct experiment_child *child) {
    if (!child->has_ended) {
        kill(child->pid, SIGKILL);
        wait_for(child);
    }
    close(child->said);
    close(child->file);
}

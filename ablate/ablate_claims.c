/* SPDX-License-Identifier: Apache-2.0
 * Claims: who works on what, so that several workers on one file system share an ablation. A claim
 * is a link that one worker can make; what it says tells whether its worker can still be there. */
#include "ablate/ablate_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/publish.h"

static enum status refuse(const char *path, const char *action) {
    return status_fail(STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

/* ---- who we are ---- */

/* Reads one line of a small file of /proc; "-" if it cannot be read. */
static void read_line(const char *path, char *out, size_t size) {
    struct input input;
    FILE *file;
    out[0] = '\0';
    if (input_open_stream(path, INPUT_FILE, path, "a file of /proc", &file, &input) == STATUS_OK) {
        if (fgets(out, (int)size, file) == NULL) out[0] = '\0';
        (void)fclose(file); /* nothing was written */
    }
    out[strcspn(out, "\n")] = '\0';
    if (out[0] == '\0') snprintf(out, size, "-");
}

/* Says when a process started, in ticks since the boot: its number may serve another one later. The
 * name, which may hold blanks and brackets, ends at the last ")". "-": there is none, or it has
 * ended and its parent has not asked how, as the first process of a container never may. */
static void read_start(long process, char out[32]) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    read_line(path, line, sizeof line);
    const char *at = strrchr(line, ')');
    snprintf(out, 32, "-");
    if (at != NULL && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X')) return;
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at != NULL) snprintf(out, 32, "%.*s", (int)strcspn(at + 1, " "), at + 1);
}

enum status ablate_name_worker(struct arena *arena, char **out) {
    char host[256] = "", boot[64], space[64] = "", start[32];
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "unknown");
    for (char *c = host; *c != '\0'; c++)
        if (*c == ' ' || *c == '/' || *c == '\n') *c = '_';
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    snprintf(space + (length < 0 ? 0 : length), 2, "%s", length < 0 ? "-" : "");
    read_start((long)getpid(), start);
    return arena_format(arena, out, "%s %s %s %ld %s", host, boot, space, (long)getpid(), start);
}

/* Makes a name for a file in the making that no other worker has, on this machine or another. */
enum status ablate_live_name(const struct ablate_folder *folder, const char *name,
                             struct arena *arena, char **out) {
    char host[256];
    if (sscanf(folder->worker, "%255s", host) != 1) snprintf(host, sizeof host, "unknown");
    return arena_format(arena, out, "%s/%s.%s.%ld", folder->path, name, host, (long)getpid());
}

/* ---- claims ---- */

static enum status claim_path(const struct ablate_folder *folder, const char *name,
                              struct arena *arena, char **out) {
    return arena_format(arena, out, "%s/claims/%s", folder->path, name);
}

/* Reads a claim's text, which is "" where there is none, or none any more. */
static enum status read_claim(const char *path, struct arena *arena, char **out) {
    char text[1024];
    struct input input;
    const enum status status = input_open(path, INPUT_FILE, path, "a claim", &input);
    if (status != STATUS_OK && access(path, F_OK) != 0) return arena_format(arena, out, "%s", "");
    if (status != STATUS_OK) return status;
    const ssize_t length = read(input.descriptor, text, sizeof text - 1);
    const int reason = errno;
    close(input.descriptor);
    errno = reason;
    if (length < 0) return refuse(path, "read");
    return arena_text(arena, text, (size_t)length, out);
}

/* Says whether the process that a claim names has ended for certain: it was one of this boot and
 * this name space of processes, and none of that number started then. */
static int has_ended(const struct ablate_folder *folder, const char *claim) {
    char host[256], boot[64], space[64], start[32], now[32];
    char our_boot[64], our_space[64];
    long process;
    if (sscanf(claim, "%255s %63s %63s %ld %31s", host, boot, space, &process, start) != 5)
        return 0;
    if (folder->taken_over != NULL && strcmp(folder->taken_over, host) == 0) return 1;
    if (sscanf(folder->worker, "%*s %63s %63s", our_boot, our_space) != 2) return 0;
    if (strcmp(boot, our_boot) != 0 || strcmp(space, our_space) != 0 || boot[0] == '-' ||
        space[0] == '-' || start[0] == '-')
        return 0;
    read_start(process, now);
    return strcmp(now, start) != 0;
}

static int is_elsewhere(const struct ablate_folder *folder, const char *claim) {
    char boot[64], space[64], our_boot[64], our_space[64];
    return sscanf(claim, "%*s %63s %63s", boot, space) != 2 ||
           sscanf(folder->worker, "%*s %63s %63s", our_boot, our_space) != 2 ||
           strcmp(boot, our_boot) != 0 || strcmp(space, our_space) != 0;
}

/* Links `live` as `path`; *out_ours says whether the name was free. A link that was made and
 * reported as failed, as NFS may do, shows in the number of links. */
static enum status link_first(const char *live, const char *path, int *out_ours) {
    struct stat info;
    const int linked = link(live, path) == 0;
    const int reason = errno;
    *out_ours = linked || (stat(live, &info) == 0 && info.st_nlink == 2);
    if (*out_ours || reason == EEXIST) return STATUS_OK;
    errno = reason;
    return refuse(path, "create");
}

/* Takes the claim of a process that has ended. Only who holds the claim's own lock may replace it,
 * and looks again under it: otherwise two that saw the same end would both have it. */
static enum status replace(const struct ablate_folder *folder, const char *live, const char *path,
                           struct arena *arena, int *out_ours) {
    char *lock, *claim;
    TRY(arena_format(arena, &lock, "%s.lock", path));
    *out_ours = 0;
    const int handle = open(lock, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (handle < 0 && errno == EEXIST) return STATUS_OK;
    if (handle < 0) return refuse(lock, "create");
    close(handle);
    enum status status = read_claim(path, arena, &claim);
    if (status == STATUS_OK && (claim[0] == '\0' || has_ended(folder, claim))) {
        if (rename(live, path) != 0)
            status = refuse(path, "replace");
        else
            *out_ours = 1;
    }
    if (unlink(lock) != 0 && status == STATUS_OK) status = refuse(lock, "remove");
    return status;
}

static enum status take(const struct ablate_folder *folder, const char *live, const char *path,
                        struct arena *arena, enum ablate_claim *out, char **out_who) {
    int ours;
    TRY(link_first(live, path, &ours));
    *out = CLAIM_TAKEN;
    if (ours) return STATUS_OK;
    TRY(read_claim(path, arena, out_who));
    *out = is_elsewhere(folder, *out_who) ? CLAIM_ELSEWHERE : CLAIM_BUSY;
    if ((*out_who)[0] == '\0') *out = CLAIM_BUSY; /* just left */
    if (!has_ended(folder, *out_who)) return STATUS_OK;
    TRY(replace(folder, live, path, arena, &ours));
    *out = ours ? CLAIM_TAKEN : CLAIM_BUSY;
    return STATUS_OK;
}

enum status ablate_claim_take(const struct ablate_folder *folder, const char *name,
                              struct arena *arena, enum ablate_claim *out, char **out_who) {
    char *path, *live;
    TRY(claim_path(folder, name, arena, &path));
    TRY(ablate_live_name(folder, "claims/.live", arena, &live));
    const int handle = open(live, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (handle < 0) return refuse(live, "create");
    const size_t length = strlen(folder->worker);
    const ssize_t written = write(handle, folder->worker, length);
    const int reason = errno;
    if (close(handle) != 0 || written != (ssize_t)length) {
        (void)unlink(live);
        errno = reason;
        return refuse(live, "write");
    }
    const enum status status = take(folder, live, path, arena, out, out_who);
    if (unlink(live) != 0 && errno != ENOENT && status == STATUS_OK) return refuse(live, "remove");
    return status;
}

enum status ablate_claim_pass(const struct ablate_folder *folder, const char *name, long process,
                              struct arena *arena, char out_holder[ABLATE_HOLDER]) {
    char *path, *live, host[256], boot[64], space[64], start[32];
    if (sscanf(folder->worker, "%255s %63s %63s", host, boot, space) != 3)
        FAIL(STATUS_INTERNAL, "a worker without a name: %s", folder->worker);
    read_start(process, start);
    snprintf(out_holder, ABLATE_HOLDER, "%s %s %s %ld %s", host, boot, space, process, start);
    TRY(claim_path(folder, name, arena, &path));
    TRY(ablate_live_name(folder, "claims/.pass", arena, &live));
    return publish_own_bytes(live, path, 1, out_holder, strlen(out_holder));
}

enum status ablate_claim_leave(const struct ablate_folder *folder, const char *name,
                               const char *holder, struct arena *arena) {
    char *path, *claim;
    TRY(claim_path(folder, name, arena, &path));
    TRY(read_claim(path, arena, &claim));
    if (strcmp(claim, holder) != 0) return STATUS_OK; /* it was taken over meanwhile */
    return unlink(path) == 0 ? STATUS_OK : refuse(path, "remove");
}

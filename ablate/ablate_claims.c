/* SPDX-License-Identifier: Apache-2.0
 * Claims: who works on what, so that several workers on one file system share an ablation. A claim
 * is a link that one worker can make; what it says tells whether its worker can still be there. */
#include "ablate/ablate_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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
 * ended and nobody will ask how, as the first process of a container never may. A guard that has
 * ended while its planner lives still has its claim: the planner has yet to keep what the run left,
 * and a run that another worker began meanwhile would move that away. */
static void read_start(long process, char out[32]) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    read_line(path, line, sizeof line);
    const char *at = strrchr(line, ')');
    snprintf(out, 32, "-");
    char state = '-';
    long parent = 0;
    if (at != NULL && sscanf(at + 1, " %c %ld", &state, &parent) == 2 &&
        (state == 'X' || (state == 'Z' && parent <= 1)))
        return;
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

/* Names a worker as a claim's text does. */
struct holder {
    char host[256], boot[64], space[64], start[32];
    long process;
};

static int parse_holder(const char *text, struct holder *out) {
    return sscanf(text, "%255s %63s %63s %ld %31s", out->host, out->boot, out->space, &out->process,
                  out->start) == 5;
}

static enum status our_name(const struct ablate_folder *folder, struct holder *out) {
    if (parse_holder(folder->worker, out)) return STATUS_OK;
    FAIL(STATUS_INTERNAL, "a worker without a name: %s", folder->worker);
}

/* Makes a name for a file in the making that no other worker has, on this machine, in a container
 * of it that has its name, or on another. */
enum status ablate_live_name(const struct ablate_folder *folder, const char *name,
                             struct arena *arena, char **out) {
    struct holder us;
    TRY(our_name(folder, &us));
    const char *space = us.space + strcspn(us.space, "0123456789");
    return arena_format(arena, out, "%s/%s.%s.%.8s.%.*s.%ld", folder->path, name, us.host, us.boot,
                        (int)strspn(space, "0123456789"), space, us.process);
}

/* ---- claims ---- */

static enum status claim_path(const struct ablate_folder *folder, const char *name,
                              struct arena *arena, char **out) {
    return arena_format(arena, out, "%s/claims/%s", folder->path, name);
}

/* Reads a claim's text: NULL when there is none (any more), "" when it is empty. Claims get their
 * name when they are whole, so an empty one is what a machine left that lost its power. */
static enum status read_once(const char *path, struct arena *arena, char **out, int *out_reason) {
    char text[1024];
    struct input input;
    struct holder holder;
    *out = NULL;
    errno = 0;
    const enum status status = input_open(path, INPUT_FILE, path, "a claim", &input);
    *out_reason = errno;
    if (status != STATUS_OK) return access(path, F_OK) != 0 ? STATUS_OK : status;
    const ssize_t length = read(input.descriptor, text, sizeof text - 1);
    *out_reason = length < 0 ? errno : 0;
    close(input.descriptor);
    errno = *out_reason;
    if (length < 0) return refuse(path, "read");
    TRY(arena_text(arena, text, (size_t)length, out));
    if ((*out)[0] != '\0' && !parse_holder(*out, &holder))
        FAIL(STATUS_INPUT,
             "%s: expected a claim (host, boot, name space, process, its start), got \"%.60s\"; "
             "remove it if nothing works on this run",
             path, *out);
    return STATUS_OK;
}

#define STALE_TRIES                                                                                \
    30 /* each after a wait: what a mount keeps of names is asked anew meanwhile                   \
        */
#define STALE_MS 100

/* On a network file system a claim that another machine removes or replaces between our open and
 * our read is a stale handle: what is there now is told by another look. */
static enum status read_claim(const char *path, struct arena *arena, char **out) {
    int reason;
    enum status status = read_once(path, arena, out, &reason);
    for (int i = 0; status == STATUS_IO && reason == ESTALE && i < STALE_TRIES; i++) {
        (void)poll(NULL, 0, STALE_MS);
        status = read_once(path, arena, out, &reason);
    }
    return status;
}

/* Says whether the holder is of this boot and of this name space of processes, where its end shows.
 */
static int is_here(const struct ablate_folder *folder, const struct holder *holder) {
    struct holder us;
    return parse_holder(folder->worker, &us) && strcmp(holder->boot, us.boot) == 0 &&
           strcmp(holder->space, us.space) == 0 && us.boot[0] != '-' && us.space[0] != '-';
}

/* Where nobody could tell when the holder started (no memory to read it, say), any process of its
 * number counts as the holder: who is gone is gone, and who may be there is waited for. */
static int lives(const struct holder *holder) {
    char now[32];
    if (holder->start[0] == '-') return kill((pid_t)holder->process, 0) == 0 || errno != ESRCH;
    read_start(holder->process, now);
    return strcmp(now, holder->start) == 0;
}

/* Says whether nobody has the claim any more: for certain, or because a person said so. */
static int has_ended(const struct ablate_folder *folder, const char *claim) {
    struct holder holder;
    if (!parse_holder(claim, &holder)) return 1; /* read_claim: it is empty */
    for (size_t i = 0; i < folder->left_count; i++)
        if (strcmp(folder->left[i], claim) == 0) return 1;
    return is_here(folder, &holder) && !lives(&holder);
}

static int is_elsewhere(const struct ablate_folder *folder, const char *claim) {
    struct holder holder;
    return parse_holder(claim, &holder) && !is_here(folder, &holder);
}

/* Adds the claim to those that count as left, if it is of this host. */
static enum status leave_behind(struct ablate_folder *folder, const char *host, const char *name,
                                size_t *room, struct arena *arena) {
    char *path, *claim;
    struct holder holder;
    TRY(claim_path(folder, name, arena, &path));
    TRY(read_claim(path, arena, &claim));
    if (claim == NULL || !parse_holder(claim, &holder) || strcmp(holder.host, host) != 0)
        return STATUS_OK;
    if (is_here(folder, &holder) && lives(&holder))
        FAIL(STATUS_INPUT,
             "--take-over %s: expected a machine that is gone; its process %ld lives here and has "
             "the claim %s (end it first, then nothing needs to be taken over)",
             host, holder.process, name);
    TRY(arena_grow(arena, folder->left_count + 1, room, sizeof *folder->left, "claims",
                   &folder->left));
    folder->left[folder->left_count++] = claim;
    return STATUS_OK;
}

enum status ablate_claims_take_over(struct ablate_folder *folder, const char *host,
                                    struct arena *arena) {
    char *path;
    size_t room = 0;
    TRY(claim_path(folder, "", arena, &path));
    DIR *claims = opendir(path);
    if (claims == NULL) return refuse(path, "list");
    enum status status = STATUS_OK;
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(claims)) != NULL;)
        if (entry->d_name[0] != '.')
            status = leave_behind(folder, host, entry->d_name, &room, arena);
    closedir(claims);
    return status;
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

#define SETTLE_MS 50 /* far longer than a holder of the lock needs from its look to its rename */

/* Removes the lock of a worker that ended between two of the steps below. */
static enum status break_lock(const struct ablate_folder *folder, const char *lock,
                              struct arena *arena) {
    char *holder, *aside;
    TRY(read_claim(lock, arena, &holder));
    if (holder == NULL || !has_ended(folder, holder)) return STATUS_OK;
    TRY(ablate_live_name(folder, "claims/.broken", arena, &aside));
    if (rename(lock, aside) != 0 && errno != ENOENT) return refuse(lock, "move");
    return unlink(aside) == 0 || errno == ENOENT ? STATUS_OK : refuse(aside, "remove");
}

/* Says whether the claim still holds our text a while after we did: two workers that broke one
 * lock could both have replaced it, and then the last one has it. */
static enum status look_again(const struct ablate_folder *folder, const char *path,
                              struct arena *arena, int *out_ours) {
    char *claim;
    (void)poll(NULL, 0, SETTLE_MS);
    TRY(read_claim(path, arena, &claim));
    *out_ours = claim != NULL && strcmp(claim, folder->worker) == 0;
    return STATUS_OK;
}

/* Takes the claim of a process that has ended. Only who holds the claim's own lock may replace it,
 * and looks again under it: otherwise two that saw the same end would both have it. The lock is a
 * second name of `live`, so it says who has it. */
static enum status replace(const struct ablate_folder *folder, const char *live, const char *path,
                           struct arena *arena, int *out_ours) {
    char *lock, *claim;
    TRY(arena_format(arena, &lock, "%s.lock", path));
    TRY(link_first(live, lock, out_ours));
    if (!*out_ours) return break_lock(folder, lock, arena);
    *out_ours = 0;
    enum status status = read_claim(path, arena, &claim);
    if (status == STATUS_OK && (claim == NULL || has_ended(folder, claim))) {
        if (rename(live, path) != 0)
            status = refuse(path, "replace");
        else
            *out_ours = 1;
    }
    if (unlink(lock) != 0 && status == STATUS_OK) status = refuse(lock, "remove");
    return status == STATUS_OK && *out_ours ? look_again(folder, path, arena, out_ours) : status;
}

static enum status take(const struct ablate_folder *folder, const char *live, const char *path,
                        struct arena *arena, enum ablate_claim *out, char **out_who) {
    int ours;
    *out_who = NULL;
    TRY(link_first(live, path, &ours));
    *out = CLAIM_TAKEN;
    if (ours) return STATUS_OK;
    TRY(read_claim(path, arena, out_who));
    *out = CLAIM_BUSY;
    if (*out_who == NULL) return STATUS_OK; /* just left */
    if (is_elsewhere(folder, *out_who)) *out = CLAIM_ELSEWHERE;
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
    char *path, *live, start[32];
    struct holder us;
    TRY(our_name(folder, &us));
    read_start(process, start);
    snprintf(out_holder, ABLATE_HOLDER, "%s %s %s %ld %s", us.host, us.boot, us.space, process,
             start);
    TRY(claim_path(folder, name, arena, &path));
    TRY(ablate_live_name(folder, "claims/.pass", arena, &live));
    return publish_own_bytes(live, path, 1, out_holder, strlen(out_holder));
}

enum status ablate_claim_leave(const struct ablate_folder *folder, const char *name,
                               const char *holder, struct arena *arena) {
    char *path, *claim;
    TRY(claim_path(folder, name, arena, &path));
    TRY(read_claim(path, arena, &claim));
    if (claim == NULL || strcmp(claim, holder) != 0) return STATUS_OK; /* it was taken over */
    return unlink(path) == 0 ? STATUS_OK : refuse(path, "remove");
}

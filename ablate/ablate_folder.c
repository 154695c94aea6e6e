/* SPDX-License-Identifier: Apache-2.0
 * Keeps the state of an ablation in small text files. Each is made whole under another name and
 * then linked, so that a reader, here or on another machine, sees all of it or none. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "ablate/ablate_folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate/ablate_rights.h"
#include "base/input.h"
#include "base/publish.h"
#include "scenarios/textfile.h"

#define STATE_BYTES_MAX ((size_t)1 << 20)
#define ATTEMPTS_MOST 10000
#define OPENINGS_MOST 20
#define PLACE "place "
#define HARM "so they could change what runs left"
#define DONE_HEAD "twinstep ablate done 1\n"

static enum status refuse(const char *path, const char *action) {
    return status_fail(STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

static enum status make_folder(const char *path) {
    if (mkdir(path, 0755) == 0 || errno == EEXIST) return STATUS_OK;
    return refuse(path, "create");
}

/* ---- rights ---- */

/* Whoever can write here could put results into runs, so that a verdict would be theirs. */
static enum status check_rights(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return refuse(path, "look at");
    if (!S_ISDIR(info.st_mode)) FAIL(STATUS_INPUT, "%s: expected a folder", path);
    return ablate_rights_check_own(path, HARM);
}

/* Reads a file that this program made. */
static enum status read_own(const char *path, size_t limit, struct arena *arena, char **out_text,
                            size_t *out_length) {
    TRY(ablate_rights_check_own(path, HARM));
    return textfile_read(arena, path, limit, out_text, out_length);
}

/* ---- the plan ---- */

static void next_line(const char **text, const char **line, size_t *length) {
    *line = *text;
    *length = strcspn(*text, "\n");
    *text += *length + ((*text)[*length] == '\n');
}

static int has_line(const char *text, const char *line, size_t length) {
    while (*text != '\0') {
        const char *other;
        size_t other_length;
        next_line(&text, &other, &other_length);
        if (other_length == length && memcmp(other, line, length) == 0) return 1;
    }
    return 0;
}

#define INPUT "input "
#define OTHER_PLAN "%s: holds runs of another plan, so it cannot be continued: "
#define OTHER_FOLDER " (another folder: --output)"

/* Where both lines are of one input, the length of the first one up to the end of its path; 0: they
 * are not. Behind the path stands its digest, or of a large file its size and time. */
static size_t same_input(const char *a, size_t la, const char *b, size_t lb) {
    const size_t head = strlen(INPUT);
    size_t end = la;
    while (end > head && a[end - 1] != ' ')
        end--;
    return end > head + 1 && end <= lb && strncmp(a, INPUT, head) == 0 && memcmp(a, b, end) == 0 &&
                   memchr(b + end, ' ', lb - end) == NULL
               ? end - 1
               : 0;
}

static enum status compare_plans(const char *path, const char *old, const char *now) {
    const char *const all[2] = {old, now};
    const char *a, *b;
    size_t la, lb;
    if (strcmp(old, now) == 0) return STATUS_OK;
    do {
        next_line(&old, &a, &la);
        next_line(&now, &b, &lb);
    } while (la == lb && memcmp(a, b, la) == 0 && (la > 0 || *old != '\0' || *now != '\0'));
    static const char size[] = " bytes of";
    const size_t head = strlen(INPUT), tail = strlen(size);
    size_t input = same_input(a, la, b, lb);
    if (input > head + tail + 2 && memcmp(a + input - tail, size, tail) == 0) {
        input -= tail;
        while (a[input - 1] != ' ' && input > head + 1)
            input--;
        input--;
    }
    const int shown[2] = {(int)(la < 300 ? la : 300), (int)(lb < 300 ? lb : 300)};
    const int is_added = !has_line(all[0], b, lb), is_gone = !has_line(all[1], a, la);
    if (input > 0)
        FAIL(STATUS_INPUT,
             OTHER_PLAN "%.*s has changed since the first run" OTHER_FOLDER
                        "; if runs write to it, they are not alike: let it lie in {dir}",
             path, (int)(input - head), a + head);
    if (is_added && !is_gone && lb > 0)
        FAIL(STATUS_INPUT, OTHER_PLAN "\"%.*s\" was not there before" OTHER_FOLDER, path, shown[1],
             b);
    if (is_gone && !is_added && la > 0)
        FAIL(STATUS_INPUT, OTHER_PLAN "\"%.*s\" was there before, and is not now" OTHER_FOLDER,
             path, shown[0], a);
    FAIL(STATUS_INPUT, OTHER_PLAN "it has \"%.*s\", now it would be \"%.*s\"" OTHER_FOLDER, path,
         shown[0], a, shown[1], b);
}

/* Says whether the folder of that name is not there, or is and has no entry. */
static int has_no_entry(const char *path) {
    DIR *folder = opendir(path);
    int others = 0;
    if (folder == NULL) return errno == ENOENT;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return others == 0;
}

/* Says whether an entry of the folder leaves it empty all the same: a plan that another worker is
 * about to name, or the places for runs and claims with nothing in them. */
static int is_nothing(const char *path, const char *name) {
    char sub[4096];
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, "plan", 4) == 0)
        return 1;
    if (strcmp(name, "runs") != 0 && strcmp(name, "claims") != 0) return 0;
    const int length = snprintf(sub, sizeof sub, "%s/%s", path, name);
    return length > 0 && (size_t)length < sizeof sub && has_no_entry(sub);
}

static int holds_nothing(const char *path) {
    DIR *folder = opendir(path);
    int others = 0;
    if (folder == NULL) return errno == ENOENT; /* another worker has just removed it */
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        others += !is_nothing(path, entry->d_name);
    closedir(folder);
    return others == 0;
}

static enum status settle_plan(struct ablate_folder *folder, struct arena *arena) {
    char *path, *live, *old;
    const char *now;
    size_t length;
    TRY(arena_format(arena, &path, "%s/plan", folder->path));
    if (access(path, F_OK) != 0) {
        if (!holds_nothing(folder->path) && access(path, F_OK) != 0)
            FAIL(STATUS_INPUT, "%s: is there and is no folder of an ablation (it has no plan)",
                 folder->path);
        TRY(ablate_live_name(folder, "plan", arena, &live));
        const enum status status =
            publish_own_bytes(live, path, 0, folder->plan->text, strlen(folder->plan->text));
        /* another worker may have been first: its plan counts, and must be ours */
        if (status != STATUS_OK && access(path, F_OK) != 0) return status;
        if (status != STATUS_OK) (void)unlink(live);
        folder->plan_is_made = status == STATUS_OK;
    }
    TRY(read_own(path, (size_t)16 << 20, arena, &old, &length));
    TRY(ablate_plan_without_outputs(folder->plan, old, arena, &now));
    digest_sha256(old, length, &folder->digest);
    return compare_plans(folder->path, old, now);
}

/* Makes what is not there. *out_stands: the plan was there when all else was, so that nobody
 * removes it who looks first whether anything lies beside it. */
static enum status furnish(const char *path, struct ablate_folder *folder, struct arena *arena,
                           int *out_stands) {
    char *sub;
    TRY(check_rights(path));
    TRY(settle_plan(folder, arena));
    TRY(arena_format(arena, &sub, "%s/runs", folder->path));
    TRY(make_folder(sub));
    TRY(check_rights(sub));
    TRY(arena_format(arena, &sub, "%s/claims", folder->path));
    TRY(make_folder(sub));
    TRY(check_rights(sub));
    TRY(arena_format(arena, &sub, "%s/plan", folder->path));
    *out_stands = access(sub, F_OK) == 0;
    return STATUS_OK;
}

/* A worker whose command could not be started may be removing what this one finds: then it is all
 * made again, until it stands. A folder that is made here and refused is removed, unless there is a
 * plan in it already. */
enum status ablate_folder_open(const char *path, const struct ablate_plan *plan,
                               struct arena *arena, struct ablate_folder *out) {
    enum status status = STATUS_OK;
    int stands = 0;
    memset(out, 0, sizeof *out);
    out->plan = plan;
    TRY(path[0] == '/' ? arena_format(arena, &out->path, "%s", path)
                       : arena_format(arena, &out->path, "%s/%s", plan->folder, path));
    TRY(ablate_name_worker(arena, &out->worker));
    for (int i = 0; i < OPENINGS_MOST && !stands; i++) {
        if (mkdir(path, 0755) == 0)
            out->is_made = 1;
        else if (errno != EEXIST)
            return refuse(path, "create");
        status = furnish(path, out, arena, &stands);
        if (status != STATUS_OK && status != STATUS_IO) break;
    }
    if (status == STATUS_OK && !stands)
        status = status_fail(STATUS_IO, "%s: other workers remove it again and again", path);
    if (status != STATUS_OK && out->is_made) (void)rmdir(path);
    return status;
}

void ablate_folder_hide(const struct ablate_folder *folder, struct arena *arena, char **out_aside) {
    char *plan, *aside;
    *out_aside = NULL;
    if (!folder->plan_is_made || !holds_nothing(folder->path) ||
        arena_format(arena, &plan, "%s/plan", folder->path) != STATUS_OK ||
        ablate_live_name(folder, "plan.unmade", arena, &aside) != STATUS_OK ||
        rename(plan, aside) != 0)
        return;
    *out_aside = aside;
}

void ablate_folder_end(const struct ablate_folder *folder, const char *aside, struct arena *arena) {
    char *runs, *claims, *plan;
    if (arena_format(arena, &runs, "%s/runs", folder->path) != STATUS_OK ||
        arena_format(arena, &claims, "%s/claims", folder->path) != STATUS_OK ||
        arena_format(arena, &plan, "%s/plan", folder->path) != STATUS_OK)
        return;
    if (rmdir(claims) == 0 && rmdir(runs) == 0) {
        (void)unlink(aside);
        if (folder->is_made) (void)rmdir(folder->path); /* unless another worker is in it again */
        return;
    }
    /* another worker has a claim or a run here, and may have written the plan by itself */
    (void)mkdir(claims, 0755);
    if (link(aside, plan) == 0 || errno == EEXIST) (void)unlink(aside);
}

void ablate_folder_unmake(const struct ablate_folder *folder, struct arena *arena) {
    char *aside;
    ablate_folder_hide(folder, arena, &aside);
    if (aside != NULL) ablate_folder_end(folder, aside, arena);
}

/* ---- runs ---- */

enum status ablate_folder_path(const struct ablate_folder *folder, const struct ablate_run *run,
                               const char *name, struct arena *arena, char **out) {
    return arena_format(arena, out, "%s/runs/%s%s%s", folder->path, run->id,
                        name[0] == '\0' ? "" : "/", name);
}

static enum status done_head(const struct ablate_folder *folder, const struct ablate_run *run,
                             struct arena *arena, char **out) {
    char hex[DIGEST_HEX];
    digest_hex(&folder->digest, hex);
    return arena_format(arena, out, DONE_HEAD "run %s\nplan %s\n", run->id, hex);
}

static enum status read_done(const struct ablate_folder *folder, const struct ablate_run *run,
                             struct arena *arena, char **out_path, char **out_rest) {
    char *head, *text;
    size_t length;
    *out_rest = NULL;
    TRY(ablate_folder_path(folder, run, "done", arena, out_path));
    if (access(*out_path, F_OK) != 0) return STATUS_OK;
    TRY(read_own(*out_path, STATE_BYTES_MAX, arena, &text, &length));
    TRY(done_head(folder, run, arena, &head));
    if (strncmp(text, head, strlen(head)) != 0 || length == 0 || text[length - 1] != '\n')
        FAIL(STATUS_INPUT, "%s: expected the record of this run of this plan, got something else",
             *out_path);
    *out_rest = text + strlen(head);
    return STATUS_OK;
}

enum status ablate_folder_state(const struct ablate_folder *folder, const struct ablate_run *run,
                                struct arena *arena, enum ablate_state *out) {
    char *path, *rest;
    TRY(read_done(folder, run, arena, &path, &rest));
    *out = ABLATE_DONE;
    if (rest != NULL) return STATUS_OK;
    TRY(ablate_folder_path(folder, run, "failed", arena, &path));
    *out = access(path, F_OK) == 0 ? ABLATE_FAILED : ABLATE_ABSENT;
    return STATUS_OK;
}

enum status ablate_folder_digests(const struct ablate_folder *folder, const struct ablate_run *run,
                                  struct arena *arena, const char *out[READ_KINDS],
                                  const char **out_place) {
    char *path, *rest;
    memset(out, 0, sizeof *out * READ_KINDS);
    *out_place = "";
    TRY(read_done(folder, run, arena, &path, &rest));
    if (rest == NULL) return STATUS_OK;
    const char *at = rest, *line;
    size_t length;
    while (*at != '\0') {
        next_line(&at, &line, &length);
        if (length > strlen(PLACE) && strncmp(line, PLACE, strlen(PLACE)) == 0) {
            char *place;
            TRY(arena_text(arena, line + strlen(PLACE), length - strlen(PLACE), &place));
            *out_place = place;
        }
        for (int i = 0; i < READ_KINDS; i++) {
            const size_t name = strlen(ablate_read_names[i]);
            char *value;
            if (length <= name || strncmp(line, ablate_read_names[i], name) != 0) continue;
            TRY(arena_text(arena, line + name + 1, length - name - 1, &value));
            out[i] = value;
        }
    }
    return STATUS_OK;
}

enum status ablate_folder_is_used(const struct ablate_folder *folder, const struct ablate_run *run,
                                  struct arena *arena, int *out) {
    static const char *const streams[] = {"stdout", "stderr"};
    *out = 0;
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        struct input input;
        char *path;
        TRY(ablate_folder_path(folder, run, streams[i], arena, &path));
        if (input_open(path, INPUT_FILE, path, "what a run printed", &input) != STATUS_OK)
            continue; /* no attempt came so far */
        *out |= flock(input.descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        close(input.descriptor); /* gives the lock back */
    }
    return STATUS_OK;
}

enum status ablate_folder_begin(const struct ablate_folder *folder, const struct ablate_run *run,
                                struct arena *arena) {
    char *path, *out, *aside;
    TRY(ablate_folder_path(folder, run, "", arena, &path));
    for (int i = 1; access(path, F_OK) == 0; i++) {
        if (i > ATTEMPTS_MOST) FAIL(STATUS_INPUT, "%s: too many attempts", path);
        TRY(arena_format(arena, &aside, "%s.%d", path, i));
        if (access(aside, F_OK) != 0 && rename(path, aside) != 0) return refuse(path, "put aside");
    }
    if (mkdir(path, 0755) != 0) return refuse(path, "create");
    TRY(ablate_folder_path(folder, run, "out", arena, &out));
    return mkdir(out, 0755) == 0 ? STATUS_OK : refuse(out, "create");
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    (void)remove(path);
    return 0;
}

void ablate_folder_unbegin(const struct ablate_folder *folder, const struct ablate_run *run,
                           struct arena *arena) {
    char *path;
    if (ablate_folder_path(folder, run, "", arena, &path) == STATUS_OK)
        (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static enum status write_state(const struct ablate_folder *folder, const struct ablate_run *run,
                               const char *name, const char *text, struct arena *arena) {
    char *live, *path, *part;
    TRY(arena_format(arena, &part, "%s.part", name));
    TRY(ablate_folder_path(folder, run, part, arena, &live));
    TRY(ablate_folder_path(folder, run, name, arena, &path));
    return publish_own_bytes(live, path, 1, text, strlen(text));
}

enum status ablate_folder_done(const struct ablate_folder *folder, const struct ablate_run *run,
                               const char *const digests[READ_KINDS], const char *host,
                               const char *device, struct arena *arena) {
    char *text, here[256];
    if (sscanf(folder->worker, "%255s", here) != 1) snprintf(here, sizeof here, "unknown");
    if (host[0] == '\0') host = here;
    TRY(done_head(folder, run, arena, &text));
    for (int i = 0; i < READ_KINDS; i++)
        if (digests[i] != NULL)
            TRY(arena_format(arena, &text, "%s%s %s\n", text, ablate_read_names[i], digests[i]));
    TRY(arena_format(arena, &text, "%s" PLACE "%s%s%s\n", text, host,
                     device[0] == '\0' ? "" : " device ", device));
    return write_state(folder, run, "done", text, arena);
}

enum status ablate_folder_fail(const struct ablate_folder *folder, const struct ablate_run *run,
                               const char *reason, struct arena *arena) {
    return write_state(folder, run, "failed", reason, arena);
}

enum status ablate_folder_reason(const struct ablate_folder *folder, const struct ablate_run *run,
                                 struct arena *arena, char **out) {
    char *path;
    size_t length;
    TRY(ablate_folder_path(folder, run, "failed", arena, &path));
    if (access(path, F_OK) != 0) return arena_format(arena, out, "%s", "");
    return read_own(path, STATE_BYTES_MAX, arena, out, &length);
}

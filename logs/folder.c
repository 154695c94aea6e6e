/* SPDX-License-Identifier: Apache-2.0
 * Lists a folder in an order of its own (that of readdir is none) and picks the files of one log.
 *
 * Invariant: what is picked depends on the names alone. */
#include "logs/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"

struct names {
    const char **names;
    size_t count, room;
};

static enum status add_name(struct arena *arena, struct names *list, const char *name) {
    char *kept;
    if (list->count == list->room) {
        const char **larger;
        const size_t room = 2 * list->room + 16;
        TRY(arena_take(arena, room, sizeof *larger, "names of a folder", &larger));
        if (list->count > 0) memcpy(larger, list->names, list->count * sizeof *larger);
        list->names = larger;
        list->room = room;
    }
    TRY(arena_text(arena, name, strlen(name), &kept));
    list->names[list->count++] = kept;
    return STATUS_OK;
}

static int holds(const char *name, const char *word) {
    return strstr(name, word) != NULL;
}

static int starts_with(const char *name, const char *word) {
    return strncmp(name, word, strlen(word)) == 0;
}

static int ends_with(const char *name, const char *word) {
    const size_t length = strlen(name), tail = strlen(word);
    return length >= tail && strcmp(name + length - tail, word) == 0;
}

static int is_event_file(const char *name) {
    return holds(name, "tfevents");
}

static int is_step_metrics(const char *name) {
    return starts_with(name, "metrics_step") && ends_with(name, ".json");
}

/* Files that hold a log by themselves, the best first. */
static const char *const lone[] = {"trainer_state.json", "metrics.json",  "metrics.csv",
                                   "trainer_log.jsonl",  "metrics.jsonl", "main.log"};

static int is_lone_log(const char *name) {
    for (size_t i = 0; i < COUNT_OF(lone); i++)
        if (strcmp(name, lone[i]) == 0) return 1;
    return 0;
}

static int is_wanted(const char *name) {
    return is_event_file(name) || is_step_metrics(name) || is_lone_log(name) ||
           starts_with(name, "checkpoint-");
}

static enum status read_names(const char *path, struct arena *arena, struct names *out) {
    enum status status = STATUS_OK;
    memset(out, 0, sizeof *out);
    DIR *folder = opendir(path);
    if (folder == NULL) FAIL(STATUS_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    for (struct dirent *entry = readdir(folder); entry != NULL && status == STATUS_OK;
         entry = readdir(folder))
        if (is_wanted(entry->d_name)) status = add_name(arena, out, entry->d_name);
    closedir(folder);
    /* The names of a folder differ, so there are no ties. */
    for (size_t i = 1; i < out->count; i++) {
        const char *name = out->names[i];
        size_t at = i;
        for (; at > 0 && strcmp(out->names[at - 1], name) > 0; at--)
            out->names[at] = out->names[at - 1];
        out->names[at] = name;
    }
    return status;
}

static int exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static enum status add_path(const char *folder, const char *name, struct arena *arena,
                            struct log_files *out) {
    char *path;
    const size_t length = strlen(folder);
    TRY(arena_format(arena, &path, "%s%s%s", folder,
                     length > 0 && folder[length - 1] == '/' ? "" : "/", name));
    out->paths[out->count++] = path;
    return STATUS_OK;
}

static enum status pick_lone(const char *folder, const struct names *names, const char *wanted,
                             struct arena *arena, struct log_files *out) {
    for (size_t i = 0; i < names->count && out->count == 0; i++)
        if (strcmp(names->names[i], wanted) == 0)
            TRY(add_path(folder, names->names[i], arena, out));
    return STATUS_OK;
}

/* Picks the checkpoint with the greatest N: its trainer_state.json holds the history of all before
 * it. */
static enum status pick_checkpoint(const char *folder, const struct names *names,
                                   struct arena *arena, struct log_files *out) {
    uint64_t best = 0;
    for (size_t i = 0; i < names->count; i++) {
        uint64_t number;
        char *path;
        if (!starts_with(names->names[i], "checkpoint-") ||
            number_parse_uint(names->names[i] + strlen("checkpoint-"), &number) != STATUS_OK)
            continue;
        TRY(arena_format(arena, &path, "%s/%s/trainer_state.json", folder, names->names[i]));
        if (!exists(path) || (out->count > 0 && number <= best)) continue;
        best = number;
        out->paths[0] = path;
        out->count = 1;
    }
    return STATUS_OK;
}

static enum status pick_all(const char *folder, const struct names *names,
                            int (*wanted)(const char *name), struct arena *arena,
                            struct log_files *out) {
    for (size_t i = 0; i < names->count; i++)
        if (wanted(names->names[i])) TRY(add_path(folder, names->names[i], arena, out));
    return STATUS_OK;
}

static enum status pick(const char *folder, struct arena *arena, struct log_files *out) {
    struct names names;
    TRY(read_names(folder, arena, &names));
    TRY(arena_take(arena, names.count + 1, sizeof *out->paths, "files of a log", &out->paths));
    TRY(pick_lone(folder, &names, lone[0], arena, out));
    if (out->count == 0) TRY(pick_checkpoint(folder, &names, arena, out));
    if (out->count == 0) TRY(pick_all(folder, &names, is_event_file, arena, out));
    if (out->count == 0) TRY(pick_all(folder, &names, is_step_metrics, arena, out));
    for (size_t i = 1; i < COUNT_OF(lone) && out->count == 0; i++)
        TRY(pick_lone(folder, &names, lone[i], arena, out));
    if (out->count > 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: expected a folder with trainer_state.json, checkpoint-N/trainer_state.json, "
         "*tfevents* files, metrics_step*.json, metrics.json, metrics.csv, trainer_log.jsonl, "
         "metrics.jsonl or main.log, got none of them",
         folder);
}

enum status log_files_of(const char *path, struct arena *arena, struct log_files *out) {
    struct stat info;
    char *kept;
    memset(out, 0, sizeof *out);
    if (strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return pick(path, arena, out);
    TRY(arena_take(arena, 1, sizeof *out->paths, "files of a log", &out->paths));
    TRY(arena_text(arena, path, strlen(path), &kept));
    out->paths[0] = kept;
    out->count = 1;
    return STATUS_OK;
}

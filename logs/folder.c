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

/* Chosen so that the files of one run stay below what a process may have open. */
#define METRICS_MOST 512
#define METRIC_DEPTH 8

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

static int is_run_file(const char *name) {
    return ends_with(name, ".wandb") || ends_with(name, ".swanlab");
}

static int is_metric(const char *name) {
    return name[0] != '.';
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
    return is_event_file(name) || is_run_file(name) || is_step_metrics(name) || is_lone_log(name) ||
           starts_with(name, "checkpoint-");
}

static enum status read_names(const char *path, int (*wanted)(const char *name),
                              struct arena *arena, struct names *out) {
    enum status status = STATUS_OK;
    memset(out, 0, sizeof *out);
    DIR *folder = opendir(path);
    if (folder == NULL) FAIL(STATUS_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    for (struct dirent *entry = readdir(folder); entry != NULL && status == STATUS_OK;
         entry = readdir(folder))
        if (wanted(entry->d_name)) status = add_name(arena, out, entry->d_name);
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

/* ---- MLflow ---- */

static int is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Takes the files below `path`; `prefix` is the beginning of their metrics' names ("train/"). */
static enum status walk_metrics(const char *path, const char *prefix, int depth,
                                struct arena *arena, struct log_files *out) {
    struct names names;
    TRY(read_names(path, is_metric, arena, &names));
    for (size_t i = 0; i < names.count; i++) {
        char *below, *name;
        TRY(arena_format(arena, &below, "%s/%s", path, names.names[i]));
        TRY(arena_format(arena, &name, "%s%s%s", prefix, names.names[i],
                         is_folder(below) ? "/" : ""));
        if (is_folder(below)) {
            if (depth < METRIC_DEPTH) TRY(walk_metrics(below, name, depth + 1, arena, out));
            continue;
        }
        if (out->count == METRICS_MOST)
            FAIL(STATUS_INPUT, "%s: expected at most %d metrics of an MLflow run, got more", path,
                 METRICS_MOST);
        out->series[out->count] = name;
        out->paths[out->count++] = below;
    }
    return STATUS_OK;
}

static enum status pick_mlflow(const char *folder, struct arena *arena, struct log_files *out) {
    char *meta, *metrics;
    TRY(arena_format(arena, &meta, "%s/meta.yaml", folder));
    TRY(arena_format(arena, &metrics, "%s/metrics", folder));
    if (!exists(meta) || !is_folder(metrics)) return STATUS_OK;
    TRY(arena_take(arena, METRICS_MOST, sizeof *out->paths, "metrics", &out->paths));
    TRY(arena_take(arena, METRICS_MOST, sizeof *out->series, "metrics", &out->series));
    TRY(walk_metrics(metrics, "", 0, arena, out));
    if (out->count == 0) out->series = NULL;
    return STATUS_OK;
}

/* Tells whether a path ends in `.aim`, with slashes behind it or none. */
static int is_called_aim(const char *folder) {
    static const char name[] = ".aim";
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/')
        length--;
    const size_t own = sizeof name - 1;
    return length >= own && memcmp(folder + length - own, name, own) == 0 &&
           (length == own || folder[length - own - 1] == '/');
}

/* Aim keeps metrics in RocksDB, which only Aim reads, in meta/ and seqs/ beside its
 * run_metadata.sqlite. The folder is called .aim, unless __AIM_REPO_NAME__ says otherwise (aim 3,
 * sdk/repo.py and sdk/configs.py). */
static enum status refuse_aim(const char *folder, struct arena *arena) {
    char *aim, *runs, *meta;
    TRY(arena_format(arena, &aim, "%s/.aim", folder));
    TRY(arena_format(arena, &runs, "%s/run_metadata.sqlite", folder));
    TRY(arena_format(arena, &meta, "%s/meta", folder));
    if (!is_folder(aim) && !is_called_aim(folder) && !(exists(runs) && is_folder(meta)))
        return STATUS_OK;
    FAIL(
        STATUS_INPUT,
        "%s: expected a log, got an Aim repository, whose metrics lie in RocksDB; write one as "
        "CSV with Aim itself (metric.dataframe().to_csv(FILE), then --map loss=value), or read the "
        "log that the trainer wrote",
        folder);
}

static enum status pick(const char *folder, struct arena *arena, struct log_files *out) {
    struct names names;
    TRY(read_names(folder, is_wanted, arena, &names));
    TRY(arena_take(arena, names.count + 1, sizeof *out->paths, "files of a log", &out->paths));
    TRY(pick_lone(folder, &names, lone[0], arena, out));
    if (out->count == 0) TRY(pick_checkpoint(folder, &names, arena, out));
    if (out->count == 0) TRY(pick_all(folder, &names, is_event_file, arena, out));
    if (out->count == 0) TRY(pick_all(folder, &names, is_run_file, arena, out));
    if (out->count == 0) TRY(pick_all(folder, &names, is_step_metrics, arena, out));
    for (size_t i = 1; i < COUNT_OF(lone) && out->count == 0; i++)
        TRY(pick_lone(folder, &names, lone[i], arena, out));
    if (out->count == 0) TRY(pick_mlflow(folder, arena, out));
    if (out->count > 0) return STATUS_OK;
    TRY(refuse_aim(folder, arena));
    FAIL(STATUS_INPUT,
         "%s: expected a folder with trainer_state.json, checkpoint-N/trainer_state.json, "
         "*tfevents* files, *.wandb, *.swanlab, metrics/ of an MLflow run, metrics_step*.json, "
         "metrics.json, metrics.csv, trainer_log.jsonl, "
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

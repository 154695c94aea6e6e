/* SPDX-License-Identifier: Apache-2.0
 * Finds the scenarios of a suite, and makes and removes the folder of their traces. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/suite.h"

#define RESULT_END ".json"

static int ends_with(const char *name, const char *end) {
    const size_t length = strlen(name);
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static int is_scenario(const char *name) {
    return name[0] != '.' && ends_with(name, ".yaml");
}

/* Inserts by name, so that the order in which the file system lists the files decides nothing. */
static void insert(struct suite *suite, struct suite_case fresh) {
    size_t at = suite->case_count++;
    while (at > 0 && strcmp(suite->cases[at - 1].name, fresh.name) > 0) {
        suite->cases[at] = suite->cases[at - 1];
        at--;
    }
    suite->cases[at] = fresh;
}

static enum status add_file(struct suite *suite, struct arena *arena, const char *folder,
                            const char *entry) {
    struct suite_case fresh = {.name = NULL};
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    char *name, *path;
    TRY(arena_text(arena, entry, strlen(entry) - 5, &name));
    TRY(arena_format(arena, &path, "%s%s%s", folder, slash, entry));
    fresh.name = name;
    fresh.path = path;
    insert(suite, fresh);
    return STATUS_OK;
}

/* The first pass, with `arena` NULL, counts the files; the second takes them. */
static enum status walk(struct suite *suite, struct arena *arena, const char *folder, size_t room,
                        size_t *out_count) {
    DIR *stream = opendir(folder);
    enum status status = STATUS_OK;
    *out_count = 0;
    if (stream == NULL)
        FAIL(STATUS_IO, "%s: error: cannot read the folder: %s", folder, strerror(errno));
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(stream)) != NULL;) {
        if (!is_scenario(entry->d_name)) continue;
        if (arena != NULL && *out_count < room)
            status = add_file(suite, arena, folder, entry->d_name);
        (*out_count)++;
    }
    closedir(stream);
    return status;
}

static enum status collect_catalog(struct suite *suite, struct arena *arena) {
    size_t count = 0;
    while (catalog_files[count].name != NULL)
        count++;
    TRY(arena_take(arena, count, sizeof *suite->cases, "suite", &suite->cases));
    for (size_t i = 0; i < count; i++)
        insert(suite,
               (struct suite_case){.name = catalog_files[i].name, .file = &catalog_files[i]});
    if (count == 0) FAIL(STATUS_INPUT, "suite: the catalogue of this build is empty");
    return STATUS_OK;
}

enum status suite_collect(const char *folder, struct arena *arena, struct suite *suite) {
    size_t count = 0, again = 0;
    if (folder == NULL) return collect_catalog(suite, arena);
    if (folder[0] == '\0') FAIL(STATUS_INPUT, "suite: expected a folder, got an empty name");
    TRY(walk(suite, NULL, folder, 0, &count));
    if (count == 0) FAIL(STATUS_INPUT, "%s: error: no *.yaml file in this folder", folder);
    TRY(arena_take(arena, count, sizeof *suite->cases, "suite", &suite->cases));
    return walk(suite, arena, folder, count, &again);
}

void suite_deal(struct suite *suite, uint64_t number, uint64_t parts) {
    size_t count = 0;
    for (size_t i = 0; i < suite->case_count; i++)
        if (i % parts == number - 1) suite->cases[count++] = suite->cases[i];
    suite->case_count = count;
}

static enum status make_named(const char *folder, const char **out_made) {
    struct stat info;
    if (mkdir(folder, 0777) == 0) {
        *out_made = folder;
        return STATUS_OK;
    }
    if (errno != EEXIST || (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode)))
        FAIL(STATUS_IO, "%s: error: cannot create the folder: %s", folder, strerror(errno));
    return STATUS_OK;
}

static int is_scenario_of(const struct suite *suite, const char *name, size_t length) {
    for (size_t i = 0; i < suite->case_count; i++)
        if (strncmp(suite->cases[i].name, name, length) == 0 &&
            suite->cases[i].name[length] == '\0')
            return 1;
    return 0;
}

/* Counts the results in `folder` that belong to no scenario of the suite: it was renamed or
 * removed, or the results are of another suite. */
static enum status count_strays(const char *folder, struct suite *suite) {
    DIR *stream = opendir(folder);
    if (stream == NULL)
        FAIL(STATUS_IO, "%s: error: cannot read the folder: %s", folder, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (ends_with(entry->d_name, RESULT_END) &&
            !is_scenario_of(suite, entry->d_name, strlen(entry->d_name) - strlen(RESULT_END)))
            suite->strays++;
    closedir(stream);
    return STATUS_OK;
}

enum status suite_open_results(const char *folder, struct arena *arena, struct suite *suite) {
    if (folder == NULL) return STATUS_OK;
    if (suite->joined)
        TRY(count_strays(folder, suite));
    else
        TRY(make_named(folder, &suite->made_results));
    for (size_t i = 0; i < suite->case_count; i++) {
        char *path;
        TRY(arena_format(arena, &path, "%s/%s" RESULT_END, folder, suite->cases[i].name));
        suite->cases[i].result = path;
    }
    return STATUS_OK;
}

static enum status make_folder(const char *keep, struct arena *arena, struct suite *suite) {
    const char *parent = getenv("TMPDIR");
    char *name;
    if (keep != NULL) {
        TRY(make_named(keep, &suite->made_folder));
        suite->folder = keep;
        return STATUS_OK;
    }
    if (parent == NULL || parent[0] == '\0') parent = "/tmp";
    TRY(arena_format(arena, &name, "%s/twinstep-suite-XXXXXX", parent));
    if (mkdtemp(name) == NULL)
        FAIL(STATUS_IO,
             "%s: error: cannot create a folder for the traces: %s (TMPDIR names its "
             "parent)",
             name, strerror(errno));
    suite->folder = name;
    suite->temporary = 1;
    return STATUS_OK;
}

enum status suite_open_folder(const char *keep, struct arena *arena, struct suite *suite) {
    TRY(make_folder(keep, arena, suite));
    for (size_t i = 0; i < suite->case_count; i++) {
        char *trace;
        TRY(arena_format(arena, &trace, "%s/%s.h5", suite->folder, suite->cases[i].name));
        suite->cases[i].trace = trace;
    }
    return STATUS_OK;
}

void suite_remove_empty(const struct suite *suite) {
    if (suite->made_results != NULL) (void)rmdir(suite->made_results); /* fails if it holds files */
    if (suite->made_folder != NULL) (void)rmdir(suite->made_folder);
}

void suite_close_folder(const struct suite *suite) {
    if (!suite->temporary) return;
    for (size_t i = 0; i < suite->case_count; i++) {
        char live[4096];
        if (suite->cases[i].trace == NULL) continue;
        snprintf(live, sizeof live, "%s.part", suite->cases[i].trace);
        unlink(suite->cases[i].trace);
        unlink(live);
    }
    rmdir(suite->folder);
}

/* SPDX-License-Identifier: Apache-2.0
 * Reads the options that both verbs share. */
#define _POSIX_C_SOURCE 200809L
#include "cli/ablate/ablate_asked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate/ablate_two.h"
#include "base/number.h"
#include "scenarios/textfile.h"

enum status ablate_asked_slots(const struct options *options, struct ablate_file *file) {
    const char *text = options_value(options, ABLATE_KEY_SLOTS);
    const uint64_t most = file->device_count > 0 ? file->device_count : 64;
    uint64_t slots;
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, &slots) != STATUS_OK || slots < 1 || slots > most)
        FAIL(STATUS_INPUT, "--slots: expected a whole number from 1 to %llu%s, got \"%s\"",
             (unsigned long long)most, file->device_count > 0 ? " (the devices)" : "", text);
    if (file->shared && slots > 1)
        FAIL(STATUS_INPUT,
             "--slots: run.shared says that one process does the runs, one at a time, got %llu",
             (unsigned long long)slots);
    file->slots = slots;
    return STATUS_OK;
}

enum status ablate_asked_executor(const struct options *options, struct arena *arena,
                                  struct ablate_words *out) {
    const char *text = options_value(options, ABLATE_KEY_EXECUTOR);
    int holds = 0;
    *out = (struct ablate_words){0, NULL};
    if (text == NULL) return STATUS_OK;
    TRY(ablate_split("--executor", text, arena, out));
    for (size_t i = 0; i < out->count; i++)
        holds |= strstr(out->words[i], ABLATE_COMMAND) != NULL;
    if (!holds)
        FAIL(STATUS_INPUT,
             "--executor: expected a command with {command} in it, as in 'srun -N1 sh -c "
             "{command}', got \"%s\"",
             text);
    if (strstr(out->words[0], ABLATE_COMMAND) != NULL)
        FAIL(STATUS_INPUT,
             "--executor: {command} is a line for a shell, and the first word is the program that "
             "hands it to one, as in 'srun -N1 sh -c {command}', got \"%s\"",
             text);
    return STATUS_OK;
}

/* Says why this file cannot be started; 0 if it can. */
static int is_refused(const char *path) {
    struct stat found;
    if (stat(path, &found) != 0) return errno;
    return S_ISREG(found.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

enum status ablate_check_executor(const struct ablate_words *executor, struct arena *arena) {
    if (executor->count == 0) return STATUS_OK;
    const char *name = executor->words[0], *folders = getenv("PATH");
    int refused = ENOENT; /* as execvp says it: of several files, that one may not be started */
    if (strchr(name, '/') != NULL) {
        refused = is_refused(name);
        folders = NULL;
    } else if (folders == NULL) {
        folders = "/bin:/usr/bin"; /* what glibc's execvp looks in then */
    }
    while (folders != NULL && name[0] != '\0' && refused != 0) {
        const size_t length = strcspn(folders, ":");
        char *path;
        TRY(arena_format(arena, &path, "%.*s%s%s", (int)length, folders, length > 0 ? "/" : "",
                         name));
        const int here = is_refused(path);
        if (here == 0 || here == EACCES) refused = here;
        folders = folders[length] == ':' ? folders + length + 1 : NULL;
    }
    if (refused != 0)
        FAIL(STATUS_INPUT, "--executor: %s: cannot be started: %s", name, strerror(refused));
    return STATUS_OK;
}

enum status ablate_asked_json(const struct options *options, const struct ablate_plan *plan,
                              const char *output) {
    if (!options->json) return STATUS_OK;
    TRY(plaintext_check("--json: the working folder", plan->folder, strlen(plan->folder)));
    return plaintext_check("--json: the folder of runs", output, strlen(output));
}

static enum status take_over(const struct options *options, struct ablate_folder *folder,
                             struct arena *arena) {
    const char *host = options_value(options, ABLATE_KEY_TAKE_OVER);
    if (host == NULL) return STATUS_OK;
    TRY(ablate_claims_take_over(folder, host, arena));
    if (!options->quiet)
        fprintf(stderr, "%s: --take-over %s: %zu claims are of that machine\n",
                folder->plan->file->name, host, folder->left_count);
    return STATUS_OK;
}

enum status ablate_asked_run(struct cli *cli, const struct options *options,
                             struct ablate_folder *folder, struct ablate_running *running) {
    running->folder = folder;
    running->interrupted = cli->interrupted;
    running->quiet = options->quiet;
    TRY(take_over(options, folder, &cli->arena));
    const enum status status = ablate_run_all(running, &cli->arena);
    if (status != STATUS_OK) ablate_folder_unmake(folder, &cli->arena);
    return status == STATUS_INTERRUPTED ? ablate_fail_interrupted(cli, &cli->arena) : status;
}

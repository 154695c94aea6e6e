/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: whole verbs, from their options to what they print, in this process. Any bytes
 * must end in a result or in an error with a text.
 *
 * TWINSTEP_FUZZ_FORMAT is verbs-trace (an edited trace, edited.h; the verb is chosen by the number
 * of bytes) or verbs-text (byte 0 is the verb, the rest its file); without it both are tried. Verbs
 * that train are left out: they take seconds. The linker turns trace_open into a reading that keeps
 * rows whose check does not match, as if the checks had been mended, too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/verb.h"
#include "determinism/libraries.h"
#include "determinism/trace.h"
#include "tests/fuzz/edited.h"
#include "trainer/schema_classes.h"

#define WORDS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
enum status __wrap_trace_open(const char *path, struct arena *arena, struct trace_image **out);

enum status __wrap_trace_open(const char *path, struct arena *arena, struct trace_image **out) {
    return trace_open_damaged(path, arena, out);
}

/* F stands for the file. */
static const char *const of_traces[][WORDS] = {{"attribute", "F"},
                                               {"attribute", "F", "--json"},
                                               {"certify", "F", "--json"},
                                               {"certify", "F"},
                                               {"compare", "F", "F", "--json"},
                                               {"export", "F", "--to", "csv"},
                                               {"import", "--check", "F"},
                                               {"compare", "F", "F"},
                                               {"floor", "F", "F"},
                                               {"export", "F", "--to", "jsonl"},
                                               {"report", "F", "-o", "/dev/null", "--overwrite"}};
static const char *const of_texts[][WORDS] = {
    {"check", "F"},
    {"check", "F", "--json"},
    {"doctor", "F"},
    {"doctor", "F", "--json"},
    {"compare", "F", "F"},
    {"lr fit", "F"},
    {"lr check", "F", "--expect=hf", "--schedule=linear", "--lr=1e-3", "--steps=9"},
    {"ops", "F", "F"},
    {"rollout", "F"},
    {"data show", "F"},
    {"import", "F", "--check"},
    {"ops", "F", "F", "--json"},
    {"rollout", "F", "--json"},
    {"lr compare", "F", "F"}};

static void require(int holds, const char *what, const char *verb) {
    if (holds) return;
    fprintf(stderr, "fuzz_verbs: broken: %s: %s\n", verb, what);
    abort();
}

static const struct verb *find(const char *name) {
    for (size_t i = 0; verb_at(i) != NULL; i++)
        if (strcmp(verb_at(i)->name, name) == 0) return verb_at(i);
    require(0, "is a verb", name);
    return NULL;
}

static void say(const char *const *words, const char *path) {
    static volatile int interrupted;
    char copies[WORDS][256];
    char *argv[WORDS + 1];
    int argc = 0, code = -1;
    for (; argc < WORDS && words[argc] != NULL; argc++) {
        snprintf(copies[argc], sizeof *copies, "%s",
                 strcmp(words[argc], "F") == 0 ? path : words[argc]);
        argv[argc] = copies[argc];
    }
    argv[argc] = NULL;
    struct cli cli = {ARENA_EMPTY, NULL, &interrupted, argc, argv, {NULL, 0, 0, 0}};
    const struct verb *verb = find(words[0]);
    struct options options;
    enum status status = options_read(verb, argc, argv, &cli.arena, &options);
    require(status == STATUS_OK, status_text(), words[0]);
    status = schema_with_classes(&cli.arena, &cli.schema);
    if (status == STATUS_OK) status = verb->run(&cli, &options, &code);
    if (status == STATUS_OK)
        require(code >= 0 && code <= EXIT_UNTESTABLE, "a result has an exit status", words[0]);
    else
        require(status_text()[0] != '\0' && status != STATUS_INTERNAL, "an error has a text",
                words[0]);
    arena_close(&cli.arena);
}

static void prepare(void) {
    static int prepared;
    if (prepared++) return;
    libraries_prepare();
    json_set_alloc_funcs(arena_lend, arena_return);
    require(freopen("/dev/null", "w", stdout) != NULL, "standard output can be given away", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    prepare();
    if (size < 2) return 0;
    if (format == NULL || strcmp(format, "verbs-trace") == 0)
        say(of_traces[size % COUNT_OF(of_traces)], edited_file(data, size));
    if (format == NULL || strcmp(format, "verbs-text") == 0)
        say(of_texts[data[0] % COUNT_OF(of_texts)], edited_plain(1, data + 1, size - 1));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes must give sequences whose lists are all of one length, or an error
 * with a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT is rollout-lines or rollout-npz; without it both are tried. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rollout/arrays.h"
#include "rollout/json_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_rollout: broken: %s\n", what);
    abort();
}

static void look_at_failure(enum status status) {
    require(status_text()[0] != '\0', "an error has a text");
    require(status != STATUS_INTERNAL, "no input breaks a promise of ours");
}

/* Reads every element that a list claims to have, so that a sanitizer sees it. */
static void look_at(struct rollout_sequence *sequence) {
    volatile double sum = 0.0;
    if (sequence->list[ROLLOUT_ENGINE].given != 1 || sequence->list[ROLLOUT_TRAINER].given != 1)
        return;
    const enum status status = rollout_align(sequence);
    if (status != STATUS_OK) {
        look_at_failure(status);
        return;
    }
    for (int i = 0; i < ROLLOUT_FIELDS; i++) {
        const struct rollout_list *list = &sequence->list[i];
        for (size_t k = 0; k < list->count; k++)
            sum = sum + list->value[k];
        if (i <= ROLLOUT_TRAINER) require(list->count == sequence->count, "both sides are aligned");
        if (i == ROLLOUT_MASK && list->given == 1)
            require(list->count == sequence->count, "a mask is as long as the log-probs");
    }
    require(strlen(sequence->id) < ROLLOUT_ID_ROOM, "an id ends");
}

static void try_lines(const uint8_t *data, size_t size, struct arena *arena) {
    static const struct rollout_naming naming = {{NULL}};
    const char *names[ROLLOUT_FIELDS] = {NULL};
    struct rollout_sequence sequence = {.file = "fuzz"};
    struct rollout_line line = {
        .naming = &naming, .lone = ROLLOUT_FIELDS, .file = "fuzz", .names = names, .arena = arena};
    for (size_t at = 0; at < size;) {
        const void *end = memchr(data + at, '\n', size - at);
        line.bytes = data + at;
        line.length = end == NULL ? size - at : (size_t)((const uint8_t *)end - line.bytes);
        line.number++;
        at += line.length + 1;
        const enum status status = rollout_line_read(&line, &sequence);
        if (status == STATUS_OK)
            look_at(&sequence);
        else
            look_at_failure(status);
    }
}

static void try_npz(const uint8_t *data, size_t size, struct arena *arena) {
    static const struct rollout_naming naming = {{NULL}};
    struct rollout_sequence sequence = {.file = "fuzz"};
    struct rollout_arrays *arrays;
    enum status status = rollout_npz_open("fuzz", data, size, &naming, arena, &arrays);
    for (int rows = 0; status == STATUS_OK && rows < 1000; rows++) {
        int more;
        status = rollout_arrays_next(arrays, &sequence, &more);
        if (status != STATUS_OK) break;
        if (!more) return;
        look_at(&sequence);
    }
    if (status != STATUS_OK) look_at_failure(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    struct arena arena = ARENA_EMPTY;
    if (format == NULL || strcmp(format, "rollout-lines") == 0) try_lines(data, size, &arena);
    if (format == NULL || strcmp(format, "rollout-npz") == 0) try_npz(data, size, &arena);
    arena_close(&arena);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes must give a dump of ops that can be judged against itself and against
 * a small one, or an error with a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT is ops-debug-mode or ops-torchtitan; both readers are told by content. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dumps/births.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_dumps: broken: %s\n", what);
    abort();
}

static void look_at_failure(enum status status) {
    require(status_text()[0] != '\0', "an error has a text");
    require(status == STATUS_INPUT, "what is wrong is the input");
}

static void look_at(const struct dump *dump, const struct words *words) {
    for (size_t i = 0; i < dump->count; i++) {
        const struct dump_op *op = &dump->ops[i];
        require((uint64_t)op->first + op->inputs + op->outputs <= dump->value_count,
                "an op's values are there");
        require(op->module < words->count && op->op < words->count && op->args < words->count,
                "an op's words are there");
        require(op->ignored <= op->inputs, "no more inputs are ignored than there are");
    }
    for (size_t i = 0; i < dump->value_count; i++)
        require(dump->values[i] < words->count, "a value is a word");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char other[] = "Total captured activations: 1\n[m/op_0_mm]\n  Output hash: 1.5\n"
                                "  Input hashes: 2.5, 3\n";
    struct arena arena = ARENA_EMPTY;
    struct words words;
    struct dump *dump, *small;
    struct dump_judgement judgement;
    require(words_open(&arena, &words) == STATUS_OK, "words");
    enum status status = dump_read_bytes("fuzz", data, size, &words, &dump);
    if (status != STATUS_OK) {
        look_at_failure(status);
    } else {
        look_at(dump, &words);
        const struct dump *const floor = dump;
        status = dump_judge(dump, dump, &floor, 1, &words, &judgement);
        require(status == STATUS_OK, "a dump can be held against itself");
        require(judgement.event_count == 0, "a dump has no birth against itself");
        require(dump_read_bytes("small", other, strlen(other), &words, &small) == STATUS_OK,
                "small");
        status = dump_judge(dump, small, NULL, 0, &words, &judgement);
        if (status != STATUS_OK) look_at_failure(status);
    }
    arena_close(&arena);
    return 0;
}

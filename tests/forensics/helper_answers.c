/* SPDX-License-Identifier: Apache-2.0
 * Counts answers by their text. An answer too many fails the test: a kind of case that says
 * something else each time holds nothing. */
#include "tests/forensics/helper_answers.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_draws.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_golden.h"

static struct {
    FILE *stream;
    char *text;
    size_t size;
} said;

FILE *answers_begin(void) {
    said.stream = open_memstream(&said.text, &said.size);
    assert_non_null(said.stream);
    return said.stream;
}

void answers_end(struct answers *answers, uint32_t number) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    assert_int_equal(fclose(said.stream), 0);
    answers->hash = draws_hash(answers->hash, said.text, said.size);
    if (shown != NULL && number == (uint32_t)strtoul(shown, NULL, 10))
        print_message("%s", said.text);
    free(said.text);
}

void answers_count(struct answers *answers, const char *text) {
    for (size_t i = 0; i < ANSWERS_MOST; i++) {
        if (answers->at[i].count > 0 && strcmp(answers->at[i].text, text) != 0) continue;
        snprintf(answers->at[i].text, sizeof answers->at[i].text, "%s", text);
        answers->at[i].count++;
        return;
    }
    fail_msg("more than %d answers", ANSWERS_MOST);
}

static void hold(const struct answers *answers, const char *file, const char *name, int part) {
    FILE *const out = golden_begin(file, "%s%s", name, part ? ", the first third" : "");
    for (size_t i = 0; i < ANSWERS_MOST && answers->at[i].count > 0; i++)
        fprintf(out, "%5zu %s\n", answers->at[i].count, answers->at[i].text);
    fprintf(out, "texts %016" PRIx64 "\n", answers->hash);
    golden_end();
}

void answers_ask(const char *file, const char *const *kinds, size_t kind_count, uint32_t cases,
                 void (*ask)(uint32_t number, struct answers *answers)) {
    struct answers *const answers = (struct answers *)calloc(kind_count, sizeof *answers);
    const uint32_t share = (uint32_t)helper_size(12, 3, 1);
    assert_non_null(answers);
    for (size_t k = 0; k < kind_count; k++)
        answers[k].hash = DRAWS_HASH;
    for (uint32_t number = 0; number < cases / share; number++)
        ask(number, &answers[number % kind_count]);
    for (size_t k = 0; k < kind_count && share != 12; k++)
        hold(&answers[k], file, kinds[k], share != 1);
    free(answers);
}

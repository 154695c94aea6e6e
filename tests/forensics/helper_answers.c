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
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"

void answers_open(struct answers *answers) {
    memset(answers, 0, sizeof *answers);
    answers->hash = DRAWS_HASH;
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

void answers_hold(const struct answers *answers, const char *file, const char *name) {
    FILE *const out = golden_begin(file, "%s", name);
    for (size_t i = 0; i < ANSWERS_MOST && answers->at[i].count > 0; i++)
        fprintf(out, "%5zu %s\n", answers->at[i].count, answers->at[i].text);
    fprintf(out, "texts %016" PRIx64 "\n", answers->hash);
    golden_end();
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What two stored seals say of a trace, in every case: which of them is there and fits, whether the
 * file is being written, and whether it said that it was complete. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "determinism/trace/trace_seal.c" /* for the verdict, which no other file asks for */

enum stored { NONE, OPENING, COMPLETE, UNFINISHED, STRANGE, STORED };

static struct digest seal_of(enum stored which) {
    struct digest seal;
    memset(seal.byte, 16 * (int)which, sizeof seal.byte);
    return seal;
}

static void validate_seals(void **state) {
    (void)state;
    struct digest made[SEALS];
    made[SEAL_OPENING] = seal_of(OPENING);
    made[SEAL_COMPLETE] = seal_of(COMPLETE);
    made[SEAL_UNFINISHED] = seal_of(UNFINISHED);
    for (int first = NONE; first < STORED; first++)
        for (int second = NONE; second < STORED; second++)
            for (int how = 0; how < 4; how++) {
                const struct digest stored[2] = {seal_of((enum stored)first),
                                                 seal_of((enum stored)second)};
                const int live = how & 1, complete = how >> 1;
                struct reader reader = {.live = live};
                struct trace_image image = {.complete = complete};
                const char *broken = NULL;
                int seal = TRACE_SEAL_BEGUN, is_complete = complete;
                reader.file.name = "run.h5";
                if (first != NONE && first != OPENING) {
                    broken = "names, texts, axes or configurations";
                } else if (!live || complete) { /* of one that is being written no more is said */
                    if (second == COMPLETE) {
                        seal = TRACE_SEAL_WHOLE;
                        is_complete = 1;
                    } else if (second == UNFINISHED && !complete) {
                        seal = TRACE_SEAL_UNFINISHED;
                    } else if (second != NONE || complete) {
                        broken = "results";
                    }
                }
                const enum status status = judge(&reader, stored, made, &image);
                assert_int_equal(status, broken == NULL ? STATUS_OK : STATUS_INPUT);
                if (broken != NULL) {
                    char text[300];
                    snprintf(text, sizeof text,
                             "run.h5: damaged: %s are not those that were sealed (docs/TRACE.md): "
                             "something changed the file after it was written",
                             broken);
                    assert_string_equal(status_text(), text);
                    continue;
                }
                assert_int_equal(image.seal, seal);
                assert_int_equal(image.complete, is_complete);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_seals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

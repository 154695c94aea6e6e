/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which bit flips in an arm, part by part: how a key of the configuration is read, in which update
 * that is, whether two arms have one flip, and which activation shows it first. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_rows_corruption.c" /* for the parts, which no other file asks for */

static void validate_words(void **state) {
    (void)state;
    static const struct {
        const char *configuration, *word;
    } cases[] = {
        {"fault.op: linear\n", "linear"},
        {"fault.op: \"linear\"\n", "linear"},
        {"fault.op: 'linear'\n", "linear"},
        {"fault.op: \"\"\n", ""},
        {"fault.op: \"\n", "\""}, /* a quote alone opens nothing */
        {"fault.op: x\n", "x"},
        {"fault.op: 12\nfault.opera: 13\n", "12"},
        {"fault.opera: 13\n", ""},
        {"", ""},
        {NULL, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct trace_run run = {.plan.configuration = cases[i].configuration};
        const struct word word = word_of(&run, "fault.op");
        assert_int_equal(word.length, strlen(cases[i].word));
        assert_memory_equal(word.text, cases[i].word, strlen(cases[i].word));
    }
}

static void validate_updates(void **state) {
    (void)state;
    static const struct {
        const char *configuration;
        uint64_t update;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {"fault.update: 7\n", 7},
        {"fault.update: \"12\"\n", 12},
        {"fault.update: 18446744073709551615\n", UINT64_MAX},
        {"fault.update: 18446744073709551616\n", 0},
        {"fault.update: none\n", 0},
        {"fault.update: \"\"\n", 0},
        {"fault.update: 3x\n", 0},
        {"fault.update: 0\n", 0},
        {"fault.update: 1234567890123456789012345678901\n", 0},  /* 31 characters */
        {"fault.update: 12345678901234567890123456789012\n", 0}, /* 32: more than are copied */
        {"fault.update: 0000000000000000000000000000000000000000000000000000000000000000007\n", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct trace_run run = {.plan.configuration = cases[i].configuration};
        assert_int_equal(update_of(&run), cases[i].update);
    }
}

static void validate_one_flip(void **state) {
    (void)state;
    static const char *const keys[] = {"update", "phase",  "micro",   "layer",
                                       "op",     "tensor", "element", "bit"};
    char texts[3][400];
    for (size_t changed = 0; changed <= COUNT_OF(keys); changed++) {
        size_t length[3] = {0, 0, 0};
        for (size_t k = 0; k < COUNT_OF(keys); k++)
            for (size_t side = 0; side < 3; side++) /* one that is equal, one other, one longer */
                length[side] +=
                    (size_t)snprintf(texts[side] + length[side], sizeof texts[side] - length[side],
                                     "fault.%s: v%s\n", keys[k],
                                     k != changed || side == 0 ? "1"
                                     : side == 1               ? "2"
                                                               : "12");
        const struct trace_run runs[] = {{.plan.configuration = texts[0]},
                                         {.plan.configuration = texts[1]},
                                         {.plan.configuration = texts[2]}};
        for (size_t side = 1; side < 3; side++) {
            assert_int_equal(same_flip(&runs[0], &runs[side]), changed == COUNT_OF(keys));
            assert_int_equal(same_flip(&runs[side], &runs[0]), changed == COUNT_OF(keys));
        }
        assert_int_equal(same_flip(&runs[2], &runs[2]), 1);
    }
}

enum { SITES = 4, UPDATES = 2 };

static void validate_activations(void **state) {
    (void)state;
    static const char *const names[SITES] = {"embedding", "attention", "mlp", "logits"};
    static uint8_t digests[2][UPDATES][SITES][RECORD_DIGEST_BYTES];
    static struct record records[2][UPDATES];
    struct trace_run runs[2];
    for (unsigned mask = 0; mask < 1u << SITES; mask++) /* bit i: activation i differs */
        for (uint64_t update = 1; update <= UPDATES; update++)
            for (size_t at = 0; at < RECORD_DIGEST_BYTES; at += RECORD_DIGEST_BYTES - 1) {
                memset(digests, 5, sizeof digests);
                for (int arm = 0; arm < 2; arm++) {
                    runs[arm] = (struct trace_run){.records = records[arm], .updates = UPDATES};
                    runs[arm].plan.sites = names;
                    runs[arm].plan.shape.sites = SITES;
                    for (size_t i = 0; i < UPDATES; i++)
                        records[arm][i].sites = digests[arm][i];
                }
                const char *first = NULL;
                for (size_t i = SITES; i-- > 0;)
                    if ((mask >> i & 1u) != 0) {
                        digests[1][update - 1][i][at] ^= 1;
                        first = names[i];
                    }
                assert_ptr_equal(activation_of(&runs[0], &runs[1], update), first);
                assert_null(activation_of(&runs[0], &runs[1], update == 1 ? 2 : 1));
                runs[1].plan.shape.sites--; /* other activations are not compared */
                assert_null(activation_of(&runs[0], &runs[1], update));
                runs[0].plan.shape.sites = runs[1].plan.shape.sites = 0;
                assert_null(activation_of(&runs[0], &runs[1], update));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_words),
        cmocka_unit_test(validate_updates),
        cmocka_unit_test(validate_one_flip),
        cmocka_unit_test(validate_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

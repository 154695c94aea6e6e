/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The LR columns of further parameter groups: which names are theirs, and in which order those of
 * two logs stand, once more from a list. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/group_lr.c" /* for the names, which no other file asks for */
#include "tests/base/helper_draws.h"

static void validate_names(void **state) {
    (void)state;
    static const struct {
        const char *source;
        int32_t name; /* -1: of no group */
        uint32_t group;
    } cases[] = {
        {"lr_applied[1]", LOG_LR_APPLIED, 1},
        {"lr_applied[9]", LOG_LR_APPLIED, 9},
        {"lr_applied[10]", LOG_LR_APPLIED, 10},
        {"lr_applied[100000]", LOG_LR_APPLIED, 100000},
        {"lr_applied[100001]", LOG_LR_APPLIED, 100001},
        {"lr_applied[1000009]", LOG_LR_APPLIED, 1000009},
        {"lr_applied[1000010]", -1, 0},
        {"lr_applied[1000019]", -1, 0},
        {"lr_applied[4294967297]", -1, 0},
        {"lr_logged[2]", LOG_LR_LOGGED, 2},
        {"lr_logged[1000009]", LOG_LR_LOGGED, 1000009},
        {"lr_logged[1000010]", -1, 0},
        {"lr_applied", -1, 0},
        {"lr_applied[", -1, 0},
        {"lr_applied[]", -1, 0},
        {"lr_applied[0]", -1, 0},
        {"lr_applied[01]", -1, 0},
        {"lr_applied[-1]", -1, 0},
        {"lr_applied[1", -1, 0},
        {"lr_applied[1]]", -1, 0},
        {"lr_applied[1] ", -1, 0},
        {"lr_applied[1x]", -1, 0},
        {"lr_applied[/]", -1, 0},
        {"lr_applied[:]", -1, 0},
        {"lr_applied[1:]", -1, 0},
        {"lr_applied[1/]", -1, 0},
        {"lr_applied(1)", -1, 0},
        {"lr_applie[1]", -1, 0},
        {"lr[1]", LOG_LR_LOGGED, 1}, /* from here on names of other tools */
        {"lr/group_1", LOG_LR_LOGGED, 1},
        {"train/lr/group_12", LOG_LR_LOGGED, 12},
        {"lr-AdamW/pg2", LOG_LR_LOGGED, 2},
        {"lr/head", LOG_LR_LOGGED, GROUP_UNKNOWN},
        {"lr_1", LOG_LR_LOGGED, 1},
        {"LR_group3", LOG_LR_LOGGED, 3},
        {"learning_rate_1", LOG_LR_LOGGED, 1},
        {"learning_rate/group_0", LOG_LR_LOGGED, 0},
        {"optim/LR (group 1)", LOG_LR_LOGGED, 1},
        {"lr-AdamW-momentum", -1, 0},
        {"lr-AdamW/pg2-weight_decay", -1, 0},
        {"lr_scale", -1, 0},
        {"lr_decay_1", -1, 0},
        {"lr", -1, 0},
        {"lr_", -1, 0},
        {"lr1", -1, 0},
        {"learning_rate", -1, 0},
        {"learning_rate/head", -1, 0},
        {"slr/1", -1, 0},
        {"xlr_applied[1]", -1, 0},
        {"LR_applied[1]", -1, 0},
    };
    assert_string_equal(log_names[LOG_LR_APPLIED].name, "lr_applied");
    assert_string_equal(log_names[LOG_LR_LOGGED].name, "lr_logged");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct log_column column = {.name = LOG_OTHER, .source = cases[i].source};
        struct group_lr found = {.name = -1};
        const int is_one = read_name(&column, &found);
        if (is_one != (cases[i].name >= 0)) fail_msg("%s: %d", cases[i].source, is_one);
        if (is_one) {
            assert_int_equal(found.name, cases[i].name);
            assert_int_equal(found.group, cases[i].group);
            assert_string_equal(found.source, cases[i].source);
        }
        const struct log_column known = {.name = LOG_LOSS, .source = cases[i].source};
        assert_int_equal(read_name(&known, &found), 0); /* a column that is read as another */
    }
}

/* Of A in its order, then what B alone has; each with the columns of both. */
static void corroborate_lists(void **state) {
    (void)state;
    static const char *const sources[] = {"lr_applied[1]", "lr_logged[1]", "lr_applied[2]",
                                          "beta[1]",       "lr_applied",   "lr_logged[12]"};
    for (uint32_t number = 0; number < 4000; number++) {
        struct draws draws = {.key = UINT64_C(0x96a7), .number = number};
        struct log_column columns[2][COUNT_OF(sources)];
        struct log logs[2];
        memset(columns, 0, sizeof columns);
        memset(logs, 0, sizeof logs);
        for (size_t s = 0; s < 2; s++) {
            const uint32_t turn = draws_pick(&draws, COUNT_OF(sources));
            logs[s].columns = columns[s];
            for (size_t k = 0; k < COUNT_OF(sources); k++)
                if (draws_pick(&draws, 2) == 0)
                    columns[s][logs[s].column_count++] = (struct log_column){
                        .name = LOG_OTHER, .source = sources[(k + turn) % COUNT_OF(sources)]};
        }
        struct arena arena = ARENA_EMPTY;
        struct group_lr *found;
        size_t count, n = 0;
        assert_int_equal(group_lrs(&logs[0], &logs[1], &arena, &found, &count), STATUS_OK);
        for (size_t s = 0; s < 2; s++)
            for (size_t k = 0; k < logs[s].column_count; k++) {
                const struct log_column *const here = &columns[s][k], *there = NULL;
                for (size_t i = 0; i < logs[1 - s].column_count; i++)
                    if (strcmp(columns[1 - s][i].source, here->source) == 0)
                        there = &columns[1 - s][i];
                if (strncmp(here->source, "lr_", 3) != 0 || strchr(here->source, '[') == NULL ||
                    (s == 1 && there != NULL))
                    continue;
                assert_true(n < count);
                assert_ptr_equal(found[n].column[s], here);
                assert_ptr_equal(found[n].column[1 - s], there);
                assert_string_equal(found[n].source, here->source);
                n++;
            }
        assert_int_equal(count, n);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_names),
        cmocka_unit_test(corroborate_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

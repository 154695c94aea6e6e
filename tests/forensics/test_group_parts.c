/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The LRs of further parameter groups, told a second time: what is counted and said of every list
 * of up to three groups that agree, differ, stand in one log alone or meet at no update, applied
 * and printed; and numbers that one of two traces lacks, at every choice of four updates. Columns
 * are given as they are found, so that nothing but this file is asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_parts.h"
#include "forensics/group_lr.h"
#define group_lrs given_groups
#define compare_align_column given_align
#define compare_classify given_classify
static enum status given_groups(const struct log *a, const struct log *b, struct arena *arena,
                                struct group_lr **out, size_t *count);
static enum status given_align(const struct log *log, const struct log_column *column,
                               struct arena *arena, struct compare_side *side);
static void given_classify(struct compare_column *column);
#include "forensics/compare_groups.c" /* for numbers that are missing, as no other file asks */

enum { GROUPS = 3, UPDATES = 4, TEXT = 1024 };

/* What may be of a group. */
enum kind { AGREES, WITHIN, DIFFERS_EARLY, DIFFERS_LATE, ONLY_A, ONLY_B, NEVER_MET, KINDS };

static struct arena arena;
static struct log logs[2];
static struct compare_input input[2] = {{.log = &logs[0]}, {.log = &logs[1]}};
static struct log_column columns[GROUPS][2];
static struct group_lr listed[GROUPS];
static enum kind kinds[GROUPS];
static size_t count;
static struct series_point points[2][UPDATES];
static const struct compare_column *no_group[2] = {NULL, NULL};

/* ---- what is replaced ---- */

static enum status given_groups(const struct log *a, const struct log *b, struct arena *in,
                                struct group_lr **out, size_t *out_count) {
    assert_true(a == &logs[0] && b == &logs[1] && in == &arena);
    *out = listed;
    *out_count = count;
    return STATUS_OK;
}

static enum status given_align(const struct log *log, const struct log_column *column,
                               struct arena *in, struct compare_side *side) {
    assert_true(in == &arena);
    memset(side, 0, sizeof *side);
    side->column = column;
    side->points = points[log == &logs[1]];
    side->count = column == NULL ? 0 : UPDATES;
    return STATUS_OK;
}

static double first_of(size_t group, int side) {
    if (group == 1) return side == 0 ? 0.5 : 0.500001; /* alike in four digits */
    return 0.25 * (double)(side + 1);
}

static void given_classify(struct compare_column *column) {
    const struct log_column *const found =
        column->side[0].column != NULL ? column->side[0].column : column->side[1].column;
    for (size_t g = 0; g < GROUPS; g++) {
        if (found != &columns[g][0] && found != &columns[g][1]) continue;
        column->class_of = kinds[g] == AGREES         ? COMPARE_EQUAL
                           : kinds[g] == WITHIN       ? COMPARE_WITHIN
                           : kinds[g] <= DIFFERS_LATE ? COMPARE_DIFFERENT
                                                      : COMPARE_ABSENT;
        if (column->class_of != COMPARE_DIFFERENT) continue;
        column->first_update = kinds[g] == DIFFERS_EARLY ? 3 : 5;
        for (int s = 0; s < 2; s++)
            column->first[s].value = first_of(g, s);
    }
}

/* ---- what is said ---- */

static size_t add(char *to, size_t at, const char *format, ...) TWINSTEP_PRINTF(3, 4);
static size_t add(char *to, size_t at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(to + at, TEXT - at, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && at + (size_t)length < TEXT);
    return at + (size_t)length;
}

static size_t add_name(char *to, size_t at, size_t g) {
    if (listed[g].group == GROUP_UNKNOWN) return add(to, at, "the column %s", listed[g].source);
    return add(to, at, "group %u (%s)", listed[g].group, listed[g].source);
}

struct sums {
    size_t both, differ, alone;
    int first; /* the group that differs first; -1: none */
};

static struct sums sum_of(int32_t name) {
    struct sums sums = {0, 0, 0, -1};
    for (size_t g = 0; g < count; g++) {
        if (listed[g].name != name) continue;
        sums.both += kinds[g] <= DIFFERS_LATE;
        sums.alone += kinds[g] == ONLY_A || kinds[g] == ONLY_B;
        if (kinds[g] != DIFFERS_EARLY && kinds[g] != DIFFERS_LATE) continue;
        sums.differ++;
        if (sums.first < 0 ||
            (kinds[g] == DIFFERS_EARLY && kinds[(size_t)sums.first] == DIFFERS_LATE))
            sums.first = (int)g;
    }
    return sums;
}

static size_t say(char *to, size_t at, int32_t name) {
    const struct sums sums = sum_of(name);
    const char *const kind = name == LOG_LR_APPLIED ? "LR" : "printed LR";
    if (sums.first >= 0) {
        const size_t g = (size_t)sums.first;
        at = add(to, at, " The %s of ", kind);
        at = add_name(to, at, g);
        /* Of two numbers that look alike in four digits all digits are told. */
        at = add(to, at, " differs from update %d on (%s against %s).",
                 kinds[g] == DIFFERS_EARLY ? 3 : 5, g == 1 ? "0.5" : "0.25",
                 g == 1 ? "0.500001" : "0.5");
        if (sums.both > 1)
            at = add(to, at, " Of the %zu further groups in both, %zu differ%s.", sums.both,
                     sums.differ, sums.differ == 1 ? "s" : "");
    } else if (sums.both == 1)
        at = add(to, at, " The %s of the further group agrees.", kind);
    else if (sums.both > 1)
        at = add(to, at, " The %ss of all %zu further groups in both agree.", kind, sums.both);
    for (int s = 0; s < 2; s++) {
        size_t alone = 0, first = 0;
        for (size_t g = count; g-- > 0;)
            if (listed[g].name == name && kinds[g] == (s == 0 ? ONLY_A : ONLY_B)) {
                alone++;
                first = g;
            }
        if (alone == 0) continue;
        at = add(to, at, " Only %c has the %s of ", "AB"[s], kind);
        at = add_name(to, at, first);
        at = add(to, at,
                 alone > 1 ? ", and of more, so they were not compared."
                           : ", so it was not compared.");
    }
    return at;
}

static void corroborate_groups(void **state) {
    (void)state;
    static const char *const sources[2][GROUPS] = {
        {"lr_applied[1]", "lr_applied[2]", "lr_applied[3]"}, {"lr[1]", "lr/head", "lr[3]"}};
    static const size_t cases[] = {1, 2 * KINDS, 4 * KINDS * KINDS, 8 * KINDS * KINDS * KINDS};
    size_t differ = 0, quiet = 0;
    logs[0].format = logs[1].format = "csv";
    for (count = 0; count <= GROUPS; count++)
        for (size_t number = 0; number < cases[count]; number++) {
            struct compare_lr lr = {.state = COMPARE_LR_NONE};
            char words[TEXT] = "";
            size_t left = number, at = 0;
            arena_close(&arena);
            arena = (struct arena)ARENA_EMPTY;
            for (size_t g = 0; g < count; g++) {
                const int printed = left % 2 == 1;
                kinds[g] = (enum kind)(left / 2 % KINDS);
                left /= 2 * KINDS;
                listed[g] =
                    (struct group_lr){.name = printed ? LOG_LR_LOGGED : LOG_LR_APPLIED,
                                      .group = printed && g == 1 ? GROUP_UNKNOWN : (uint32_t)g + 1,
                                      .source = sources[printed][g],
                                      .column = {kinds[g] == ONLY_B ? NULL : &columns[g][0],
                                                 kinds[g] == ONLY_A ? NULL : &columns[g][1]}};
            }
            const struct sums applied = sum_of(LOG_LR_APPLIED), printed = sum_of(LOG_LR_LOGGED);
            const int tells_printed = applied.both == 0;
            at = say(words, 0, LOG_LR_APPLIED);
            if (printed.differ > 0 || tells_printed) (void)say(words, at, LOG_LR_LOGGED);
            const int first = applied.first >= 0 ? applied.first
                              : tells_printed    ? printed.first
                                                 : -1;
            assert_int_equal(compare_groups(input, no_group, &arena, &lr), STATUS_OK);
            assert_int_equal(lr.group_count, count);
            assert_int_equal(lr.groups_differ, applied.differ + printed.differ);
            assert_int_equal(lr.groups_alone, applied.alone + (tells_printed ? printed.alone : 0));
            if (strcmp(lr.groups_words, words) != 0)
                fail_msg("case %zu of %zu: %s, not %s", number, count, lr.groups_words, words);
            if (first < 0)
                assert_null(lr.group_first);
            else
                assert_ptr_equal(lr.group_first, &lr.groups[first]);
            for (size_t g = 0; g < count; g++) {
                assert_int_equal(lr.groups[g].group, listed[g].group);
                assert_string_equal(lr.groups[g].source, listed[g].source);
                assert_int_equal(lr.groups[g].is_applied, listed[g].name == LOG_LR_APPLIED);
                assert_int_equal(lr.groups[g].column.name, LOG_OTHER);
            }
            differ += first >= 0;
            quiet += first < 0;
        }
    assert_true(differ > 200 && quiet > 200);
}

/* ---- numbers that one of two traces lacks ---- */

static struct series_point kept[4][UPDATES];

/* Fills a side with those updates of which the bits are set. */
static void fill(struct compare_side *side, size_t place, unsigned bits) {
    static struct log_column any;
    memset(side, 0, sizeof *side);
    side->column = &any;
    side->points = kept[place];
    for (unsigned u = 0; u < UPDATES; u++)
        if ((bits >> u & 1) != 0)
            kept[place][side->count++] = (struct series_point){
                .update = 10 + u, .value = (double)(100 * place + u), .quantum = 0.25};
}

static void corroborate_missing(void **state) {
    (void)state;
    size_t missing = 0;
    for (unsigned first = 0; first < 16; first++)
        for (unsigned a = 0; a < 16; a++)
            for (unsigned b = 0; b < 16; b++)
                for (uint64_t before = 9; before < 14; before++) {
                    struct compare_column of_first = {0}, column = {.pairs = 2};
                    /* All rows of the first group stand in B, and some of them in A. */
                    fill(&of_first.side[0], 0, first);
                    fill(&of_first.side[1], 1, 15);
                    fill(&column.side[0], 2, a);
                    fill(&column.side[1], 3, b);
                    if (before > 9) { /* a number of a pair that differs */
                        column.different = 1;
                        column.class_of = COMPARE_DIFFERENT;
                        column.first_update = before;
                        column.first[0].value = column.first[1].value = -7.0;
                    }
                    count_missing(&of_first, &column);
                    const unsigned apart = first & (a ^ b);
                    size_t lacks = 0;
                    uint64_t at = 0;
                    for (unsigned u = UPDATES; u-- > 0;)
                        if ((apart >> u & 1) != 0) {
                            lacks++;
                            at = 10 + u;
                        }
                    assert_int_equal(column.pairs, 2 + lacks);
                    assert_int_equal(column.different, (before > 9) + lacks);
                    missing += lacks;
                    if (lacks == 0) {
                        assert_int_equal(column.class_of, before > 9 ? COMPARE_DIFFERENT : 0);
                        assert_true(column.largest == 0.0);
                        assert_int_equal(column.first_update, before > 9 ? before : 0);
                        continue;
                    }
                    assert_int_equal(column.class_of, COMPARE_DIFFERENT);
                    assert_true(isinf(column.largest));
                    if (before > 9 && before <= at) {
                        assert_int_equal(column.first_update, before);
                        assert_true(column.first[0].value == -7.0 && column.first[1].value == -7.0);
                        continue;
                    }
                    assert_int_equal(column.first_update, at);
                    for (int s = 0; s < 2; s++) {
                        const int has = ((s == 0 ? a : b) >> (at - 10) & 1) != 0;
                        const struct series_point *const point = &column.first[s];
                        assert_int_equal(point->update, at);
                        assert_true(has ? point->value ==
                                              (double)(200 + 100 * s) + (double)(at - 10)
                                        : isnan(point->value));
                        assert_true(point->quantum == (has ? 0.25 : 0.0));
                    }
                }
    assert_true(missing > 1000);
}

/* Of two traces alone, of a group in both, and where the first group has a column. */
static void validate_when_numbers_are_missing(void **state) {
    (void)state;
    struct compare_column of_first = {0};
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int has_first = 0; has_first < 4; has_first++)
                for (int printed = 0; printed < 2; printed++)
                    for (enum kind kind = AGREES; kind <= NEVER_MET;
                         kind = (enum kind)(kind + ONLY_A)) {
                        struct compare_lr lr = {.state = COMPARE_LR_NONE};
                        logs[0].format = a ? "trace" : "csv";
                        logs[1].format = b ? "trace" : "traces";
                        fill(&of_first.side[0], 0, 15);
                        fill(&of_first.side[1], 1, 15);
                        /* The group has the first one's rows in A, and none of them in B. */
                        for (size_t u = 0; u < UPDATES; u++) {
                            points[0][u].update = 10 + u;
                            points[1][u].update = 20 + u;
                        }
                        count = 1;
                        kinds[0] = kind;
                        listed[0] = (struct group_lr){
                            .name = printed ? LOG_LR_LOGGED : LOG_LR_APPLIED,
                            .group = 1,
                            .source = "lr",
                            .column = {&columns[0][0], kind == ONLY_A ? NULL : &columns[0][1]}};
                        /* The applied one of the first group, then the printed one. */
                        const struct compare_column *const of[2] = {
                            (has_first & 1) != 0 ? &of_first : NULL,
                            (has_first & 2) != 0 ? &of_first : NULL};
                        assert_int_equal(compare_groups(input, of, &arena, &lr), STATUS_OK);
                        const int expected =
                            a && b && kind == AGREES && (has_first >> printed & 1) != 0;
                        assert_int_equal(lr.groups[0].column.different, expected ? 4 : 0);
                    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_groups),
        cmocka_unit_test(corroborate_missing),
        cmocka_unit_test(validate_when_numbers_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

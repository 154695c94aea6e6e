/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Floor files of every size, from none of anything to several of each, in which no two numbers and
 * no two words are alike: each must come back in its own place. A number that no floor can have is
 * refused wherever it stands, by the whole text. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/real.h"
#include "determinism/floor_file.h"
#include "determinism/trace.h"
#include "tests/base/helper_draws.h"

enum { STEPS = 4, PAIRS = 4, TENSORS = 3, STRATA = 4, FILES = 24, ARRAYS = FLOOR_COLUMNS + 4 };

static char folder[] = "/tmp/twinstep-floor-rows-XXXXXX";
static char path[sizeof folder + 16];

static int enter(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/f.h5", folder);
    return 0;
}

static int leave(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static struct made {
    double pairs[FLOOR_COLUMNS][PAIRS * STEPS], twin[2][STEPS * TENSORS], share[STRATA][STEPS];
    char words[STRATA][FLOOR_WORDS][24], names[TENSORS][24];
    const char *name[TENSORS];
    struct floor_stratum strata[STRATA];
    struct trace_attribute environment[2];
    struct floor_file file;
} made;

static double next_number(void) {
    static double number = 0.125;
    return number += 1.0;
}

static void fill(uint64_t steps, uint64_t pairs, uint32_t tensors, uint32_t strata) {
    memset(&made, 0, sizeof made);
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        for (size_t i = 0; i < PAIRS * STEPS; i++)
            made.pairs[c][i] = next_number();
    for (size_t i = 0; i < STEPS * TENSORS; i++)
        for (int t = 0; t < 2; t++)
            made.twin[t][i] = next_number();
    for (size_t s = 0; s < STRATA; s++) {
        for (size_t k = 0; k < STEPS; k++)
            made.share[s][k] = next_number();
        for (int w = 0; w < FLOOR_WORDS; w++) {
            snprintf(made.words[s][w], sizeof made.words[s][w], "word %zu of %d", s, w);
            made.strata[s].words[w] = made.words[s][w];
        }
        for (int f = 0; f < FLOOR_FIGURES; f++)
            made.strata[s].figures[f] = next_number();
        made.strata[s].share = made.share[s];
    }
    for (size_t t = 0; t < TENSORS; t++) {
        snprintf(made.names[t], sizeof made.names[t], "tensor %zu", t);
        made.name[t] = made.names[t];
    }
    made.environment[0] = (struct trace_attribute){"env", "cpu", "one"};
    made.environment[1] = (struct trace_attribute){"env/volatile", "host", "two"};
    made.file = (struct floor_file){
        .scenario = "name",
        .arm = "arm",
        .text = "text\n",
        .configuration = "configuration\n",
        .determines = "digest",
        .protocol = "protocol",
        .steps = steps,
        .pairs = pairs,
        .strata = made.strata,
        .stratum_count = strata,
        .twin = {tensors, made.name, "weight", made.twin[0], made.twin[1]},
        .environment = made.environment,
        .environment_count = 2,
    };
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        made.file.columns[c] = made.pairs[c];
}

static void hold_pairs(const struct floor_file *back, uint32_t number) {
    const struct floor_file *const f = &made.file;
    for (int c = 0; c < FLOOR_COLUMNS; c++) {
        if ((back->columns[c] == NULL) != (f->columns[c] == NULL))
            fail_msg("file %u: column %d", number, c);
        if (f->columns[c] == NULL || f->pairs == 0) continue;
        assert_memory_equal(back->columns[c], f->columns[c], f->pairs * f->steps * sizeof(double));
        for (uint64_t step = 1; step <= f->steps; step++) {
            double at[PAIRS + 1] = {0.0, 0.0, 0.0, 0.0, -7.0};
            at[f->pairs] = -7.0;
            floor_file_at(back, (enum floor_column)c, step, at);
            for (uint64_t p = 0; p < f->pairs; p++)
                assert_true(at[p] == made.pairs[c][p * f->steps + step - 1]);
            assert_true(at[f->pairs] == -7.0);
        }
    }
}

static void hold_rows(const struct floor_file *back) {
    const struct floor_file *const f = &made.file;
    assert_int_equal(back->stratum_count, f->stratum_count);
    for (uint32_t s = 0; s < f->stratum_count; s++) {
        for (int w = 0; w < FLOOR_WORDS; w++)
            assert_string_equal(back->strata[s].words[w], made.words[s][w]);
        assert_memory_equal(back->strata[s].figures, made.strata[s].figures,
                            sizeof made.strata[s].figures);
        assert_memory_equal(back->strata[s].share, made.share[s], f->steps * sizeof(double));
    }
    assert_int_equal(back->twin.tensors, f->twin.tensors);
    for (uint32_t t = 0; t < f->twin.tensors; t++)
        assert_string_equal(back->twin.names[t], made.names[t]);
    const size_t bytes = f->steps * f->twin.tensors * sizeof(double);
    if (bytes > 0) assert_memory_equal(back->twin.gradient, made.twin[0], bytes);
    if (bytes > 0) assert_memory_equal(back->twin.distance, made.twin[1], bytes);
}

/* The attributes of a file are its own, those of another writer, and those of the environment. */
static void hold_attributes(const struct floor_file *back) {
    const int foreign = made.file.writer != NULL;
    size_t found = 0, own = 0;
    assert_true(back->environment_count >= 11u + (foreign ? 3 : 0));
    for (uint32_t i = 0; i < back->environment_count; i++) {
        const struct trace_attribute *const a = &back->environment[i];
        own += strcmp(a->path, "noise") == 0;
        for (size_t e = 0; e < 2; e++)
            found += strcmp(a->path, made.environment[e].path) == 0 &&
                     strcmp(a->name, made.environment[e].name) == 0 &&
                     strcmp(a->text, made.environment[e].text) == 0;
    }
    assert_int_equal(found, 2);
    assert_int_equal(own, 9 + (foreign ? 3 : 0));
}

static void verify_every_size(void **state) {
    (void)state;
    for (uint32_t number = 0; number < FILES; number++) {
        struct draws draws = {.key = 4711, .number = number};
        struct arena arena = ARENA_EMPTY;
        struct floor_file back;
        const uint64_t steps = 1 + draws_pick(&draws, STEPS);
        const uint64_t pairs = draws_pick(&draws, PAIRS + 1);
        const uint32_t tensors = draws_pick(&draws, TENSORS + 1);
        fill(steps, pairs, tensors, draws_pick(&draws, STRATA + 1));
        const uint32_t writer = draws_pick(&draws, 3), exact = draws_pick(&draws, 2);
        if (writer > 0) {
            made.file.writer = "torch";
            made.file.exact = (int)exact;
            made.file.columns[FLOOR_DISTANCE] = NULL;
            if (writer == 2) made.file.columns[FLOOR_GRAD_NORM] = NULL;
        } else {
            made.file.exact = (int)exact; /* which this program never says of its own runs */
        }
        made.file.parts = number % 2 == 0 ? "fast\tf32\tinstance\tlayer\tl\t9\t1\t1e-7\t3\n" : NULL;
        if (floor_file_write(path, &made.file, 1, &arena) != STATUS_OK ||
            floor_file_open(path, &arena, &back) != STATUS_OK)
            fail_msg("file %u: %s", number, status_text());
        assert_true(back.steps == steps && back.pairs == pairs);
        assert_string_equal(back.scenario, "name");
        assert_string_equal(back.arm, "arm");
        assert_string_equal(back.text, "text\n");
        assert_string_equal(back.configuration, "configuration\n");
        assert_string_equal(back.determines, "digest");
        assert_string_equal(back.protocol, "protocol");
        assert_string_equal(back.twin.weight, "weight");
        assert_string_equal(back.parts, made.file.parts == NULL ? "" : made.file.parts);
        assert_int_equal(back.writer != NULL, writer > 0);
        if (writer > 0) assert_string_equal(back.writer, "torch");
        assert_int_equal(back.exact, writer > 0 && exact);
        hold_pairs(&back, number);
        hold_rows(&back);
        hold_attributes(&back);
        arena_close(&arena);
    }
}

/* The place of array `a` of a file of full size, and how many numbers it has. */
static double *array_at(size_t a, size_t *out_count) {
    if (a < FLOOR_COLUMNS) {
        *out_count = PAIRS * STEPS;
        return made.pairs[a];
    }
    *out_count = STEPS * TENSORS;
    return made.twin[a - FLOOR_COLUMNS - 2];
}

static void put_number(size_t array, size_t at, double x) {
    size_t count;
    if (array == FLOOR_COLUMNS)
        made.strata[at / FLOOR_FIGURES].figures[at % FLOOR_FIGURES] = x;
    else if (array == FLOOR_COLUMNS + 1)
        made.share[at / STEPS][at % STEPS] = x;
    else
        array_at(array, &count)[at] = x;
}

static void validate_numbers(void **state) {
    (void)state;
    static const struct {
        double x;
        const char *said; /* NULL: a floor may hold it */
    } numbers[] = {{-1.5, "-1.5"},
                   {(double)NAN, "nan"},
                   {-(double)INFINITY, "-inf"},
                   {(double)INFINITY, NULL},
                   {0.0, NULL}};
    for (size_t array = 0; array < ARRAYS; array++) {
        size_t count = array == FLOOR_COLUMNS ? STRATA * FLOOR_FIGURES : STRATA * STEPS;
        if (array < FLOOR_COLUMNS || array > FLOOR_COLUMNS + 1) (void)array_at(array, &count);
        const size_t places[] = {0, count - 1};
        for (size_t p = 0; p < COUNT_OF(places); p++)
            for (size_t n = 0; n < COUNT_OF(numbers); n++) {
                struct arena arena = ARENA_EMPTY;
                struct floor_file back;
                char said[200];
                fill(STEPS, PAIRS, TENSORS, STRATA);
                put_number(array, places[p], numbers[n].x);
                const int is_share = array == FLOOR_COLUMNS + 1 && isnan(numbers[n].x);
                if (floor_file_write(path, &made.file, 1, &arena) != STATUS_OK)
                    fail_msg("%s", status_text());
                snprintf(said, sizeof said,
                         "%s: damaged: array %zu: expected distances >= 0, got %s", path, array,
                         numbers[n].said == NULL ? "" : numbers[n].said);
                const enum status status = floor_file_open(path, &arena, &back);
                if (numbers[n].said == NULL || is_share) {
                    if (status != STATUS_OK) fail_msg("array %zu: %s", array, status_text());
                } else if (status != STATUS_INPUT || strcmp(status_text(), said) != 0) {
                    fail_msg("array %zu, number %zu: status %d: %s", array, places[p], (int)status,
                             status_text());
                }
                arena_close(&arena);
            }
    }
}

/* A control character in a word would be taken for the end of a word or of a line. */
static void validate_words(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct floor_file back;
    fill(2, 1, 1, 2);
    made.strata[1].words[WORD_VARIANT] = "a\001b\037c d";
    made.strata[0].words[WORD_MODE] = "";
    made.strata[1].words[WORD_WORST_TENSOR] = "";
    assert_int_equal(floor_file_write(path, &made.file, 1, &arena), STATUS_OK);
    assert_int_equal(floor_file_open(path, &arena, &back), STATUS_OK);
    assert_string_equal(back.strata[1].words[WORD_VARIANT], "a b c d");
    assert_string_equal(back.strata[0].words[WORD_MODE], "");
    assert_string_equal(back.strata[0].words[WORD_DTYPE], made.words[0][WORD_DTYPE]);
    assert_string_equal(back.strata[1].words[WORD_WORST_TENSOR], "");
    static const char *const broken[] = {"one\ttwo", "one\nmore"};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        made.strata[1].words[WORD_VARIANT] = broken[i];
        assert_int_equal(floor_file_write(path, &made.file, 1, &arena), STATUS_OK);
        assert_int_equal(floor_file_open(path, &arena, &back), STATUS_INPUT);
        assert_non_null(strstr(status_text(), "damaged, or not a floor file: noise/strata"));
    }
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_size),
        cmocka_unit_test(validate_numbers),
        cmocka_unit_test(validate_words),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

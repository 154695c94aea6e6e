/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What `lr check` answers where the expectation and the training are unlike in one number, or in
 * none: columns of one row to fourteen, asked with all numbers given, some of them, or none, of the
 * contract that made them or of another one. What was made as it is asked for is never refused, and
 * what is not never passes with all numbers given and a row that shows it.
 *
 * tests/golden/forensics/fit_asked.txt holds the verdicts, and of each answer one number made of
 * all that is said (FNV-1a). With TWINSTEP_SHOW=CASE the answer to a case is printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

/* Of the numbers below 700 those whose answers take least time: all of them take a minute. */
static const uint32_t cases[] = {
    0,   1,   2,   3,   4,   7,   12,  15,  23,  24,  26,  27,  29,  30,  33,  35,  36,  41,  43,
    48,  50,  52,  58,  60,  61,  62,  63,  66,  70,  71,  72,  74,  76,  78,  83,  84,  87,  88,
    91,  96,  100, 101, 104, 107, 111, 112, 113, 116, 119, 120, 122, 124, 128, 129, 132, 136, 140,
    143, 144, 146, 147, 148, 151, 154, 156, 160, 161, 164, 168, 170, 173, 175, 176, 177, 180, 184,
    186, 191, 192, 194, 195, 196, 199, 204, 207, 211, 220, 221, 222, 227, 228, 230, 234, 240, 242,
    244, 245, 248, 251, 252, 256, 257, 258, 259, 263, 264, 266, 268, 269, 270, 272, 274, 281, 284,
    288, 292, 297, 299, 300, 302, 304, 305, 307, 308, 311, 312, 313, 316, 317, 318, 321, 324, 328,
    329, 332, 333, 335, 336, 340, 344, 345, 347, 350, 353, 357, 359, 360, 363, 364, 365, 368, 370,
    371, 372, 374, 383, 384, 392, 393, 394, 395, 399, 401, 402, 403, 407, 408, 410, 412, 419, 420,
    424, 428, 429, 431, 432, 433, 434, 436, 437, 438, 442, 443, 444, 446, 449, 458, 459, 460, 461,
    462, 464, 466, 467, 468, 473, 477, 479, 480, 482, 484, 485, 486, 492, 494, 496, 497, 501, 502,
    504, 507, 508, 509, 512, 513, 514, 515, 516, 518, 519, 520, 524, 527, 528, 531, 532, 534, 535,
    539, 540, 542, 543, 544, 545, 551, 552, 561, 563, 564, 568, 569, 571, 574, 576, 578, 579, 581,
    583, 588, 590, 592, 596, 599, 600, 601, 602, 605, 609, 612, 614, 616, 620, 624, 626, 627, 628,
    632, 633, 635, 636, 638, 639, 640, 643, 647, 648, 650, 659, 660, 662, 664, 670, 671, 672, 678,
    679, 681, 684, 695, 696};

enum other {
    NONE,
    PEAK,
    WARMUP,
    TOTAL,
    FLOOR,
    ONE_AHEAD,
    ONE_BEHIND,
    TWO_BEHIND,
    STANDS,
    HALF,
    LAST_ROW,
    SKIPPED,
    OTHERS
};
static const char *const others[] = {"nothing", "peak",  "warm-up",  "total",
                                     "floor",   "ahead", "behind",   "two behind",
                                     "stands",  "half",  "last row", "skipped"};

static const struct kind {
    const char *contract, *schedule, *format;
    int has_floor;
} kinds[] = {
    {"hf", "linear", "hf-trainer-state", 0}, {"hf", "cosine", NULL, 0},
    {"hf", "cosine_with_min_lr", NULL, 1},   {"hf", "polynomial", "hf-trainer-state", 0},
    {"hf", "constant_with_warmup", NULL, 0}, {"hf", "constant", NULL, 0},
    {"hf-4.50", "linear", NULL, 0},          {"olmo-core", "linear", NULL, 0},
    {"megatron", "cosine", "megatron", 1},   {"megatron", "linear", "megatron", 1},
    {"hf-x-processes", "linear", NULL, 0},   {"deepspeed-warmup", NULL, NULL, 0},
    {"torchtitan", NULL, NULL, 0},
};

struct trial {
    struct arena arena;
    struct log *log;
    struct contract_request made, asked;
    struct contract_plan plan;
    const struct kind *kind;
    enum other other;
    int same_contract, applied;
    uint32_t given; /* bits of enum fit_number */
    uint64_t first, every, rows;
    uint64_t skipped[1];
};

static double logged(const struct trial *t, size_t row) {
    const uint64_t k = t->first + t->every * row;
    const uint64_t middle = t->first + t->every * (t->rows / 2);
    switch (t->other) {
    case ONE_AHEAD:
        return contract_logged(&t->plan, k + 1);
    case ONE_BEHIND:
        return contract_logged(&t->plan, k > 1 ? k - 1 : 1);
    case TWO_BEHIND:
        return contract_logged(&t->plan, k > 2 ? k - 2 : 1);
    case STANDS:
        return contract_logged(&t->plan, k < middle ? k : middle);
    case HALF:
        return contract_logged(&t->plan, 1 + (k - 1) / 2);
    case LAST_ROW:
        return contract_logged(&t->plan, k) * (row + 1 == t->rows ? 0.75 : 1.0);
    default:
        return contract_logged(&t->plan, k);
    }
}

static void draw_trial(uint32_t number, struct trial *t) {
    static const int prints[] = {PRINT_EXACT, PRINT_E6, PRINT_E2, PRINT_BINARY32};
    static const uint64_t gaps[] = {1, 1, 1, 7, 25};
    struct draws draws = {.key = UINT64_C(0xa58ed), .number = number};
    memset(t, 0, sizeof *t);
    t->other = (enum other)(number % OTHERS);
    t->kind = &kinds[draws_pick(&draws, COUNT_OF(kinds))];
    t->every = gaps[draws_pick(&draws, COUNT_OF(gaps))];
    t->first = draws_pick(&draws, 2) == 0 ? 1 : t->every * (1 + draws_pick(&draws, 4));
    t->rows = 1 + draws_pick(&draws, 14);
    t->same_contract = draws_pick(&draws, 3) > 0;
    t->applied = (int)draws_pick(&draws, 2);
    t->given = draws_pick(&draws, 4) > 0 ? 31 : draws_pick(&draws, 32);
    struct contract_request *const made = &t->made;
    contract_request_init(made);
    made->contract = contract_find(t->kind->contract);
    assert_non_null(made->contract);
    made->schedule = t->kind->schedule;
    made->lr = 2e-5;
    made->warmup = (double)(t->every * draws_pick(&draws, 5));
    made->steps = t->every * (t->rows + 6 + draws_pick(&draws, 8));
    made->processes = 2;
    made->global_batch = 8;
    made->min_lr_ratio = t->kind->has_floor ? 0.1 : real_nan_f64();
    t->asked = *made;
    if (t->other == PEAK) made->lr = 3e-5;
    if (t->other == WARMUP) made->warmup += (double)t->every;
    if (t->other == TOTAL) made->steps += t->every;
    if (t->other == FLOOR && t->kind->has_floor) made->min_lr_ratio = 0.2;
    if (t->other == SKIPPED) {
        t->skipped[0] = t->first + t->every * (t->rows / 2);
        made->skipped = t->skipped;
        made->skipped_count = 1;
        if (draws_pick(&draws, 2) == 0) {
            t->asked.skipped = t->skipped;
            t->asked.skipped_count = 1;
        }
    }
    assert_int_equal(contract_resolve(made, &t->arena, &t->plan), STATUS_OK);
    const struct kind *const kind = &kinds[draws_pick(&draws, COUNT_OF(kinds))];
    if (!t->same_contract) t->asked.contract = contract_find(kind->contract);
    if (!t->same_contract) t->asked.schedule = kind->schedule;
    if (!t->same_contract && !kind->has_floor) t->asked.min_lr_ratio = real_nan_f64();
    t->same_contract = t->asked.contract == made->contract && t->asked.schedule == made->schedule;
    if ((t->given & FIT_OF_LR) == 0) t->asked.lr = 0.0;
    if ((t->given & FIT_OF_WARMUP) == 0) t->asked.warmup = real_nan_f64();
    if ((t->given & FIT_OF_STEPS) == 0) t->asked.steps = 0;
    if ((t->given & FIT_OF_FLOOR) == 0) t->asked.min_lr_ratio = real_nan_f64();
    if ((t->given & FIT_OF_SCHEDULE) == 0) t->asked.schedule = NULL;
    const int print = prints[draws_pick(&draws, COUNT_OF(prints))];
    t->log = helper_log(&t->arena, t->rows);
    if (t->kind->format != NULL) t->log->format = t->kind->format;
    t->log->max_steps = draws_pick(&draws, 2) == 0 ? made->steps : 0;
    for (size_t row = 0; row < t->rows; row++) {
        const double lr = logged(t, row);
        t->log->step[row] = (int64_t)(t->first + t->every * row);
        helper_put(&t->arena, t->log, LOG_LR_LOGGED, row, lr, lr > 0.0 ? print : PRINT_EXACT);
    }
}

/* Tells whether some row is what no expectation of all numbers prints. */
static int shows(const struct trial *t, const struct series *series) {
    struct arena arena = ARENA_EMPTY;
    struct contract_plan plan;
    int shown = 0;
    if (contract_resolve(&t->asked, &arena, &plan) == STATUS_OK)
        for (size_t i = 0; i < series->count; i++) {
            const struct series_point *const point = &series->points[i];
            shown |= fabs(contract_logged(&plan, point->update) - point->value) >
                     0.51 * point->quantum + 1e-9;
        }
    arena_close(&arena);
    return shown;
}

static void ask(FILE *out, uint32_t number) {
    static const char *const verdicts[] = {"pass", "fail", "undecided"};
    const char *const shown = getenv("TWINSTEP_SHOW");
    struct trial t;
    struct series series;
    struct fit_known known;
    struct fit_check check;
    char *bytes = NULL;
    size_t size = 0;
    draw_trial(number, &t);
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, t.log, &t.arena), STATUS_OK);
    known.request = t.asked;
    assert_int_equal(series_of(t.log, log_column_of(t.log, LOG_LR_LOGGED), &t.arena, &series),
                     STATUS_OK);
    if (fit_check(&series, &known, t.applied, &t.arena, &check) != STATUS_OK) {
        fprintf(out, "%u: refused\n", number);
        arena_close(&t.arena);
        return;
    }
    FILE *const text = open_memstream(&bytes, &size);
    assert_non_null(text);
    golden_check(text, &check, 3);
    assert_int_equal(fclose(text), 0);
    fprintf(out, "%u: %s, %s of %s: %s%s%s; %016llx\n", number, others[t.other],
            t.same_contract ? "asked" : "another asked", t.kind->contract, verdicts[check.verdict],
            check.bug != NULL ? " " : "", check.bug != NULL ? check.bug : "",
            (unsigned long long)draws_hash(DRAWS_HASH, bytes, size));
    if (shown != NULL && number == (uint32_t)strtoul(shown, NULL, 10)) print_message("%s", bytes);
    if (t.other == NONE && t.same_contract && check.verdict == FIT_FAIL)
        fail_msg("case %u: %s", number, bytes);
    if (check.fitted == 0 && check.verdict == FIT_PASS && t.asked.skipped_count == 0 &&
        !fit_skips_any(check.expected) && shows(&t, &series))
        fail_msg("case %u passes: %s", number, bytes);
    free(bytes);
    arena_close(&t.arena);
}

static void validate_what_is_asked(void **state) {
    (void)state;
    FILE *const out = golden_begin("fit_asked.txt", "%zu questions", COUNT_OF(cases));
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ask(out, cases[i]);
    golden_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

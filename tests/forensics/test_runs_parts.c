/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a comparison takes from its columns, wherever in the list they stand, and from the rows of
 * two recorded runs, once more for random lists and rows; and why no root of two can be compared,
 * by the whole text. What other files say of two runs is replaced. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define ledger_compare given_ledger
#define ledger_words given_ledger_words
#define runs_unlike given_unlike
#define runs_comparable given_comparable
#define certify_lack given_lack
#define compare_configurations given_configurations
#define compare_orders given_orders
#define compare_loops given_loops
#define compare_optimizers_apart given_optimizers
#define compare_settings_apart given_settings
#define compare_others_apart given_others
#define compare_kernels_apart given_kernels
#define compare_labels_key given_labels
#define compare_reference_moves given_moves
#define compare_unseen_of given_unseen
#define runs_first_apart given_first_apart
#define batch_gap_words given_gap_words
#define compare_recordings given_recordings
#define compare_root_parts given_parts
#define compare_find_ratio given_ratio
#define first_find given_first
#include "forensics/compare.c" /* with runs of this test */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 8, TENSORS = 3, MOST = 7, CASES = 20000 };

static struct draws draws;
static struct arena arena;
static struct compare_report report;

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

/* ---- columns ---- */

static struct compare_column columns[MOST];
static struct log logs[2];
static struct compare_input input[2];

/* The order within an update; names that are not here come last. */
static const int32_t ranks[][8] = {{LOG_TOKENS, LOG_SAMPLES, LOG_GLOBAL_BATCH},
                                   {LOG_LOSS},
                                   {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_LOGITS_CHOSEN,
                                    LOG_LOGITS_REJECTED, LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                    LOG_REWARD_MARGIN, LOG_REWARD_ACCURACY},
                                   {LOG_GRAD_NORM},
                                   {LOG_LR_APPLIED},
                                   {LOG_LR_LOGGED}};

static size_t rank_of(int32_t name) {
    for (size_t r = 0; r < COUNT_OF(ranks); r++)
        for (size_t i = 0; i < COUNT_OF(ranks[r]) && ranks[r][i] != LOG_OTHER; i++)
            if (ranks[r][i] == name) return r;
    return COUNT_OF(ranks);
}

static int is_trained(const struct compare_column *column) {
    return (rank_of(column->name) >= 1 && rank_of(column->name) <= 3) ||
           column->name == LOG_PARAM_NORM || column->name == LOG_EVAL_LOSS;
}

static void draw_columns(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0xc0f1), .number = number};
    arena_close(&arena);
    memset(&report, 0, sizeof report);
    memset(columns, 0, sizeof columns);
    report.columns = columns;
    const uint32_t shift = draws_pick(&draws, LOG_NAMES), by = seldom(2) ? 1 : 5;
    report.column_count = draws_pick(&draws, MOST + 1);
    for (uint32_t i = 0; i < report.column_count; i++) {
        struct compare_column *const column = &columns[i];
        column->name = (int32_t)(1 + (shift + by * i) % (LOG_NAMES - 1));
        column->class_of = seldom(2) ? COMPARE_DIFFERENT : COMPARE_EQUAL;
        column->first_update = 1 + draws_pick(&draws, 3);
        column->pairs = seldom(3) ? 0 : 2 + draws_pick(&draws, 8);
        column->last_number = draws_pick(&draws, 4);
        column->moves = seldom(4);
        column->not_finite = seldom(3) ? 1 + draws_pick(&draws, 3) : 0;
        column->ends_before = seldom(2) ? 4 + draws_pick(&draws, 3) : 0;
        column->ends_in = seldom(2);
        for (size_t s = 0; s < 2; s++)
            column->side[s].count = draws_pick(&draws, 2);
    }
    report.start = draws_pick(&draws, 3);
    report.verdict = (int32_t)draws_pick(&draws, 3);
    report.roots = seldom(4) ? 1 : 0;
    report.why = "WHY";
}

static void require_order(void) {
    assert_int_equal(put_in_order(&report, &arena), STATUS_OK);
    size_t at = 0;
    for (uint64_t update = 1; update < 4; update++)
        for (size_t rank = 0; rank <= COUNT_OF(ranks); rank++)
            for (uint32_t i = 0; i < report.column_count; i++)
                if (columns[i].class_of == COMPARE_DIFFERENT && columns[i].first_update == update &&
                    rank_of(columns[i].name) == rank) {
                    assert_true(at < report.order_count);
                    assert_int_equal(report.order[at++], i);
                }
    assert_int_equal(at, report.order_count);
}

static void require_ends(void) {
    const struct compare_column *ends = NULL;
    char text[256];
    for (size_t i = report.column_count; i-- > 0;)
        if (columns[i].ends_before > 0 && rank_of(columns[i].name) >= 1 &&
            rank_of(columns[i].name) <= 3 &&
            (ends == NULL || columns[i].ends_before <= ends->ends_before))
            ends = &columns[i];
    assert_ptr_equal(find_end(&report), ends);
    const int32_t before = report.verdict;
    assert_int_equal(judge_end(&report, &arena), STATUS_OK);
    if (ends == NULL || before != COMPARE_VERDICT_EQUAL) {
        assert_true(report.verdict == before && strcmp(report.why, "WHY") == 0);
        return;
    }
    snprintf(text, sizeof text,
             "every pair agrees, but from update %d on %s has no number of %s and goes on, and %s "
             "has some: a value that is not a number is often left out or written as null",
             (int)ends->ends_before, ends->ends_in == 0 ? "A" : "B", log_names[ends->name].name,
             ends->ends_in == 0 ? "B" : "A");
    assert_string_equal(report.why, text);
    assert_int_equal(report.verdict, COMPARE_VERDICT_UNTESTABLE);
    report.verdict = COMPARE_VERDICT_EQUAL;
    report.why = "WHY";
}

static void require_remarks(void) {
    char text[1024];
    size_t length = 0, most = 0, of_loss = 0;
    for (size_t i = 0; i < report.column_count; i++) {
        if (columns[i].not_finite > 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%d of %d of %s",
                                       length > 0 ? ", " : "", (int)columns[i].not_finite,
                                       (int)columns[i].pairs, log_names[columns[i].name].name);
        if (columns[i].pairs > most) most = columns[i].pairs;
        if (columns[i].name == LOG_LOSS) of_loss = columns[i].pairs;
    }
    assert_int_equal(add_not_finite(&report, &arena), STATUS_OK);
    if (length == 0 || report.verdict == COMPARE_VERDICT_DIFFERS) {
        assert_string_equal(report.why, "WHY");
    } else {
        char whole[1200];
        snprintf(whole, sizeof whole,
                 "WHY; pairs that are NaN or infinite in both (%s) say that both broke, and are no "
                 "agreement of numbers",
                 text);
        assert_string_equal(report.why, whole);
    }
    report.why = "WHY";
    assert_int_equal(add_few_losses(&report, &arena), STATUS_OK);
    snprintf(text, sizeof text, "WHY; the loss was compared at %d of %d rows only", (int)of_loss,
             (int)most);
    const int few = of_loss > 0 && 2 * of_loss < most && report.roots == 0 &&
                    report.verdict == COMPARE_VERDICT_EQUAL;
    assert_string_equal(report.why, few ? text : "WHY");
}

static void corroborate_columns(void **state) {
    (void)state;
    size_t orders = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        int shows = 0, names = 0, moves = 0;
        draw_columns(number);
        for (size_t i = 0; i < report.column_count; i++) {
            if (!is_trained(&columns[i])) continue;
            moves |= columns[i].moves;
            names |= columns[i].side[0].count * columns[i].side[1].count > 0;
            shows |= columns[i].pairs > 0 && columns[i].last_number > report.start;
            assert_int_equal(is_of_training(&columns[i]), 1);
        }
        assert_int_equal(shows_training(&report), shows);
        assert_int_equal(names_training(&report), names);
        assert_int_equal(any_moves(&report), moves);
        for (int32_t name = LOG_OTHER; name < LOG_NAMES; name++) {
            const struct compare_column *found = NULL;
            for (size_t i = report.column_count; i-- > 0;)
                if (columns[i].name == name) found = &columns[i];
            assert_ptr_equal(compare_column_of(&report, (enum log_name)name), found);
        }
        require_order();
        report.root_update = draws_pick(&draws, 4);
        uint64_t first = report.root_update;
        for (size_t i = 0; i < report.column_count; i++)
            if (columns[i].class_of == COMPARE_DIFFERENT &&
                (first == 0 || columns[i].first_update < first))
                first = columns[i].first_update;
        assert_int_equal(first_apart(&report), first);
        orders += report.order_count > 2;
        require_ends();
        require_remarks();
    }
    assert_true(orders > CASES / 10);
}

/* ---- what is filled from logs ---- */

static const struct compare_side *given_tokens;
enum status given_ratio(const struct compare_column *column, const struct compare_side *tokens,
                        struct compare_ratio *out) {
    assert_ptr_equal(tokens, given_tokens);
    *out = (struct compare_ratio){.name = column->name};
    out->kind = column->first_update == 2 ? COMPARE_FACTOR_NONE : COMPARE_FACTOR_WHOLE;
    return STATUS_OK;
}

static void corroborate_ratios(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES / 10; number++) {
        size_t found = 0;
        draw_columns(number);
        given_tokens = NULL;
        for (size_t i = report.column_count; i-- > 0;)
            if (columns[i].name == LOG_TOKENS) given_tokens = &columns[i].side[0];
        assert_int_equal(find_ratios(&report, &arena), STATUS_OK);
        for (size_t i = 0; i < report.column_count; i++) {
            if (columns[i].first_update == 2) continue;
            assert_true(found < report.ratio_count);
            assert_int_equal(report.ratios[found++].name, columns[i].name);
        }
        assert_int_equal(found, report.ratio_count);
    }
}

/* Rows of updates 1 to 9, some of which have no value, and some of which come twice. */
/* Epochs that stand twice beside `repeated` rows: those that no such row explains are of rows of
 * evaluations where the log has such, and otherwise they are repeated rows, too. */
static void validate_joined_epochs(void **state) {
    (void)state;
    for (int evaluates = 0; evaluates < 2; evaluates++)
        for (size_t joined = 0; joined < 5; joined++)
            for (size_t repeated = 0; repeated < 5; repeated++) {
                arena_close(&arena);
                memset(&report, 0, sizeof report);
                for (size_t s = 0; s < 2; s++) {
                    struct log *const made = helper_log(&arena, 3);
                    if (evaluates) helper_put(&arena, made, LOG_EVAL_LOSS, 0, 2.0, PRINT_EXACT);
                    input[s] = (struct compare_input){.log = made};
                    report.joined[s] = s == 0 ? joined : 4 - joined;
                    report.repeated[s] = s == 0 ? repeated : 4 - repeated;
                }
                judge_repeated(input, &report);
                const size_t beyond = joined > repeated ? joined - repeated : 0;
                assert_int_equal(report.joined[0], evaluates ? beyond : 0);
                assert_int_equal(report.repeated[0], evaluates ? repeated : repeated + beyond);
                const size_t second = 4 - joined > 4 - repeated ? repeated - joined : 0;
                assert_int_equal(report.joined[1], evaluates ? second : 0);
                assert_int_equal(report.repeated[1],
                                 evaluates ? 4 - repeated : 4 - repeated + second);
            }
}

static void corroborate_filled(void **state) {
    (void)state;
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM, LOG_TOKENS, LOG_EVAL_LOSS};
    enum { NAMES = COUNT_OF(names), LAST = 10 };
    for (uint32_t number = 0; number < CASES / 10; number++) {
        struct log *made[2];
        int has[2][NAMES][LAST] = {{{0}}}, listed[NAMES] = {0};
        size_t again[2][NAMES] = {{0}}, at = 0;
        uint64_t from = 0, to = 0;
        draws = (struct draws){.key = UINT64_C(0xf111), .number = number};
        arena_close(&arena);
        memset(&report, 0, sizeof report);
        for (size_t s = 0; s < 2; s++) {
            made[s] = helper_log(&arena, 12);
            input[s] = (struct compare_input){.log = made[s]};
            const uint32_t first = 1 + draws_pick(&draws, 5);
            int64_t step = first;
            for (size_t row = 0; row < 12; row++) {
                made[s]->step[row] = step;
                if (!seldom(6) && step + 1 < LAST) step++;
            }
            for (size_t n = 0; n < NAMES; n++) {
                if (seldom(4)) continue;
                const uint32_t rare = 2 + draws_pick(&draws, 3);
                for (size_t row = 0; row < 12; row++) {
                    if (seldom(rare)) continue;
                    const size_t update = (size_t)made[s]->step[row];
                    helper_put(&arena, made[s], names[n], row, 2.0, PRINT_EXACT);
                    again[s][n] += (size_t)has[s][n][update];
                    has[s][n][update] = listed[n] = 1;
                }
            }
        }
        assert_int_equal(fill_columns(input, &arena, &report), STATUS_OK);
        for (int32_t name = LOG_OTHER; name < LOG_NAMES; name++)
            for (size_t n = 0; n < NAMES; n++) {
                if (names[n] != (enum log_name)name || !listed[n]) continue;
                assert_true(at < report.column_count);
                assert_int_equal(report.columns[at++].name, name);
                for (uint64_t update = 1; update < LAST; update++) {
                    if (!has[0][n][update] || !has[1][n][update]) continue;
                    if (from == 0 || update < from) from = update;
                    if (update > to) to = update;
                }
            }
        assert_int_equal(report.column_count, at);
        assert_true(report.from == from && report.to == to);
        for (size_t s = 0; s < 2; s++) {
            size_t most = 0;
            for (size_t n = 0; n < NAMES; n++)
                most = again[s][n] > most ? again[s][n] : most;
            assert_int_equal(report.repeated[s], most);
        }
    }
}

/* ---- applied LRs ---- */

static struct fit explained[2];

static struct compare_lr draw_lr(void) {
    struct compare_lr lr = {.shift = 1, .first_update = 1 + draws_pick(&draws, 3)};
    lr.state = (int32_t)draws_pick(&draws, 4);
    lr.first[0] = 0.25;
    lr.first[1] = 0.75;
    lr.fit[0] = &explained[0];
    lr.fit[1] = &explained[1];
    lr.groups_words = seldom(2) ? "" : " The LR of group 1 differs.";
    lr.words = "WORDS.";
    lr.group_count = draws_pick(&draws, 2);
    lr.groups_alone = draws_pick(&draws, 2);
    return lr;
}

static void corroborate_lrs(void **state) {
    (void)state;
    static const double lrs[] = {1e-3, 1.00001e-3, 2e-3, 1e-3 + 1e-12};
    for (uint32_t number = 0; number < CASES / 10; number++) {
        draws = (struct draws){.key = UINT64_C(0x14), .number = number};
        arena_close(&arena);
        struct compare_lr lr = draw_lr();
        const struct compare_lr was = lr;
        struct compare_column column = {.first_update = 1 + draws_pick(&draws, 5)};
        char text[512];
        const double a = lrs[draws_pick(&draws, COUNT_OF(lrs))],
                     b = lrs[draws_pick(&draws, COUNT_OF(lrs))];
        column.class_of = seldom(2) ? COMPARE_DIFFERENT : COMPARE_WITHIN;
        column.first[0].value = a;
        column.first[1].value = b;
        assert_int_equal(applied_columns(input, &column, &arena, &lr), STATUS_OK);
        if (column.class_of == COMPARE_DIFFERENT) {
            assert_int_equal(lr.state, COMPARE_LR_DIFFERENT);
            assert_true(lr.first[0] == a && lr.first[1] == b && lr.shift == was.shift);
            assert_true(lr.first_update == column.first_update);
            snprintf(text, sizeof text,
                     "Both logs record the LR that was applied; it differs from update %d on (%s "
                     "against %s).",
                     (int)column.first_update, word_apart(a, b).text, word_apart(b, a).text);
            assert_string_equal(lr.words, text);
            assert_true(lr.fit[0] == &explained[0] && lr.fit[1] == &explained[1]);
        } else {
            assert_int_equal(lr.state, COMPARE_LR_SAME);
            assert_true(lr.first[0] == 0.0 && lr.first[1] == 0.0);
            assert_true(lr.shift == 0 && lr.first_update == 0);
            assert_true(lr.fit[0] == &explained[0] && lr.fit[1] == &explained[1]);
            snprintf(text, sizeof text, "Both logs record the LR that was applied; %s agrees.",
                     was.group_count > 0 ? "that of group 0" : "it");
            assert_string_equal(lr.words, text);
        }
        /* A further group. */
        struct compare_group group = {.group = 2, .is_applied = seldom(2), .column = column};
        lr = was;
        lr.group_first = seldom(5) ? NULL : &group;
        take_group(&lr);
        const int says = lr.group_first != NULL;
        const int later =
            was.state == COMPARE_LR_DIFFERENT && was.first_update <= column.first_update;
        const int taken = says && !later && group.is_applied;
        assert_int_equal(lr.state, taken || was.state == COMPARE_LR_DIFFERENT
                                       ? (taken ? COMPARE_LR_DIFFERENT : was.state)
                                   : says ? COMPARE_LR_UNTESTABLE
                                          : was.state);
        assert_int_equal(lr.group, taken ? 2 : 0);
        assert_int_equal(lr.shift, taken ? 0 : 1);
        assert_true(lr.first_update == (taken ? column.first_update : was.first_update));
        assert_true(lr.first[0] == (taken ? a : 0.25) && lr.first[1] == (taken ? b : 0.75));
        assert_string_equal(lr.groups_words,
                            says && later && was.groups_alone == 0 ? "" : was.groups_words);
        const char *const words = lr.groups_words;
        snprintf(text, sizeof text, "WORDS.%s", words);
        assert_int_equal(add_groups(&lr, &arena), STATUS_OK);
        assert_string_equal(lr.words, text);
    }
}

/* One row of applied LRs is enough to say that they agree, or do not. */
static void validate_one_applied_lr(void **state) {
    (void)state;
    for (size_t rows = 0; rows < 3; rows++)
        for (int differs = 0; differs < 2; differs++) {
            arena_close(&arena);
            memset(&report, 0, sizeof report);
            for (size_t s = 0; s < 2; s++) {
                struct log *const log = helper_log(&arena, 3);
                for (size_t row = 0; row < rows; row++)
                    helper_put(&arena, log, LOG_LR_APPLIED, row, differs && s == 1 ? 2e-3 : 1e-3,
                               PRINT_EXACT);
                input[s] = (struct compare_input){.log = log};
            }
            assert_int_equal(fill_columns(input, &arena, &report), STATUS_OK);
            assert_int_equal(compare_lrs(input, &arena, &report), STATUS_OK);
            assert_string_equal(report.lr.words,
                                rows == 0 ? "There is no LR column in both logs."
                                : differs ? "Both logs record the LR that was applied; it differs "
                                            "from update 1 on (0.001 against 0.002)."
                                          : "Both logs record the LR that was applied; it agrees.");
        }
}

/* The first update that may have moved a weight, where no explanation is given. */
static void corroborate_starts(void **state) {
    (void)state;
    static const int32_t names[] = {LOG_LR_APPLIED, LOG_LR_LOGGED, LOG_GRAD_NORM};
    enum { NAMES = COUNT_OF(names), POINTS = 4 };
    for (uint32_t number = 0; number < CASES / 10; number++) {
        struct series_point points[NAMES][2][POINTS];
        uint64_t above[NAMES][2], want = UINT64_MAX;
        int has[NAMES];
        draws = (struct draws){.key = UINT64_C(0x57a4), .number = number};
        memset(&report, 0, sizeof report);
        memset(columns, 0, sizeof columns);
        report.columns = columns;
        report.starts = 7;
        for (size_t n = 0; n < NAMES; n++) {
            has[n] = !seldom(3);
            struct compare_column *const column = &columns[report.column_count];
            if (has[n]) report.column_count++;
            column->name = names[n];
            for (size_t s = 0; s < 2; s++) {
                const size_t count = draws_pick(&draws, POINTS + 1);
                const uint32_t rare = 1 + draws_pick(&draws, 4);
                above[n][s] = count == 0 ? 0 : UINT64_MAX; /* 0: it has no row */
                for (size_t i = POINTS; i-- > 0;) {
                    points[n][s][i] = (struct series_point){.update = 2 + 3 * i};
                    points[n][s][i].value = seldom(rare) ? 0.5 : seldom(2) ? 0.0 : 0.125;
                    points[n][s][i].quantum = seldom(2) ? 0.0 : 0.25;
                    const double least = points[n][s][i].value - points[n][s][i].quantum / 2.0;
                    if (i < count && least > 0.0) above[n][s] = i == 0 ? 1 : 3 * i;
                }
                column->side[s].points = points[n][s];
                column->side[s].count = count;
                input[s] = (struct compare_input){.log = &logs[s]};
            }
        }
        for (size_t s = 0; s < 2; s++) {
            const uint64_t first = has[0] && above[0][s] > 0   ? above[0][s]
                                   : has[1] && above[1][s] > 0 ? above[1][s]
                                                               : 1;
            if (has[2] && above[2][s] == UINT64_MAX) continue; /* no gradient was any */
            if (first < want) want = first;
        }
        find_start(input, &report);
        if (report.start != want)
            fail_msg("case %u: %d, expected %d", number, (int)report.start, (int)want);
        assert_int_equal(report.starts, 0);
    }
}

/* ---- two runs ---- */

static struct record records[2][ROWS];
static uint8_t digests[2][ROWS][TENSORS][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
static struct trace_run runs[2];
static struct trace_foreign foreign;
static int unlike, apart[2], lacks[2];
static uint64_t roots;
static int root_of[2][ROWS];
static const struct record *first_of[2]; /* the rows whose roots are said to differ */
static uint64_t first_asked;
static size_t recordings, configurations;

void given_ledger(const struct trace_run *a, const struct trace_run *b,
                  struct ledger_difference *out) {
    assert_true(a == &runs[0] && b == &runs[1]);
    out->found = 1;
}

enum status given_ledger_words(const struct ledger_difference *of, const char *const names[2],
                               struct arena *in, char **out) {
    assert_int_equal(of->found, 1);
    return arena_format(in, out, "%s drew more than %s", names[0], names[1]);
}

int given_unlike(const struct trace_run *a, const struct trace_run *b, char text[COMPARABLE_WHY]) {
    assert_true(a == &runs[0] && b == &runs[1]);
    snprintf(text, COMPARABLE_WHY, "%s", unlike ? "other tensors" : "");
    return unlike;
}

enum status given_comparable(const struct trace_run *a, const struct trace_run *b, uint64_t *out) {
    assert_true(a == &runs[0] && b == &runs[1] && !unlike);
    *out = roots;
    return STATUS_OK;
}

void given_lack(const struct trace_run *run, char text[CERTIFY_WHY]) {
    const int side = run == &runs[1];
    snprintf(text, CERTIFY_WHY, "%s",
             lacks[side] ? side ? "update 7 has none" : "it has none" : "");
}

enum status given_configurations(const struct trace_run_plan *a, const struct trace_run_plan *b,
                                 size_t most, struct arena *in, const char **out) {
    (void)in;
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    configurations++;
    *out = most == 0 ? "keys" : most == COMPARE_KEYS_SHORT ? "some keys" : "";
    return STATUS_OK;
}

enum status given_orders(const struct trace_run *a, const struct trace_run *b, struct arena *in,
                         const char **out) {
    (void)in;
    assert_true(a == &runs[0] && b == &runs[1]);
    *out = "orders";
    return STATUS_OK;
}

struct compare_loop given_loops(const struct trace_run *a, const struct trace_run *b) {
    assert_true(a == &runs[0] && b == &runs[1]);
    return (struct compare_loop){.update = 9};
}

int given_optimizers(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    return apart[0];
}

int given_settings(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    return apart[1];
}
int given_others(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    return a != b && apart[0] && apart[1];
}

int given_kernels(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    return !apart[0];
}

int given_moves(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    return apart[0];
}

const char *given_labels(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    return apart[1] ? "labels" : NULL;
}

struct compare_unseen given_unseen(const struct trace_run *a, const struct trace_run *b) {
    assert_true(a == &runs[0] && b == &runs[1]);
    return (struct compare_unseen){.update = 5, .updates = 3, .side = 1};
}

/* The first update whose roots differ, and a gap with it. */
uint64_t given_first_apart(const struct trace_run *a, const struct trace_run *b,
                           struct batch_gap *gap) {
    assert_true(a == &runs[0] && b == &runs[1]);
    *gap = (struct batch_gap){.updates = 4};
    for (size_t i = 0; i < a->updates; i++)
        for (size_t k = 0; k < b->updates; k++)
            if (records[0][i].step == records[1][k].step && root_of[0][i] != root_of[1][k])
                return records[0][i].step;
    return 0;
}

void given_gap_words(const struct batch_gap *gap, char out_text[COMPARABLE_WHY]) {
    snprintf(out_text, COMPARABLE_WHY, "%d batches", (int)gap->updates);
}

enum status given_recordings(const struct trace_run *a, const struct trace_run *b, uint64_t first,
                             struct arena *in, struct compare_recorded *out) {
    (void)in;
    assert_true(a == &runs[0] && b == &runs[1]);
    recordings++;
    first_asked = first;
    out->tensor = "wte";
    return STATUS_OK;
}

static const unsigned *parts_at; /* by updates, from 1 on; NULL: parts that tell the update */

unsigned given_parts(const struct record *a, const struct record *b) {
    assert_true(a->step == b->step);
    return parts_at != NULL ? parts_at[a->step - 1] : (unsigned)a->step + 16;
}

void given_first(const struct trace_run_plan *a, const struct record *x,
                 const struct trace_run_plan *b, const struct record *y,
                 struct first_difference *out) {
    (void)out;
    assert_true(a == &runs[0].plan && b == &runs[1].plan);
    assert_true(first_of[0] == NULL); /* the first pair of rows alone is looked at */
    first_of[0] = x;
    first_of[1] = y;
}

static void draw_runs(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0x4a15), .number = number};
    arena_close(&arena);
    memset(&report, 0, sizeof report);
    memset(digests, 0, sizeof digests);
    const uint32_t same = 2 + draws_pick(&draws, 12);
    for (size_t s = 0; s < 2; s++) {
        uint64_t step = seldom(3) ? 1 + draws_pick(&draws, 3) : 1;
        runs[s] =
            (struct trace_run){.records = records[s], .updates = draws_pick(&draws, ROWS + 1)};
        runs[s].plan.foreign = seldom(3) ? NULL : &foreign;
        runs[s].plan.shape.tensors = number % (TENSORS + 1);
        for (size_t i = 0; i < ROWS; i++) {
            records[s][i] = (struct record){.step = step, .tensor_digests = digests[s][i]};
            step += seldom(4) ? 2 : 1;
            root_of[s][i] = seldom(same);
            for (size_t t = 0; t < TENSORS; t++) {
                uint8_t *const digest = digests[s][i][t][TENSOR_DIGEST_GRADIENT];
                digest[seldom(2) ? 0 : RECORD_DIGEST_BYTES - 1] = seldom(6) ? 0 : 1;
                if (!seldom(3))
                    memcpy(digest, digests[0][0][t][TENSOR_DIGEST_GRADIENT], RECORD_DIGEST_BYTES);
            }
        }
        lacks[s] = seldom(2);
        apart[s] = seldom(2);
        input[s] = (struct compare_input){.log = &logs[s], .run = &runs[s]};
    }
    if (seldom(9)) input[draws_pick(&draws, 2)].run = NULL;
    unlike = seldom(5);
    roots = draws_pick(&draws, 3);
    first_of[0] = first_of[1] = NULL;
    first_asked = 0;
    recordings = configurations = 0;
    report.columns = columns;
    memset(columns, 0, sizeof columns);
    static const uint32_t order[2] = {1, 0};
    report.order = order;
    report.order_count = draws_pick(&draws, 3);
    columns[0].first_update = 1 + draws_pick(&draws, 9);
    columns[1].first_update = 1 + draws_pick(&draws, 9);
}

static int has_gradient(size_t s, size_t row, size_t tensor) {
    for (size_t i = 0; i < RECORD_DIGEST_BYTES; i++)
        if (digests[s][row][tensor][TENSOR_DIGEST_GRADIENT][i] != 0) return 1;
    return 0;
}

/* Goes through all pairs of rows of one update: where the roots differ first, where a gradient is
 * one first, and whether it is where the roots differ (`same_at`). */
static void find_rows(uint64_t *root, uint64_t *gradient, uint64_t *same_at) {
    *root = *gradient = *same_at = 0;
    for (size_t i = 0; i < runs[0].updates; i++)
        for (size_t k = 0; k < runs[1].updates; k++) {
            int equal = runs[0].plan.shape.tensors > 0;
            if (records[0][i].step != records[1][k].step || *root != 0) continue;
            for (size_t t = 0; t < runs[0].plan.shape.tensors; t++)
                equal = equal && has_gradient(0, i, t) &&
                        memcmp(digests[0][i][t][TENSOR_DIGEST_GRADIENT],
                               digests[1][k][t][TENSOR_DIGEST_GRADIENT], RECORD_DIGEST_BYTES) == 0;
            if (equal && *gradient == 0) *gradient = records[0][i].step;
            if (root_of[0][i] == root_of[1][k]) continue;
            *root = records[0][i].step;
            if (equal) *same_at = *root;
        }
}

static void want_rootless(char *out, size_t size, uint64_t *has_roots) {
    const int first[2] = {runs[0].updates > 0 ? (int)records[0][0].step : 0,
                          runs[1].updates > 0 ? (int)records[1][0].step : 0};
    const int is_foreign[2] = {runs[0].plan.foreign != NULL, runs[1].plan.foreign != NULL};
    *has_roots = 0;
    out[0] = '\0';
    if (unlike) {
        snprintf(out, size, "other tensors");
    } else if (first[0] != 0 && first[1] != 0 && first[0] != first[1]) {
        snprintf(out, size,
                 "A begins at update %d and B at update %d, and a root is made of all updates "
                 "before it, too",
                 first[0], first[1]);
    } else if (roots > 0) {
        *has_roots = roots;
    } else if (is_foreign[0] != is_foreign[1]) {
        snprintf(out, size,
                 "one is a run of twinstep and the other of another program, and their roots are "
                 "made of other parts");
    } else if (is_foreign[0]) {
        snprintf(out, size, "%s%s%s", lacks[0] ? "in A it has none" : "",
                 lacks[0] && lacks[1] ? "; " : "", lacks[1] ? "in B update 7 has none" : "");
    }
}

static void corroborate_runs(void **state) {
    (void)state;
    size_t seen[4] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        uint64_t root, gradient, same_at, has_roots;
        char text[256];
        draw_runs(number);
        assert_int_equal(compare_runs(input, &arena, &report), STATUS_OK);
        assert_string_equal(report.known.step, "");
        assert_string_equal(report.known.later, "");
        if (input[0].run == NULL || input[1].run == NULL) {
            assert_true(report.rng.found == 0 && report.root_update == 0 && recordings == 0);
            assert_string_equal(report.rng_words, "");
            assert_string_equal(report.rootless, "");
            assert_string_equal(report.configurations, "");
            continue;
        }
        const int both = runs[0].plan.foreign != NULL && runs[1].plan.foreign != NULL;
        want_rootless(text, sizeof text, &has_roots);
        find_rows(&root, &gradient, &same_at);
        if (has_roots == 0) root = gradient = 0;
        assert_string_equal(report.rng_words, "A drew more than B");
        assert_string_equal(report.rootless, text);
        assert_int_equal(report.unlike, unlike);
        assert_int_equal(report.roots, has_roots);
        assert_int_equal(report.root_update, root);
        assert_int_equal(report.gradient_update, gradient);
        assert_int_equal(report.root_parts, root > 0 ? root + 16 : 0);
        assert_true(root == 0 ? first_of[0] == NULL
                              : first_of[0]->step == root && first_of[1]->step == root);
        assert_int_equal(report.recorded, both);
        assert_int_equal(report.optimizers_apart, both && apart[0]);
        assert_int_equal(report.settings_apart, both && apart[1]);
        assert_int_equal(report.others_apart, both && apart[0] && apart[1]);
        assert_int_equal(report.kernels_apart, both && !apart[0]);
        assert_int_equal(report.reference_apart, both && apart[0]);
        assert_true(both && apart[1] ? strcmp(report.labels_key, "labels") == 0
                                     : report.labels_key == NULL);
        assert_int_equal(report.unseen.update, both ? 5 : 0);
        assert_string_equal(report.batches_lack, has_roots > 0 ? "4 batches" : "");
        assert_int_equal(report.same_gradient, root > 0 && root == same_at);
        /* a trace of ours lists its phases, too, and those of two kinds are not held together */
        assert_int_equal(report.loop.update,
                         (runs[0].plan.foreign == NULL) == (runs[1].plan.foreign == NULL) ? 9 : 0);
        assert_string_equal(report.orders, both ? "orders" : "");
        assert_string_equal(report.configurations, both ? "keys" : "");
        assert_string_equal(report.configurations_short, both ? "some keys" : "");
        assert_int_equal(recordings, both && !unlike);
        assert_string_equal(report.known.tensor, both && !unlike ? "wte" : "");
        uint64_t first = root;
        for (size_t i = 0; i < report.order_count; i++) {
            const uint64_t update = columns[report.order[i]].first_update;
            if (first == 0 || update < first) first = update;
        }
        assert_int_equal(first_asked, both && !unlike ? first : 0);
        seen[0] += root > 1;
        seen[1] += gradient > 1;
        seen[2] += strstr(text, "; in B") != NULL;
        seen[3] += strstr(text, "begins at") != NULL;
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        if (seen[i] < 100) fail_msg("%zu: %zu", i, seen[i]);
}

/* ---- a loss that is logged alone ---- */

/* Four updates of two recordings. A letter for each: which weights its step leaves, and whether the
 * loss that is logged differs ("x"). */
static const struct logged {
    const char *weights, *loss;
    int alone;
} logged[] = {
    {"abcd", "xxxx", 1}, {"abcd", "=x==", 1}, {"abcd", "===x", 1},
    {"aabb", "==x=", 1}, {"aabb", "=x==", 0}, /* no weight moved in the update in which the loss
                                                 differs */
    {"aaaa", "xxxx", 0}, {"abcd", "x===", 0}, /* what the first update began with is not known */
    {"abcd", "====", 0},
};

/* Whether all else is the same, but that `digest` is missing in one row of A (1), B (2), both (3).
 */
static int is_alone(const struct logged *of, enum record_digest digest, size_t row, unsigned lack) {
    static const enum record_digest recorded[] = {DIGEST_BATCH, DIGEST_RNG, DIGEST_WEIGHTS,
                                                  DIGEST_LR};
    unsigned parts[4];
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        parts[i] = of->loss[i] == 'x' ? 1u << COMPARE_PART_LOSS : 0;
        for (size_t s = 0; s < 2; s++) {
            struct record *const record = &records[s][i];
            *record = (struct record){.step = i + 1};
            for (size_t d = 0; d < COUNT_OF(recorded); d++)
                memset(record->digests[recorded[d]],
                       recorded[d] == DIGEST_WEIGHTS ? of->weights[i] : 7, RECORD_DIGEST_BYTES);
            if (i == row && (lack >> s & 1u) != 0)
                memset(record->digests[digest], 0, RECORD_DIGEST_BYTES);
        }
    }
    for (size_t s = 0; s < 2; s++)
        runs[s] = (struct trace_run){.records = records[s], .updates = COUNT_OF(parts)};
    memset(&report, 0, sizeof report);
    parts_at = parts;
    find_logged_alone(&runs[0], &runs[1], &report);
    parts[row] |= 1u << COMPARE_PART_BATCH; /* and no more where anything else differs */
    struct compare_report other = {.logged_alone = 0};
    find_logged_alone(&runs[0], &runs[1], &other);
    assert_int_equal(other.logged_alone, 0);
    parts_at = NULL;
    return report.logged_alone;
}

static void validate_what_is_logged_alone(void **state) {
    static const enum record_digest needed[] = {DIGEST_BATCH, DIGEST_RNG, DIGEST_WEIGHTS,
                                                DIGEST_LR};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(logged); i++)
        if (is_alone(&logged[i], DIGEST_BATCH, 0, 0) != logged[i].alone)
            fail_msg("weights %s, loss %s", logged[i].weights, logged[i].loss);
    /* what was not recorded is not known to be the same */
    for (size_t d = 0; d < COUNT_OF(needed); d++)
        for (size_t row = 0; row < 4; row++)
            for (unsigned lack = 1; lack <= 3; lack++)
                if (is_alone(&logged[0], needed[d], row, lack))
                    fail_msg("digest %d missing in row %zu of %u", (int)needed[d], row, lack);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_columns),
        cmocka_unit_test(corroborate_ratios),
        cmocka_unit_test(validate_joined_epochs),
        cmocka_unit_test(corroborate_filled),
        cmocka_unit_test(corroborate_lrs),
        cmocka_unit_test(validate_one_applied_lr),
        cmocka_unit_test(corroborate_starts),
        cmocka_unit_test(corroborate_runs),
        cmocka_unit_test(validate_what_is_logged_alone),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

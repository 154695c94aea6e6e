/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Logs of 1 to 12 rows at the borders of everything: each contract and schedule by turns, a total
 * or a warm-up of 0, 1 and as many as there are rows, and twenty shapes (updates that were skipped,
 * with each kind of evidence of it or none; resumes that repeat, forget, double, rescale or move
 * the total; rows that are missing, repeated, constant, 0 or no number). What `lr fit`, `lr check`
 * with right, few and wrong numbers, `doctor` and `compare` with the log before say of each is held
 * in tests/golden/forensics/small_logs.txt: the first words as text, all of it as one number
 * (FNV-1a). With TWINSTEP_SHOW=CASE all that is said of one log is printed.
 *
 * Of some that are longer, in which updates were skipped, the same of `lr fit`, with what each fit
 * says of its skips.
 *
 * Beside the text a rule: a log that prints what a contract logs, and shows what was skipped, is
 * not failed under that contract with the numbers it was made with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit_model.h"
#include "forensics/fit_rows.h"
#include "forensics/fit_used.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { CASES = 64, LONGER = 32, ROWS = 12 };

#define GOLDEN "small_logs.txt"
#define KEY UINT64_C(0x736d616c6c)

enum shape {
    PLAIN,
    SKIPS_TOLD,
    SKIP_HIDDEN,
    SKIP_NORM,
    SKIP_COUNTED,
    SKIP_SINCE,
    SKIP_SCALE,
    REPEATED,
    RESET,
    OTHER_TOTAL,
    OTHER_PEAK,
    DOUBLED,
    TWICE,
    GAP,
    FIRST_ODD,
    LAST_OFF,
    NO_STEPS,
    CONSTANT,
    ZEROS,
    AHEAD,
    SHAPES
};
static const char *const shapes[SHAPES] = {
    "plain",         "skips told",  "skip hidden", "skip shown by the norm",
    "skips counted", "skips since", "scale falls", "resumed",
    "resumed anew",  "other total", "other peak",  "counter doubled",
    "rows twice",    "gap",         "first odd",   "last off",
    "without steps", "constant",    "zeros",       "ahead of the updates"};

struct small {
    struct arena arena;
    struct draws draws;
    struct contract_request request; /* what it was made with */
    struct contract_plan plan;
    int longer; /* some tens of rows, under a contract that holds at a skipped update */
    enum shape shape;
    uint64_t skipped[2];
    struct log *log;
    struct series series;
    struct fit_known known; /* what the log itself says */
    struct fit_set fits;
};

static uint32_t pick(struct small *s, uint32_t most) {
    return draws_pick(&s->draws, most);
}

static void must(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* The schedule of a family with this number, round and round. */
static const char *schedule_of(const struct contract *contract, uint32_t number) {
    const struct sched_class *const *classes = sched_classes();
    const char *names[32];
    uint32_t count = 0;
    for (size_t i = 0; classes[i] != NULL; i++)
        if (sched_in_family(classes[i], contract->family))
            names[count++] = sched_bare_name(classes[i]);
    return names[number % count];
}

/* Draws numbers until the contract takes them. */
static void draw_request(struct small *s, uint32_t number) {
    static const double peaks[] = {1e-3, 5e-7, 2e-5, 6e-4, 1.5e-4, 1.0};
    size_t contracts;
    const struct contract *list = contract_list(&contracts);
    struct contract_request *r = &s->request;
    for (uint32_t tried = 0;; tried++) {
        assert_true(tried < 400);
        contract_request_init(r);
        r->contract = &list[(number * 7 + tried / 20) % contracts];
        r->schedule = schedule_of(r->contract, number / 3 + tried);
        r->lr = peaks[pick(s, COUNT_OF(peaks))];
        if (s->longer && (r->contract->on_skip != CONTRACT_SKIP_HOLD || r->contract->bug)) continue;
        r->steps = 1 + pick(s, 12) + (s->longer ? 30 + pick(s, 30) : 0);
        switch (pick(s, 4)) {
        case 0:
            r->warmup = 0.0;
            break;
        case 1:
            r->warmup = 1.0;
            break;
        case 2:
            r->warmup = (double)pick(s, (uint32_t)r->steps + 1);
            break;
        default:
            r->warmup_ratio = 0.1;
        }
        if (pick(s, 4) == 0) r->min_lr_ratio = 0.1;
        r->processes = 1 + pick(s, 2);
        r->accumulate = 1 + pick(s, 2);
        r->global_batch = 8;
        r->tokens = 4096;
        r->updates_per_epoch = 1 + pick(s, 4);
        if (contract_resolve(r, &s->arena, &s->plan) == STATUS_OK) return;
    }
}

/* The rate of row i, which the log calls update k. */
static double rate(const struct small *s, uint64_t k, uint64_t resumed) {
    const uint64_t since = k >= resumed ? k - resumed + 1 : 0;
    struct contract_plan plan = s->plan;
    double value = contract_logged(&plan, k);
    if (s->shape == RESET && since > 0) value = contract_logged(&plan, since);
    if (s->shape == DOUBLED && since > 0) value = contract_logged(&plan, k + resumed - 1);
    if (s->shape == OTHER_PEAK && since > 0) value *= 0.5;
    if (s->shape == AHEAD) value = contract_logged(&plan, 2 * k);
    if (s->shape == CONSTANT) value = s->request.lr;
    if (s->shape == ZEROS) value = 0.0;
    return value;
}

static void put_evidence(struct small *s, size_t rows) {
    double total = 0.0, scale = 65536.0;
    for (size_t i = 0; i < rows; i++) {
        double count = 0.0;
        for (size_t n = 0; n < s->plan.skipped_count; n++)
            count += (int64_t)s->plan.skipped[n] <= s->log->step[i] &&
                     (i == 0 || (int64_t)s->plan.skipped[n] > s->log->step[i - 1]);
        total += count;
        if (count > 0.0) scale /= 2.0;
        const double norm =
            count > 0.0 && s->shape == SKIP_NORM ? (double)INFINITY : 1.0 + 0.1 * (double)(i % 3);
        if (s->shape != SKIP_HIDDEN || s->draws.number % 2 == 0)
            helper_put(&s->arena, s->log, LOG_GRAD_NORM, i, norm, 4);
        if (s->shape == SKIP_COUNTED)
            helper_put(&s->arena, s->log, LOG_SKIPPED, i, total, PRINT_EXACT);
        if (s->shape == SKIP_SINCE)
            helper_put(&s->arena, s->log, LOG_SKIPPED, i, count, PRINT_EXACT);
        if (s->shape == SKIP_SCALE)
            helper_put(&s->arena, s->log, LOG_LOSS_SCALE, i, scale, PRINT_EXACT);
    }
    for (size_t i = 0; i < s->log->column_count; i++)
        if (s->log->columns[i].name == LOG_SKIPPED)
            s->log->columns[i].cumulative = s->shape == SKIP_COUNTED;
}

/* The number that row i bears, of rows that begin at `first`: one of them twice, or missing. */
static int64_t number_of(const struct small *s, size_t i, uint64_t first, uint64_t every,
                         size_t odd) {
    const size_t at = s->shape == TWICE && i > odd ? i - 1 : s->shape == GAP && i > odd ? i + 1 : i;
    return (int64_t)(first + at * every);
}

static void draw_log(struct small *s) {
    static const int prints[] = {PRINT_EXACT, PRINT_EXACT, PRINT_BINARY32, PRINT_E2, PRINT_E6, 8};
    const size_t rows = 1 + pick(s, ROWS) + (s->longer ? 18 : 0), odd = pick(s, (uint32_t)rows);
    const uint64_t first = pick(s, 3) == 0 ? 1 + pick(s, 3) : 1;
    const uint64_t every = pick(s, 4) == 0 ? 2 + pick(s, 2) : 1;
    const int print = prints[pick(s, COUNT_OF(prints))];
    const int skips = s->shape >= SKIPS_TOLD && s->shape <= SKIP_SCALE;
    uint64_t resumed = UINT64_MAX;
    s->log = helper_log(&s->arena, rows);
    for (size_t i = 0; i < rows; i++)
        s->log->step[i] = number_of(s, i, first, every, odd);
    if (s->shape >= REPEATED && s->shape <= DOUBLED && odd > 0) {
        resumed = (uint64_t)s->log->step[odd] - pick(s, (uint32_t)odd);
        helper_resume(s->log, odd, (int64_t)resumed);
    }
    if (skips) {
        s->skipped[0] = first + pick(s, (uint32_t)(rows * every));
        s->skipped[1] = s->skipped[0] + 1 + pick(s, 2);
        s->plan.skipped = s->skipped;
        s->plan.skipped_count = 1 + pick(s, 2);
    }
    for (size_t i = 0; i < rows; i++) {
        double value =
            rate(s, (uint64_t)s->log->step[i], s->log->part[i] > 0 ? resumed : UINT64_MAX);
        if (s->shape == OTHER_TOTAL && s->log->part[i] > 0) {
            struct contract_request longer = s->request;
            struct contract_plan plan;
            longer.steps += 3;
            if (contract_resolve(&longer, &s->arena, &plan) == STATUS_OK)
                value = contract_logged(&plan, (uint64_t)s->log->step[i]);
        }
        if (s->shape == FIRST_ODD && i == 0)
            value = odd % 3 == 0 ? 0.0 : odd % 3 == 1 ? s->request.lr : (double)NAN;
        if (s->shape == LAST_OFF && i + 1 == rows) value *= 1.25;
        helper_put(&s->arena, s->log, LOG_LR_LOGGED, i, value, print);
        helper_put(&s->arena, s->log, LOG_LOSS, i, 2.5 - 0.05 * (double)i, 4);
        if (pick(s, 8) > 0)
            helper_put(&s->arena, s->log, LOG_EPOCH, i,
                       (double)s->log->step[i] / (double)s->request.updates_per_epoch, 2);
    }
    if (skips) put_evidence(s, rows);
    if (s->shape == NO_STEPS) s->log->step_guessed = 1;
    if (pick(s, 3) > 0) s->log->max_steps = s->request.steps;
}

static void draw_small(struct small *s, uint32_t number, int longer) {
    memset(s, 0, sizeof *s);
    s->draws = (struct draws){.key = KEY, .number = number};
    s->longer = longer;
    s->shape = longer ? (enum shape)(SKIPS_TOLD + number % (OTHER_PEAK - SKIPS_TOLD))
                      : (enum shape)(number % SHAPES);
    draw_request(s, number);
    draw_log(s);
    fit_known_init(&s->known);
    s->known.limit = 6;
    s->known.request.accumulate = s->request.accumulate;
    s->known.request.processes = s->request.processes;
    s->known.request.global_batch = s->request.global_batch;
    s->known.request.tokens = s->request.tokens;
    /* Most are asked of the contract alone: a search among all takes long. */
    if (longer || number % 16 != 5 || s->log->rows > 4)
        s->known.request.contract = s->request.contract;
    if (s->shape == SKIPS_TOLD) {
        s->known.request.skipped = s->skipped;
        s->known.request.skipped_count = s->plan.skipped_count;
    }
    size_t counted;
    must(fit_known_from_log(&s->known, s->log, &s->arena));
    must(fit_skipped_from_log(&s->known, s->log, &s->arena, &counted));
    must(series_of(s->log, log_column_of(s->log, LOG_LR_LOGGED), &s->arena, &s->series));
}

/* ---- what is said ---- */

struct said {
    FILE *stream;
    char *text;
    size_t size;
};

static FILE *said_begin(struct said *said) {
    said->stream = open_memstream(&said->text, &said->size);
    assert_non_null(said->stream);
    return said->stream;
}

/* The number made of it, which goes behind its first words. */
static void said_end(struct said *said, uint32_t number, FILE *out) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    assert_int_equal(fclose(said->stream), 0);
    fprintf(out, " [%08" PRIx64 "]\n", draws_hash(DRAWS_HASH, said->text, said->size) >> 32);
    if (shown != NULL && number == (uint32_t)strtoul(shown, NULL, 10))
        print_message("%s\n", said->text);
    free(said->text);
}

static void ask_fit(struct small *s, FILE *out) {
    struct said said;
    struct fit_used used;
    const char *words;
    size_t at;
    FILE *all = said_begin(&said);
    if (s->shape == NO_STEPS) {
        struct fit_rows rows;
        must(fit_rows_number(s->log, &s->series, &s->known, 0, &s->arena, &rows));
        s->series = rows.series;
        s->known.steps_guessed = rows.decided_by == FIT_ROWS_OPEN;
        must(fit_rows_words(&rows, &s->arena, &words));
        fprintf(all, "rows: %s\n", words);
    }
    must(fit_series(&s->series, &s->known, &s->arena, &s->fits));
    must(fit_used_open(s->log, &s->arena, &used));
    must(fit_keep_used(&s->fits, &s->arena, &used));
    golden_fits_whole(all, &s->fits, &s->known);
    must(fit_early_skip(&s->fits, &s->known, &s->arena, &words));
    fprintf(all, "early skip: %s\n", words != NULL ? words : "-");
    for (size_t i = 1; i < s->fits.count; i++) {
        words = fit_doubt(&s->known, &s->fits, &s->fits.fits[i]);
        fprintf(all, "doubt %zu: %s\n", i, words != NULL ? words : "-");
        must(fit_tell_apart(&s->fits.fits[0], &s->fits.fits[i], &s->fits, &s->arena, &words));
        fprintf(all, "apart %zu: %s\n", i, words != NULL ? words : "-");
    }
    for (size_t i = 0; i < s->fits.count; i++) {
        const struct fit *const fit = &s->fits.fits[i];
        const struct contract *const twin = fit_late_twin(&s->series, &s->known, fit);
        fprintf(all, "skips %zu: %" PRIu64 ", any %d, unshown %d, before %d, floor %d, second %d\n",
                i, fit_skipped(fit), fit_skips_any(fit), fit_skips_unshown(fit, &s->known),
                fit_skips_before_rows(fit, &s->known, &s->series),
                fit_skips_to_a_floor(fit, &s->known, &s->series),
                fit_skips_second_alone(fit, &s->known, &s->series));
        fprintf(all, "  beside %d, late twin %s, back %d, changes %d\n",
                fit_total_is_beside(fit, &s->known, &s->series), twin != NULL ? twin->name : "-",
                fit_goes_back(fit), fit_changes_total(fit));
    }
    words = s->fits.count > 0 ? fit_break_doubt(&s->known, &s->fits, &at) : NULL;
    fprintf(all, "break: %s\n", words != NULL ? words : "-");
    fprintf(out, "fit: %zu, why %u: %s", s->fits.count + s->fits.left_out, s->fits.why,
            s->fits.count > 0 ? s->fits.fits[0].text
            : s->fits.partial ? s->fits.partial
                              : "-");
    said_end(&said, s->draws.number, out);
}

/* What is given beside the contract: what it was made with, but for one thing. */
enum given { ALL, AS_PRINTED, NONE, PEAK, WARMUP, TOTAL, FLOOR, OTHER_CONTRACT, GIVENS };
static const char *const givens[GIVENS] = {"all",     "as printed", "none",  "peak",
                                           "warm-up", "total",      "floor", "hf"};

static void ask_check(struct small *s, enum given given, FILE *out) {
    static const char *const verdicts[] = {"pass", "fail", "undecided"};
    struct fit_known known = s->known;
    struct contract_request *r = &known.request;
    struct arena arena = ARENA_EMPTY;
    struct fit_check check;
    struct fit_used used;
    struct said said;
    FILE *all = said_begin(&said);
    r->contract = s->request.contract;
    if (given != NONE) {
        r->schedule = s->request.schedule;
        r->lr = s->request.lr * (given == PEAK ? 1.25 : 1.0);
        r->steps = s->request.steps + (given == TOTAL);
        r->warmup = s->request.warmup + (given == WARMUP ? 1.0 : 0.0);
        r->warmup_ratio = s->request.warmup_ratio;
        r->min_lr_ratio = s->request.min_lr_ratio;
        if (given == FLOOR) r->min_lr_ratio = 0.25;
        r->updates_per_epoch = s->request.updates_per_epoch;
    }
    if (given == OTHER_CONTRACT) {
        r->contract = contract_find("hf");
        r->schedule = NULL;
        r->min_lr_ratio = (double)NAN;
    }
    must(fit_used_open(s->log, &arena, &used));
    const enum status status = fit_check(&s->series, &known, given != AS_PRINTED, &arena, &check);
    if (status != STATUS_OK) {
        fprintf(out, "%s: refused: %s", givens[given], status_text());
    } else {
        must(fit_check_used(&check, &arena, &used));
        golden_check(all, &check, 3);
        fprintf(out, "%s: %s: %s", givens[given], verdicts[check.verdict],
                given < PEAK ? check.words : "");
        const int sound = s->shape <= REPEATED && s->shape != SKIP_HIDDEN;
        if (given <= AS_PRINTED && (sound || s->shape == TWICE || s->shape == GAP) &&
            check.verdict == FIT_FAIL)
            fail_msg("case %u fails what it was made with: %s", s->draws.number, check.words);
    }
    said_end(&said, s->draws.number, out);
    arena_close(&arena);
}

static void ask_doctor(struct small *s, FILE *out) {
    struct doctor_options options;
    struct doctor_report report;
    struct arena arena = ARENA_EMPTY;
    struct said said;
    FILE *all = said_begin(&said);
    doctor_options_init(&options);
    must(doctor_examine(s->log, &options, &s->fits, &arena, &report));
    golden_findings(all, &report);
    fprintf(out, "doctor:");
    for (size_t i = 0; i < report.finding_count + report.remark_count; i++)
        fprintf(out, " %s", report.findings[i].id);
    said_end(&said, s->draws.number, out);
    arena_close(&arena);
}

static void ask_compare(const struct small *a, const struct small *b, FILE *out) {
    struct compare_input input[2] = {{.log = a->log, .fits = &a->fits},
                                     {.log = b->log, .fits = &b->fits}};
    struct compare_report report;
    struct arena arena = ARENA_EMPTY;
    struct said said;
    FILE *all = said_begin(&said);
    must(compare_logs(input, &arena, &report));
    golden_comparison(all, &report);
    fprintf(out, "compare: %s", compare_verdict_name((enum compare_verdict)report.verdict));
    said_end(&said, b->draws.number, out);
    arena_close(&arena);
}

/* Logs whose answer is held to be wrong, and so not held: runs that go past their total with an
 * update that the log shows to be skipped (26, 1021) and a LR that prints as 0 throughout for one
 * (46), which are failed under the contract that made them; and skipped updates with a total that
 * nobody says, of which the fit finds nothing (1010) or a plateau with another total (1028). */
static int is_left_out(uint32_t number) {
    static const uint32_t those[] = {26, 46, 1010, 1021, 1028};
    for (size_t i = 0; i < COUNT_OF(those); i++)
        if (those[i] == number) return 1;
    return 0;
}

static void verify_small_logs(void **state) {
    (void)state;
    struct small *const s = (struct small *)calloc(2, sizeof *s);
    size_t asked = 0;
    assert_non_null(s);
    for (uint32_t number = 0; number < CASES; number++) {
        struct small *const now = &s[asked % 2], *const before = &s[(asked + 1) % 2];
        if (is_left_out(number)) continue;
        if (asked > 1) arena_close(&now->arena);
        draw_small(now, number, 0);
        FILE *const out = golden_begin(GOLDEN, "%u %s", number, shapes[now->shape]);
        fprintf(out, "%s %s, peak %g, warm-up %g %g, total %" PRIu64 ", rows %zu\n",
                now->request.contract->name, now->request.schedule, now->request.lr,
                now->request.warmup, now->request.warmup_ratio, now->request.steps, now->log->rows);
        ask_fit(now, out);
        ask_check(now, ALL, out);
        ask_check(now, (enum given)(AS_PRINTED + number / 3 % (GIVENS - AS_PRINTED)), out);
        ask_doctor(now, out);
        if (asked++ > 0) ask_compare(before, now, out);
        golden_end();
    }
    arena_close(&s[0].arena);
    arena_close(&s[1].arena);
    free(s);
}

/* Where a search for skipped updates has rows enough to weigh them. */
static void verify_skips(void **state) {
    (void)state;
    for (uint32_t number = 1000; number < 1000 + LONGER; number++) {
        struct small s;
        if (is_left_out(number)) continue;
        draw_small(&s, number, 1);
        FILE *const out = golden_begin(GOLDEN, "%u %s", number, shapes[s.shape]);
        fprintf(out, "%s %s, peak %g, warm-up %g %g, total %" PRIu64 ", rows %zu, skipped",
                s.request.contract->name, s.request.schedule, s.request.lr, s.request.warmup,
                s.request.warmup_ratio, s.request.steps, s.log->rows);
        for (size_t i = 0; i < s.plan.skipped_count; i++)
            fprintf(out, " %" PRIu64, s.plan.skipped[i]);
        fputc('\n', out);
        ask_fit(&s, out);
        ask_check(&s, AS_PRINTED, out);
        golden_end();
        arena_close(&s.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_small_logs),
        cmocka_unit_test(verify_skips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Draws the numbers until a contract takes them, and prints what the contract logs, but for what
 * the shape says. */
#include "tests/forensics/helper_small.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "forensics/fit_model.h"
#include "forensics/fit_rows.h"
#include "forensics/fit_used.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 12 };

#define KEY UINT64_C(0x736d616c6c)

const char *const small_shapes[SMALL_SHAPES] = {
    "plain",         "skips told",  "skip hidden", "skip shown by the norm",
    "skips counted", "skips since", "scale falls", "resumed",
    "resumed anew",  "other total", "other peak",  "counter doubled",
    "rows twice",    "gap",         "first odd",   "last off",
    "without steps", "constant",    "zeros",       "ahead of the updates"};

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
        if (s->size == SMALL_LONG &&
            (r->contract->on_skip != CONTRACT_SKIP_HOLD || r->contract->bug))
            continue;
        r->steps = 1 + pick(s, 12) + (s->size == SMALL_LONG ? 30 + pick(s, 30) : 0);
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
    if (s->shape == SMALL_RESET && since > 0) value = contract_logged(&plan, since);
    if (s->shape == SMALL_DOUBLED && since > 0) value = contract_logged(&plan, k + resumed - 1);
    if (s->shape == SMALL_OTHER_PEAK && since > 0) value *= 0.5;
    if (s->shape == SMALL_AHEAD) value = contract_logged(&plan, 2 * k);
    if (s->shape == SMALL_CONSTANT) value = s->request.lr;
    if (s->shape == SMALL_ZEROS) value = 0.0;
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
        const double norm = count > 0.0 && s->shape == SMALL_SKIP_NORM
                                ? (double)INFINITY
                                : 1.0 + 0.1 * (double)(i % 3);
        if (s->shape != SMALL_SKIP_HIDDEN || s->draws.number % 2 == 0)
            helper_put(&s->arena, s->log, LOG_GRAD_NORM, i, norm, 4);
        if (s->shape == SMALL_SKIP_COUNTED)
            helper_put(&s->arena, s->log, LOG_SKIPPED, i, total, PRINT_EXACT);
        if (s->shape == SMALL_SKIP_SINCE)
            helper_put(&s->arena, s->log, LOG_SKIPPED, i, count, PRINT_EXACT);
        if (s->shape == SMALL_SKIP_SCALE)
            helper_put(&s->arena, s->log, LOG_LOSS_SCALE, i, scale, PRINT_EXACT);
    }
    for (size_t i = 0; i < s->log->column_count; i++)
        if (s->log->columns[i].name == LOG_SKIPPED)
            s->log->columns[i].cumulative = s->shape == SMALL_SKIP_COUNTED;
}

/* The number that row i bears, of rows that begin at `first`: one of them twice, or missing. */
static int64_t number_of(const struct small *s, size_t i, uint64_t first, uint64_t every,
                         size_t odd) {
    const size_t at = s->shape == SMALL_TWICE && i > odd ? i - 1
                      : s->shape == SMALL_GAP && i > odd ? i + 1
                                                         : i;
    return (int64_t)(first + at * every);
}

static size_t draw_rows(struct small *s) {
    const size_t drawn = pick(s, ROWS);
    return s->size == SMALL_FEW ? 3 + drawn % 3 : 1 + drawn + (s->size == SMALL_LONG ? 18 : 0);
}

static void draw_log(struct small *s) {
    static const int prints[] = {PRINT_EXACT, PRINT_EXACT, PRINT_BINARY32, PRINT_E2, PRINT_E6, 8};
    const size_t rows = draw_rows(s), odd = pick(s, (uint32_t)rows);
    const uint64_t first = pick(s, 3) == 0 ? 1 + pick(s, 3) : 1;
    const uint64_t every = pick(s, 4) == 0 ? 2 + pick(s, 2) : 1;
    const int print = prints[pick(s, COUNT_OF(prints))];
    const int skips = s->shape >= SMALL_SKIPS_TOLD && s->shape <= SMALL_SKIP_SCALE;
    uint64_t resumed = UINT64_MAX;
    s->log = helper_log(&s->arena, rows);
    for (size_t i = 0; i < rows; i++)
        s->log->step[i] = number_of(s, i, first, every, odd);
    if (s->shape >= SMALL_REPEATED && s->shape <= SMALL_DOUBLED && odd > 0) {
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
        if (s->shape == SMALL_OTHER_TOTAL && s->log->part[i] > 0) {
            struct contract_request longer = s->request;
            struct contract_plan plan;
            longer.steps += 3;
            if (contract_resolve(&longer, &s->arena, &plan) == STATUS_OK)
                value = contract_logged(&plan, (uint64_t)s->log->step[i]);
        }
        if (s->shape == SMALL_FIRST_ODD && i == 0)
            value = odd % 3 == 0 ? 0.0 : odd % 3 == 1 ? s->request.lr : (double)NAN;
        if (s->shape == SMALL_LAST_OFF && i + 1 == rows) value *= 1.25;
        helper_put(&s->arena, s->log, LOG_LR_LOGGED, i, value, print);
        helper_put(&s->arena, s->log, LOG_LOSS, i, 2.5 - 0.05 * (double)i, 4);
        if (pick(s, 8) > 0)
            helper_put(&s->arena, s->log, LOG_EPOCH, i,
                       (double)s->log->step[i] / (double)s->request.updates_per_epoch, 2);
    }
    if (skips) put_evidence(s, rows);
    if (s->shape == SMALL_NO_STEPS) s->log->step_guessed = 1;
    if (pick(s, 3) > 0) s->log->max_steps = s->request.steps;
}

void small_draw(struct small *s, uint32_t number, enum small_size size) {
    memset(s, 0, sizeof *s);
    s->draws = (struct draws){.key = KEY, .number = number};
    s->size = size;
    s->shape =
        size == SMALL_LONG
            ? (enum small_shape)(SMALL_SKIPS_TOLD + number % (SMALL_OTHER_PEAK - SMALL_SKIPS_TOLD))
        : size == SMALL_FEW
            ? (enum small_shape)(SMALL_SKIPS_TOLD + number % (SMALL_TWICE - SMALL_SKIPS_TOLD))
            : (enum small_shape)(number % SMALL_SHAPES);
    draw_request(s, number);
    draw_log(s);
    fit_known_init(&s->known);
    s->known.limit = 6;
    s->known.request.accumulate = s->request.accumulate;
    s->known.request.processes = s->request.processes;
    s->known.request.global_batch = s->request.global_batch;
    s->known.request.tokens = s->request.tokens;
    /* Most are asked of the contract alone: a search among all takes long. */
    if (size != SMALL_SHORT || number % 16 != 5 || s->log->rows > 4)
        s->known.request.contract = s->request.contract;
    if (s->shape == SMALL_SKIPS_TOLD) {
        s->known.request.skipped = s->skipped;
        s->known.request.skipped_count = s->plan.skipped_count;
    }
    size_t counted;
    must(fit_known_from_log(&s->known, s->log, &s->arena));
    must(fit_skipped_from_log(&s->known, s->log, &s->arena, &counted));
    must(series_of(s->log, log_column_of(s->log, LOG_LR_LOGGED), &s->arena, &s->series));
}

/* ---- what is said ---- */

FILE *small_said_begin(struct small_said *said) {
    said->stream = open_memstream(&said->text, &said->size);
    assert_non_null(said->stream);
    return said->stream;
}

/* The number made of it, which goes behind its first words. */
void small_said_end(struct small_said *said, uint32_t number, FILE *out) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    assert_int_equal(fclose(said->stream), 0);
    fprintf(out, " [%08" PRIx64 "]\n", draws_hash(DRAWS_HASH, said->text, said->size) >> 32);
    if (shown != NULL && number == (uint32_t)strtoul(shown, NULL, 10))
        print_message("%s\n", said->text);
    free(said->text);
}

void small_ask_fit(struct small *s, FILE *out) {
    struct small_said said;
    struct fit_used used;
    const char *words;
    size_t at;
    FILE *all = small_said_begin(&said);
    if (s->shape == SMALL_NO_STEPS) {
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
    small_said_end(&said, s->draws.number, out);
}

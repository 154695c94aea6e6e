/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * The doctor, comparisons and judgements of restarts over sweeps of one number: every length of
 * every scene, and every column of a healthy training scaled by many factors from several rows on.
 * A threshold lies somewhere on each sweep, so moving it by one moves an answer. At no length may
 * the healthy log have a finding, and at its full length each scene must have its own.
 *
 * tests/golden/forensics/sweeps.txt holds where on a sweep the findings change, and one number made
 * of all texts (FNV-1a). With TWINSTEP_SWEEP=NAME the texts of that sweep are printed: compare them
 * with those of the program before the change. */
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
#include "forensics/trajectory.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_pair.h"
#include "tests/forensics/helper_scene.h"

#define GOLDEN "sweeps.txt"
#define IDS 1024

enum kind { OF_DOCTOR = 0, OF_COMPARISON, OF_REVERSED, OF_RESTART };
static const char *const kinds[] = {"doctor", "compare", "compare, reversed", "restart"};

/* One sweep: the text of each step is hashed, and a line tells where the short answer changes. */
struct sweep {
    FILE *out;
    const char *name;
    uint64_t hash;
    char last[4][IDS]; /* by enum kind: what was said at the step before */
    char *text;
    size_t size;
    FILE *step;
};

static void sweep_open(struct sweep *sweep, const char *name) {
    *sweep = (struct sweep){.name = name, .hash = UINT64_C(0xcbf29ce484222325)};
    sweep->out = golden_begin(GOLDEN, "%s", name);
}

static FILE *sweep_step(struct sweep *sweep) {
    sweep->step = open_memstream(&sweep->text, &sweep->size);
    assert_non_null(sweep->step);
    return sweep->step;
}

static void sweep_stepped(struct sweep *sweep, enum kind kind, const char *at, const char *brief) {
    const char *const shown = getenv("TWINSTEP_SWEEP");
    assert_int_equal(fclose(sweep->step), 0);
    for (size_t i = 0; i < sweep->size; i++)
        sweep->hash = (sweep->hash ^ (unsigned char)sweep->text[i]) * UINT64_C(0x100000001b3);
    if (shown != NULL && strcmp(shown, sweep->name) == 0) print_message("%s\n%s", at, sweep->text);
    free(sweep->text);
    if (strcmp(brief, sweep->last[kind]) == 0) return;
    fprintf(sweep->out, "%s, %s: %s\n", kinds[kind], at, brief);
    snprintf(sweep->last[kind], sizeof sweep->last[kind], "%s", brief);
}

static void sweep_close(struct sweep *sweep) {
    fprintf(sweep->out, "texts %016llx\n", (unsigned long long)sweep->hash);
    golden_end();
}

/* ---- the doctor ---- */

/* Writes all that is said, reasons and lines too. */
static void write_report(FILE *out, const struct doctor_report *report) {
    golden_findings(out, report);
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++)
        fprintf(out, "%s | %s | %s\n", report->findings[i].check, report->findings[i].reason,
                report->findings[i].next);
    for (size_t i = 0; i < report->line_count; i++)
        fprintf(out, "%s %d %s\n", report->lines[i].id, report->lines[i].result,
                report->lines[i].why != NULL ? report->lines[i].why : "-");
}

static void name_findings(const struct doctor_report *report, char *out) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++) {
        const struct doctor_finding *finding = &report->findings[i];
        used += (size_t)snprintf(out + used, IDS - used, "%s%s%s", i > 0 ? ", " : "",
                                 finding->remark ? "~" : "", finding->id);
        assert_true(used < IDS);
    }
}

static void examine(struct sweep *sweep, const struct log *log,
                    const struct doctor_options *options, const char *at, char *ids) {
    struct arena arena = ARENA_EMPTY;
    struct doctor_report report;
    FILE *out = sweep_step(sweep);
    assert_int_equal(doctor_examine(log, options, NULL, &arena, &report), STATUS_OK);
    write_report(out, &report);
    name_findings(&report, ids);
    sweep_stepped(sweep, OF_DOCTOR, at, ids);
    arena_close(&arena);
}

static void open_patient(struct patient *p) {
    memset(p, 0, sizeof *p);
    doctor_options_init(&p->options);
    p->log = helper_dpo(&p->arena);
}

static void every_length(struct patient *p, const char *name, char *ids) {
    struct sweep sweep;
    char at[32];
    const size_t rows = p->log->rows;
    sweep_open(&sweep, name);
    for (size_t n = 1; n <= rows; n++) {
        p->log->rows = n;
        snprintf(at, sizeof at, "%zu rows", n);
        examine(&sweep, p->log, &p->options, at, ids);
        if (strcmp(name, "healthy") == 0 && ids[0] != '\0' && ids[0] != '~')
            fail_msg("healthy, %zu rows: %s", n, ids);
    }
    sweep_close(&sweep);
}

static const struct scene *const tables[] = {scenes_of_values, scenes_of_lr, scenes_of_runs};

static void verify_every_length(void **state) {
    struct patient p;
    char ids[IDS];
    (void)state;
    open_patient(&p);
    every_length(&p, "healthy", ids);
    arena_close(&p.arena);
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (const struct scene *scene = tables[t]; scene->name != NULL; scene++) {
            char name[96];
            open_patient(&p);
            scene->make(&p);
            snprintf(name, sizeof name, "length %s", scene->name);
            every_length(&p, name, ids);
            if (scene->finding != NULL && !p.fits && strstr(ids, scene->finding) == NULL)
                fail_msg("%s: %s is not among %s", scene->name, scene->finding, ids);
            arena_close(&p.arena);
        }
}

/* ---- factors ---- */

static const double factors[] = {0.0, 0.1, 0.25, 0.5, 0.9,  1.01, 1.1, 1.5,
                                 2.0, 3.0, 4.0,  8.0, 64.0, -1.0, NAN, INFINITY};

/* Scales the rows from..end-1 of a column. */
static void scale_rows(struct arena *arena, struct log *log, enum log_name name, size_t from,
                       size_t end, double factor) {
    const struct log_column *column = log_column_of(log, name);
    for (size_t row = from; row < end && row < log->rows; row++)
        if (log_has(column, row))
            helper_put(arena, log, name, row, factor * column->value[row], PRINT_EXACT);
}

/* One of the logs may end before the other: the sweep asks what the rows of both tell. */
static void compare_step(struct sweep *sweep, enum kind kind, const struct log *a,
                         const struct log *b, const char *at) {
    struct arena arena = ARENA_EMPTY;
    const struct compare_input input[2] = {{.log = a, .may_end = 1}, {.log = b, .may_end = 1}};
    struct compare_report report;
    char brief[IDS];
    FILE *out = sweep_step(sweep);
    assert_int_equal(compare_logs(input, &arena, &report), STATUS_OK);
    golden_comparison(out, &report);
    snprintf(brief, sizeof brief, "%s, cause %d, %zu ratios",
             compare_verdict_name((enum compare_verdict)report.verdict), report.cause,
             report.ratio_count);
    sweep_stepped(sweep, kind, at, brief);
    arena_close(&arena);
}

static void judge_step(struct sweep *sweep, const struct log *before, const struct log *after,
                       uint64_t restart, const char *at) {
    struct arena arena = ARENA_EMPTY;
    const struct trajectory_side sides[2] = {{.log = before}, {.log = after}};
    struct trajectory found;
    char brief[IDS] = "";
    size_t used = 0;
    FILE *out = sweep_step(sweep);
    assert_int_equal(trajectory_judge(&sides[0], &sides[1], restart, &arena, &found), STATUS_OK);
    fprintf(out, "%llu %llu %llu %s\n", (unsigned long long)found.restart,
            (unsigned long long)found.rows, (unsigned long long)found.differs,
            found.column != NULL ? found.column : "-");
    for (size_t i = 0; i < TRAJECTORY_PARTS; i++) {
        fprintf(out, "%d %s %s\n", (int)found.items[i].state, found.items[i].text,
                found.items[i].bug != NULL ? found.items[i].bug : "-");
        used += (size_t)snprintf(brief + used, sizeof brief - used, "%s%s", i > 0 ? ", " : "",
                                 trajectory_state_names[found.items[i].state]);
    }
    sweep_stepped(sweep, OF_RESTART, at, brief);
    arena_close(&arena);
}

/* Returns the log without its first rows. */
static struct log behind(const struct log *log, struct arena *arena, size_t row) {
    struct log out = *log;
    struct log_column *columns;
    assert_int_equal(arena_take(arena, log->column_count, sizeof *columns, "columns", &columns),
                     STATUS_OK);
    for (size_t c = 0; c < log->column_count; c++) {
        columns[c] = log->columns[c];
        columns[c].value += row;
        columns[c].quantum += row;
    }
    out.columns = columns;
    out.rows -= row;
    out.step += row;
    out.line += row;
    out.part += row;
    return out;
}

/* Of the logs that a change makes: what the doctor says, what a comparison with the healthy one
 * says in either order, and what is said of a restart behind row 20. */
static void verify_every_factor(void **state) {
    static const size_t ranges[][2] = {{0, 60}, {0, 1}, {1, 2}, {20, 60}, {30, 33}, {59, 60}};
    (void)state;
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++) {
        struct patient healthy;
        struct sweep doctor;
        char title[64], at[64], ids[IDS];
        open_patient(&healthy);
        if (log_column_of(healthy.log, (enum log_name)name) != NULL) {
            snprintf(title, sizeof title, "factors of %s", log_names[name].name);
            sweep_open(&doctor, title);
            for (size_t r = 0; r < COUNT_OF(ranges); r++)
                for (size_t f = 0; f < COUNT_OF(factors); f++) {
                    struct patient p;
                    open_patient(&p);
                    scale_rows(&p.arena, p.log, (enum log_name)name, ranges[r][0], ranges[r][1],
                               factors[f]);
                    snprintf(at, sizeof at, "rows %zu to %zu times %g", ranges[r][0],
                             ranges[r][1] - 1, factors[f]);
                    examine(&doctor, p.log, &p.options, at, ids);
                    compare_step(&doctor, OF_COMPARISON, healthy.log, p.log, at);
                    compare_step(&doctor, OF_REVERSED, p.log, healthy.log, at);
                    const struct log after = behind(p.log, &p.arena, 20);
                    judge_step(&doctor, healthy.log, &after, TRAJECTORY_UNKNOWN, at);
                    arena_close(&p.arena);
                }
            sweep_close(&doctor);
        }
        arena_close(&healthy.arena);
    }
}

/* Every scene beside the healthy log, at several lengths, and as what was logged behind a restart.
 */
static void verify_every_pair(void **state) {
    static const size_t lengths[] = {1, 2, 3, 4, 5, 7, 10, 19, 20, 21, 22, 23, 30, 60};
    struct patient healthy;
    (void)state;
    open_patient(&healthy);
    const size_t rows = healthy.log->rows;
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (const struct scene *scene = tables[t]; scene->name != NULL; scene++) {
            struct patient p;
            struct sweep sweep;
            char title[96], at[48];
            open_patient(&p);
            scene->make(&p);
            snprintf(title, sizeof title, "pairs of %s", scene->name);
            sweep_open(&sweep, title);
            for (size_t i = 0; i < COUNT_OF(lengths); i++) {
                const size_t all = p.log->rows;
                p.log->rows = lengths[i] < all ? lengths[i] : all;
                snprintf(at, sizeof at, "%zu rows", lengths[i]);
                compare_step(&sweep, OF_COMPARISON, healthy.log, p.log, at);
                judge_step(&sweep, healthy.log, p.log, lengths[i] / 2, at);
                judge_step(&sweep, p.log, healthy.log, TRAJECTORY_UNKNOWN, at);
                p.log->rows = all;
                healthy.log->rows = lengths[i] < rows ? lengths[i] : rows;
                compare_step(&sweep, OF_REVERSED, p.log, healthy.log, at);
                healthy.log->rows = rows;
            }
            sweep_close(&sweep);
            arena_close(&p.arena);
        }
    arena_close(&healthy.arena);
}

/* ---- how many rows have it ---- */

/* The healthy training, or one of a single pair in each row, whose accuracies are 0 or 1. */
static void open_base(struct patient *p, int one_pair) {
    static const struct helper_training single = {60,          5,   1, 1,    PRINT_EXACT,
                                                  PRINT_EXACT, 1.5, 0, NULL, NULL};
    open_patient(p);
    if (one_pair) p->log = helper_trained(&p->arena, &single);
}

/* Scales the first 1, 2, ... rows of a column: shares of rows such as 9 of 10 are met exactly. */
static void verify_every_count(void **state) {
    static const double symptoms[] = {0.0, -1.0, 0.5, 1.25, 2.0, NAN};
    static const size_t counts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 15, 18, 19, 20,
                                    21, 24, 29, 30, 31, 36, 40, 45, 48, 53, 54, 55, 58, 59, 60};
    (void)state;
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++)
        for (int one_pair = 0; one_pair < 2; one_pair++) {
            struct sweep sweep;
            char title[64], at[64], ids[IDS];
            struct patient p;
            open_base(&p, one_pair);
            const int has = log_column_of(p.log, (enum log_name)name) != NULL;
            arena_close(&p.arena);
            if (!has) continue;
            snprintf(title, sizeof title, "counts of %s, base %d", log_names[name].name, one_pair);
            sweep_open(&sweep, title);
            for (size_t f = 0; f < COUNT_OF(symptoms); f++)
                for (size_t n = 0; n < COUNT_OF(counts); n++) {
                    open_base(&p, one_pair);
                    scale_rows(&p.arena, p.log, (enum log_name)name, 0, counts[n], symptoms[f]);
                    snprintf(at, sizeof at, "%zu rows times %g", counts[n], symptoms[f]);
                    examine(&sweep, p.log, &p.options, at, ids);
                    arena_close(&p.arena);
                }
            sweep_close(&sweep);
        }
}

/* ---- what is said beside the log ---- */

static void verify_every_option(void **state) {
    static const double decays[] = {NAN, 0.0, 1e-4, 0.01, 0.1, 0.9, 10.0, 1e4, 1e6};
    static const double rates[] = {1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5};
    struct sweep sweep;
    char at[64], ids[IDS];
    (void)state;
    sweep_open(&sweep, "options");
    for (uint64_t n = 0; n < 10; n++) {
        struct patient p;
        open_patient(&p);
        p.options.processes = n;
        p.options.accumulate = n / 2;
        p.options.pairs = n;
        snprintf(at, sizeof at, "processes %llu", (unsigned long long)n);
        examine(&sweep, p.log, &p.options, at, ids);
        arena_close(&p.arena);
    }
    for (uint64_t vocab = 0; vocab < 60; vocab++) {
        struct patient p;
        open_patient(&p);
        helper_drop(p.log, LOG_REWARD_MARGIN);
        helper_drop(p.log, LOG_REWARD_CHOSEN);
        helper_drop(p.log, LOG_LOGP_CHOSEN);
        scene_put(&p, LOG_LOSS, 0, 2.0);
        p.options.vocab = vocab;
        snprintf(at, sizeof at, "vocabulary %llu", (unsigned long long)vocab);
        examine(&sweep, p.log, &p.options, at, ids);
        arena_close(&p.arena);
    }
    for (int32_t dtype = 0; dtype < 3; dtype++)
        for (size_t d = 0; d < COUNT_OF(decays); d++)
            for (size_t r = 0; r < COUNT_OF(rates); r++) {
                struct patient p;
                open_patient(&p);
                scale_rows(&p.arena, p.log, LOG_LR_LOGGED, 0, 60, rates[r]);
                p.options.dtype_given = 1;
                p.options.dtype = dtype;
                p.options.master_none = (int)(d % 2);
                p.options.weight_decay = decays[d];
                snprintf(at, sizeof at, "dtype %d, decay %g, LR times %g", dtype, decays[d],
                         rates[r]);
                examine(&sweep, p.log, &p.options, at, ids);
                arena_close(&p.arena);
            }
    sweep_close(&sweep);
}

/* ---- how it is printed, and which rows there are ---- */

static void step_all(struct sweep *sweep, const struct log *healthy, const struct patient *p,
                     const char *at) {
    char ids[IDS];
    examine(sweep, p->log, &p->options, at, ids);
    compare_step(sweep, OF_COMPARISON, healthy, p->log, at);
    compare_step(sweep, OF_REVERSED, p->log, healthy, at);
}

static void verify_every_print(void **state) {
    struct patient healthy;
    struct sweep sweep;
    char at[64];
    (void)state;
    open_patient(&healthy);
    sweep_open(&sweep, "decimals");
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++)
        for (int decimals = 0; decimals < 9; decimals++) {
            struct patient p;
            open_patient(&p);
            const struct log_column *column = log_column_of(p.log, (enum log_name)name);
            for (size_t row = 0; column != NULL && row < p.log->rows; row++)
                if (log_has(column, row))
                    helper_put(&p.arena, p.log, (enum log_name)name, row, column->value[row],
                               decimals);
            snprintf(at, sizeof at, "%s with %d decimals", log_names[name].name, decimals);
            if (column != NULL) step_all(&sweep, healthy.log, &p, at);
            arena_close(&p.arena);
        }
    sweep_close(&sweep);
    arena_close(&healthy.arena);
}

static void verify_every_numbering(void **state) {
    struct patient healthy;
    struct sweep sweep;
    char at[64];
    (void)state;
    open_patient(&healthy);
    sweep_open(&sweep, "numbering");
    for (int64_t by = -4; by < 5; by++)
        for (int64_t every = 1; every < 4; every++) {
            struct patient p;
            open_patient(&p);
            for (size_t row = 0; row < p.log->rows; row++)
                p.log->step[row] = every * p.log->step[row] + by;
            snprintf(at, sizeof at, "update %lld k %+lld", (long long)every, (long long)by);
            step_all(&sweep, healthy.log, &p, at);
            arena_close(&p.arena);
        }
    for (size_t writers = 2; writers < 5; writers++)
        for (int64_t apart = -40; apart < 41; apart += 10)
            for (size_t run = 1; run < 4; run++) {
                struct patient p;
                open_patient(&p);
                for (size_t row = 0; row < p.log->rows; row++)
                    p.log->step[row] = 1 + (int64_t)(row / (writers * run) * run + row % run) +
                                       (apart < 0 ? -apart : apart) *
                                           (int64_t)(apart < 0 ? writers - 1 - row / run % writers
                                                               : row / run % writers);
                snprintf(at, sizeof at, "%zu writers, %zu rows at a time, %lld apart", writers, run,
                         (long long)apart);
                step_all(&sweep, healthy.log, &p, at);
                arena_close(&p.arena);
            }
    for (size_t row = 1; row < 60; row += 7)
        for (int64_t back = -3; back < 12; back += 2) {
            struct patient p;
            open_patient(&p);
            const int64_t to = p.log->step[row] - back;
            if (to >= 1) helper_resume(p.log, row, to);
            snprintf(at, sizeof at, "row %zu is update %lld", row, (long long)to);
            if (to >= 1) step_all(&sweep, healthy.log, &p, at);
            arena_close(&p.arena);
        }
    sweep_close(&sweep);
    arena_close(&healthy.arena);
}

/* ---- what was applied beside what is printed ---- */

static void verify_every_applied(void **state) {
    static const size_t from[] = {0, 1, 2, 3, 5, 20, 55, 57, 58, 59};
    static const size_t rows[] = {60, 10, 4, 3, 2, 1};
    struct sweep sweep;
    char at[64], ids[IDS];
    (void)state;
    sweep_open(&sweep, "applied");
    for (size_t n = 0; n < COUNT_OF(rows); n++)
        for (int shift = -2; shift < 4; shift++)
            for (size_t f = 0; f < COUNT_OF(from); f++) {
                struct patient p;
                open_patient(&p);
                const struct log_column *printed = log_column_of(p.log, LOG_LR_LOGGED);
                for (size_t row = 0; row < p.log->rows; row++) {
                    size_t other = row >= from[f] ? row + (size_t)shift : row;
                    if (other >= p.log->rows) other = shift < 0 ? 0 : p.log->rows - 1;
                    /* a shift of 3 stands for an LR that stands still */
                    const double value = printed->value[shift == 3 && row >= from[f] ? 0 : other];
                    helper_put(&p.arena, p.log, LOG_LR_APPLIED, row, value, PRINT_EXACT);
                    printed = log_column_of(p.log, LOG_LR_LOGGED);
                }
                p.log->rows = rows[n];
                snprintf(at, sizeof at, "%zu rows, %d updates apart from row %zu on", rows[n],
                         shift, from[f]);
                examine(&sweep, p.log, &p.options, at, ids);
                arena_close(&p.arena);
            }
    sweep_close(&sweep);
}

/* ---- further parameter groups ---- */

static const char *const group_names[] = {"lr_applied[1]", "lr_logged[1]", "lr_applied[2]",
                                          "lr_logged[3]"};

/* Adds the groups whose bits are set; those in `other` have another LR from row 10 on. */
static void add_groups(struct patient *p, unsigned bits, unsigned other) {
    for (size_t g = 0; g < COUNT_OF(group_names); g++) {
        if ((bits >> g & 1u) == 0) continue;
        struct log_column *column = helper_column(&p->arena, p->log, LOG_OTHER);
        const struct log_column *lr = log_column_of(p->log, LOG_LR_LOGGED);
        column->source = group_names[g];
        for (size_t row = 0; row < p->log->rows; row++) {
            column->value[row] = lr->value[row] * ((other >> g & 1u) && row >= 10 ? 0.5 : 1.0);
            column->quantum[row] = 0.0f;
        }
    }
}

static void group_step(struct sweep *sweep, unsigned a, unsigned b, unsigned other) {
    struct patient p[2];
    struct arena arena = ARENA_EMPTY;
    struct compare_report report;
    char at[64];
    for (size_t s = 0; s < 2; s++) {
        open_patient(&p[s]);
        add_groups(&p[s], s == 0 ? a : b, s == 0 ? 0 : other);
    }
    const struct compare_input input[2] = {{.log = p[0].log}, {.log = p[1].log}};
    FILE *out = sweep_step(sweep);
    assert_int_equal(compare_logs(input, &arena, &report), STATUS_OK);
    fprintf(out, "%zu groups, %zu differ, %zu alone, first %s, %u from %llu: %s\n",
            report.lr.group_count, report.lr.groups_differ, report.lr.groups_alone,
            report.lr.group_first != NULL ? report.lr.group_first->source : "-", report.lr.group,
            (unsigned long long)report.lr.first_update, report.lr.groups_words);
    golden_comparison(out, &report);
    snprintf(at, sizeof at, "groups %x and %x, of which %x differ", a, b, other);
    sweep_stepped(sweep, OF_COMPARISON, at,
                  compare_verdict_name((enum compare_verdict)report.verdict));
    arena_close(&arena);
    for (size_t s = 0; s < 2; s++)
        arena_close(&p[s].arena);
}

static void verify_every_group(void **state) {
    static const unsigned others[] = {0, 1, 2, 4, 6, 12, 15};
    struct sweep sweep;
    (void)state;
    sweep_open(&sweep, "groups");
    for (unsigned a = 0; a < 16; a++)
        for (size_t o = 0; o < COUNT_OF(others); o++) {
            group_step(&sweep, a, a, others[o]);
            group_step(&sweep, a, 15 - a, others[o]);
            group_step(&sweep, a, 15, others[o]);
        }
    sweep_close(&sweep);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_length),    cmocka_unit_test(verify_every_factor),
        cmocka_unit_test(verify_every_count),     cmocka_unit_test(verify_every_pair),
        cmocka_unit_test(verify_every_option),    cmocka_unit_test(verify_every_print),
        cmocka_unit_test(verify_every_numbering), cmocka_unit_test(verify_every_applied),
        cmocka_unit_test(verify_every_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

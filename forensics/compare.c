/* SPDX-License-Identifier: Apache-2.0
 * Puts the parts of a comparison together: columns, order, ratios, applied LR, verdict.
 *
 * Invariant: the order of differing columns is total, since no two columns have one name. */
#include "forensics/compare.h"

#include <inttypes.h>
#include <string.h>

#include "base/real.h"
#include "determinism/certify.h"
#include "determinism/comparable.h"
#include "determinism/trace.h"
#include "forensics/compare_foreign.h"
#include "forensics/compare_parts.h"
#include "forensics/fit_used.h"

const char *compare_class_name(enum compare_class class_of) {
    static const char *const names[] = {"equal", "equal within precision", "different",
                                        "not in both"};
    return names[class_of];
}

const char *compare_verdict_name(enum compare_verdict verdict) {
    static const char *const names[] = {"equal-within-precision", "differs", "untestable"};
    return names[verdict];
}

const struct compare_column *compare_column_of(const struct compare_report *report,
                                               enum log_name name) {
    for (size_t i = 0; i < report->column_count; i++)
        if (report->columns[i].name == (int32_t)name) return &report->columns[i];
    return NULL;
}

/* Of epochs that stand twice, those that no repeated row explains are of rows of evaluations, where
 * a log has such; else they count as every other column does. */
static void judge_repeated(const struct compare_input *input, struct compare_report *report) {
    for (size_t s = 0; s < 2; s++) {
        size_t *const repeated = &report->repeated[s], *const joined = &report->joined[s];
        const int evaluates = log_column_of(input[s].log, LOG_EVAL_LOSS) != NULL;
        if (!evaluates && *joined > *repeated) *repeated = *joined;
        *joined = *joined > *repeated ? *joined - *repeated : 0;
    }
}

static enum status fill_columns(const struct compare_input *input, struct arena *arena,
                                struct compare_report *report) {
    struct compare_column *columns;
    TRY(arena_take(arena, LOG_NAMES, sizeof *columns, "columns", &columns));
    report->columns = columns;
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++) {
        struct compare_column *column = &columns[report->column_count];
        *column = (struct compare_column){.name = name};
        for (size_t s = 0; s < 2; s++) {
            TRY(compare_align(input[s].log, name, arena, &column->side[s]));
            if (name == LOG_EPOCH)
                report->joined[s] = column->side[s].repeated;
            else if (column->side[s].repeated > report->repeated[s])
                report->repeated[s] = column->side[s].repeated;
        }
        if (column->side[0].count == 0 && column->side[1].count == 0) continue;
        if (input[0].run == NULL || input[1].run == NULL) compare_find_cells(column);
        compare_classify(column);
        if (input[0].log->by_epochs != input[1].log->by_epochs) {
            column->class_of = COMPARE_ABSENT;
            column->pairs = column->equal = column->within = column->different = 0;
            column->first_update = column->from = column->to = 0;
            column->why = "the steps of one begin anew in each epoch, of unknown length";
        }
        compare_find_end(column, (const struct log *const[]){input[0].log, input[1].log});
        report->column_count++;
        if (column->pairs == 0) continue;
        if (report->from == 0 || column->from < report->from) report->from = column->from;
        if (column->to > report->to) report->to = column->to;
    }
    judge_repeated(input, report);
    return STATUS_OK;
}

/* Orders the columns within one update: what is known before the forward pass, what the forward
 * pass gives, what the backward pass gives, what comes after. */
static int test_rank(int32_t name) {
    switch (name) {
    case LOG_TOKENS:
    case LOG_SAMPLES:
    case LOG_GLOBAL_BATCH:
        return 0;
    case LOG_LOSS:
        return 1;
    case LOG_LOGP_CHOSEN:
    case LOG_LOGP_REJECTED:
    case LOG_LOGITS_CHOSEN:
    case LOG_LOGITS_REJECTED:
    case LOG_REWARD_CHOSEN:
    case LOG_REWARD_REJECTED:
    case LOG_REWARD_MARGIN:
    case LOG_REWARD_ACCURACY:
        return 2;
    case LOG_GRAD_NORM:
        return 3;
    case LOG_LR_APPLIED:
        return 4;
    case LOG_LR_LOGGED:
        return 5;
    default:
        return 6;
    }
}

static int comes_before(const struct compare_column *a, const struct compare_column *b) {
    if (a->first_update != b->first_update) return a->first_update < b->first_update;
    return test_rank(a->name) < test_rank(b->name);
}

/* An insertion sort, since there is a handful of columns. */
static enum status put_in_order(struct compare_report *report, struct arena *arena) {
    uint32_t *order;
    TRY(arena_take(arena, report->column_count, sizeof *order, "order", &order));
    for (uint32_t c = 0; c < report->column_count; c++) {
        if (report->columns[c].class_of != COMPARE_DIFFERENT) continue;
        size_t at = report->order_count++;
        for (; at > 0 && comes_before(&report->columns[c], &report->columns[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
    report->order = order;
    return STATUS_OK;
}

static enum status find_ratios(struct compare_report *report, struct arena *arena) {
    struct compare_ratio *ratios;
    const struct compare_column *tokens = compare_column_of(report, LOG_TOKENS);
    TRY(arena_take(arena, report->column_count, sizeof *ratios, "ratios", &ratios));
    for (size_t c = 0; c < report->column_count; c++) {
        struct compare_ratio *ratio = &ratios[report->ratio_count];
        TRY(compare_find_ratio(&report->columns[c], tokens != NULL ? &tokens->side[0] : NULL,
                               ratio));
        report->ratio_count += ratio->kind != COMPARE_FACTOR_NONE;
    }
    report->ratios = ratios;
    return STATUS_OK;
}

/* Takes the explanation of each side that applies what its log records: the pairs that were tried
 * know the printed LRs alone. */
static enum status explain_applied(const struct compare_input *input, struct arena *arena,
                                   struct compare_lr *lr) {
    for (size_t s = 0; s < 2 && lr->fits[0] > 0 && lr->fits[1] > 0; s++) {
        const struct fit_set *const set = input[s].fits;
        struct fit_used used;
        TRY(fit_used_open(input[s].log, arena, &used));
        const struct fit *const found = fit_used_by(set, &used);
        lr->fit[s] = found != NULL ? found : &set->fits[0];
        lr->applied_update[s] = used.update;
        lr->applied_there[s] = used.update > 0 ? used.applied : 0.0;
        lr->expected_there[s] = used.update > 0 ? used.expected : 0.0;
    }
    return STATUS_OK;
}

/* Compares the applied LRs that both logs record, as traces of ours do: nothing needs to be fitted.
 */
static enum status applied_columns(const struct compare_input *input,
                                   const struct compare_column *column, struct arena *arena,
                                   struct compare_lr *lr) {
    char *text;
    lr->state = column->class_of == COMPARE_DIFFERENT ? COMPARE_LR_DIFFERENT : COMPARE_LR_SAME;
    TRY(explain_applied(input, arena, lr));
    if (lr->state == COMPARE_LR_SAME) {
        lr->shift = 0;
        lr->first_update = 0;
        lr->first[0] = lr->first[1] = 0.0;
        lr->words = lr->group_count == 0
                        ? "Both logs record the LR that was applied; it agrees."
                        : "Both logs record the LR that was applied; that of group 0 agrees.";
        return STATUS_OK;
    }
    lr->first_update = column->first_update;
    lr->first[0] = column->first[0].value;
    lr->first[1] = column->first[1].value;
    TRY(arena_format(arena, &text,
                     "Both logs record the LR that was applied; it differs from update %llu on "
                     "(%s against %s).",
                     (unsigned long long)lr->first_update,
                     word_apart(lr->first[0], lr->first[1]).text,
                     word_apart(lr->first[1], lr->first[0]).text));
    lr->words = text;
    return STATUS_OK;
}

/* Lets the LR of a further group count that differs before that of the first one does. Printed LRs
 * alone do not say that the applied ones differ, and they no longer say that these agree. Where the
 * first group differs no later, the line LR has said enough. */
static void take_group(struct compare_lr *lr) {
    const struct compare_group *const group = lr->group_first;
    if (group == NULL) return;
    if (lr->state == COMPARE_LR_DIFFERENT && lr->first_update <= group->column.first_update) {
        if (lr->groups_alone == 0) lr->groups_words = "";
        return;
    }
    if (group->is_applied)
        lr->state = COMPARE_LR_DIFFERENT;
    else if (lr->state != COMPARE_LR_DIFFERENT)
        lr->state = COMPARE_LR_UNTESTABLE;
    if (!group->is_applied) return;
    lr->group = group->group;
    lr->shift = 0;
    lr->first_update = group->column.first_update;
    lr->first[0] = group->column.first[0].value;
    lr->first[1] = group->column.first[1].value;
}

static enum status compare_lrs(const struct compare_input *input, struct arena *arena,
                               struct compare_report *report) {
    const struct compare_column *applied = compare_column_of(report, LOG_LR_APPLIED);
    const struct compare_column *logged = compare_column_of(report, LOG_LR_LOGGED);
    TRY(compare_applied(input, logged, arena, &report->lr));
    TRY(compare_groups(input, (const struct compare_column *const[]){applied, logged}, arena,
                       &report->lr));
    if (applied != NULL && applied->pairs > 0)
        TRY(applied_columns(input, applied, arena, &report->lr));
    take_group(&report->lr);
    return STATUS_OK;
}

/* Puts what further groups say behind the sentences of the first one. */
static enum status add_groups(struct compare_lr *lr, struct arena *arena) {
    char *text;
    if (lr->groups_words[0] == '\0') return STATUS_OK;
    TRY(arena_format(arena, &text, "%s%s", lr->words, lr->groups_words));
    lr->words = text;
    return STATUS_OK;
}

/* Returns the first update that may have a value above 0, which is 1 where the first row has one;
 * UINT64_MAX: no row has. */
static uint64_t first_above_zero(const struct compare_side *side) {
    for (size_t i = 0; i < side->count; i++) {
        const struct series_point point = compare_point(side, i);
        if (!(point.value <= 0.5 * point.quantum))
            return i > 0 ? compare_point(side, i - 1).update + 1 : 1;
    }
    return UINT64_MAX;
}

/* A warm-up from 0 lasts this many updates at LR 0 at most: the first ones of a float16 training
 * may be skipped (forensics/fit_skips.c). One bit of compare_report.starts each. */
#define ZERO_STEPS 64

/* Returns the first update of a side that applies an LR above 0, under the contract that takes it
 * earliest; 1 where nothing is known. Bit k - 1 of `starts` is set for what each contract takes. */
static uint64_t first_step(const struct compare_input *input, const struct compare_side *applied,
                           const struct compare_side *logged, uint64_t *starts) {
    const struct fit_set *fits = input->fits;
    if (applied != NULL && applied->count > 0) return first_above_zero(applied);
    if (logged == NULL || logged->count == 0) return 1;
    const uint64_t printed = first_above_zero(logged);
    if (printed == UINT64_MAX || fits == NULL || fits->count == 0) return printed;
    uint64_t first = ZERO_STEPS;
    for (size_t i = 0; i < fits->count; i++) {
        uint64_t k = 1;
        while (k < ZERO_STEPS && !(fit_applied(&fits->fits[i], 0, k) > 0.0))
            k++;
        if (k < first) first = k;
        if (k < ZERO_STEPS) *starts |= (uint64_t)1 << (k - 1);
    }
    return first;
}

static void find_start(const struct compare_input *input, struct compare_report *report) {
    const struct compare_column *applied = compare_column_of(report, LOG_LR_APPLIED);
    const struct compare_column *logged = compare_column_of(report, LOG_LR_LOGGED);
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    report->start = UINT64_MAX;
    report->starts = 0;
    for (size_t s = 0; s < 2; s++) {
        const uint64_t first =
            first_step(&input[s], applied != NULL ? &applied->side[s] : NULL,
                       logged != NULL ? &logged->side[s] : NULL, &report->starts);
        const int still = norm != NULL && norm->side[s].count > 0 &&
                          first_above_zero(&norm->side[s]) == UINT64_MAX;
        if (!still && first < report->start) report->start = first;
    }
}

/* Tells whether the column is of what training did. */
static int is_of_training(const struct compare_column *column) {
    const int rank = test_rank(column->name);
    return (rank >= 1 && rank <= 3) || column->name == LOG_PARAM_NORM ||
           column->name == LOG_EVAL_LOSS;
}

/* Tells whether some pair of numbers behind the first step shows what training did. */
static int shows_training(const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (column->pairs > 0 && column->last_number > report->start && is_of_training(column))
            return 1;
    }
    return 0;
}

/* Tells whether both logs have a column of what training did. */
static int names_training(const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (is_of_training(column) && column->side[0].count > 0 && column->side[1].count > 0)
            return 1;
    }
    return 0;
}

/* Tells whether a column of what training did shows in the digits that were compared that something
 * happened. */
static int any_moves(const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (is_of_training(column) && column->moves) return 1;
    }
    return 0;
}

/* Takes the simplest pair that agrees for the example. */
static void take_alike(struct compare_lr *lr) {
    lr->fit[0] = lr->alike[0];
    lr->fit[1] = lr->alike[1];
    lr->first_update = 0;
    lr->first[0] = lr->first[1] = 0.0;
    lr->shift = 0;
}

/* Other contracts may stand behind equal columns of LRs in any two logs. That is worth a line only
 * where something else points to the LR; else the example is the simplest pair that agrees, as two
 * schedules for one column of numbers would read like a difference. */
static void compare_quiet(struct compare_report *report) {
    const struct compare_column *logged = compare_column_of(report, LOG_LR_LOGGED);
    if (report->lr_of_print) {
        report->lr.words =
            "The printed LRs differ, and under these explanations the applied ones agree; "
            "others make them differ.";
        take_alike(&report->lr);
        return;
    }
    if (report->lr.state == COMPARE_LR_UNTESTABLE && report->lr.groups_differ > 0 &&
        report->lr.alike[0] != NULL && logged != NULL && logged->class_of != COMPARE_DIFFERENT &&
        report->lr.skips_part == 0) {
        report->lr.words = "The printed LRs of the first group agree.";
        take_alike(&report->lr);
        return;
    }
    if (report->lr.state != COMPARE_LR_UNTESTABLE || report->lr.groups_differ > 0 ||
        report->cause == CAUSE_SCHEDULE || report->lr_in_doubt || logged == NULL ||
        logged->class_of == COMPARE_DIFFERENT || !shows_training(report))
        return;
    report->lr.words =
        "The printed LRs agree, and nothing else points to the LR. Several contracts "
        "print this column; --contract-a and --contract-b say which ones ran.";
    if (report->lr.skips_part > 0) return;
    take_alike(&report->lr);
}

/* Tells whether both rows have a digest of each gradient, and the same ones. Runs whose roots can
 * be compared have the same tensors. */
static int equal_gradients(const struct trace_run_plan *plan, const struct record *x,
                           const struct record *y) {
    for (uint32_t t = 0; t < plan->shape.tensors; t++) {
        const uint8_t *digest = x->tensor_digests[t][TENSOR_DIGEST_GRADIENT];
        if (!record_has_digest(digest) ||
            memcmp(digest, y->tensor_digests[t][TENSOR_DIGEST_GRADIENT], RECORD_DIGEST_BYTES) != 0)
            return 0;
    }
    return plan->shape.tensors > 0;
}

/* Says why no root of both can be compared, if that is so: else whoever reads takes columns for
 * digests. Of runs that begin at other updates none can, though they have some. */
static enum status name_rootless(const struct trace_run *const *runs, struct arena *arena,
                                 struct compare_report *report) {
    char *text;
    const uint64_t first[2] = {runs[0]->updates > 0 ? trace_row(runs[0], 0)->step : 0,
                               runs[1]->updates > 0 ? trace_row(runs[1], 0)->step : 0};
    if (first[0] > 0 && first[1] > 0 && first[0] != first[1]) {
        report->roots = 0;
        TRY(arena_format(arena, &text,
                         "A begins at update %" PRIu64 " and B at update %" PRIu64
                         ", and a root is made of all updates before it, too",
                         first[0], first[1]));
        report->rootless = text;
        return STATUS_OK;
    }
    if (report->roots > 0) return STATUS_OK;
    if ((runs[0]->plan.foreign == NULL) != (runs[1]->plan.foreign == NULL)) {
        report->rootless = "one is a run of twinstep and the other of another program, and their "
                           "roots are made of other parts";
        return STATUS_OK;
    }
    TRY(arena_format(arena, &text, "%s", ""));
    for (int s = 0; s < 2 && runs[s]->plan.foreign != NULL; s++) {
        char lack[CERTIFY_WHY];
        certify_lack(runs[s], lack);
        if (lack[0] != '\0')
            TRY(arena_format(arena, &text, "%s%sin %c %s", text, text[0] == '\0' ? "" : "; ",
                             "AB"[s], lack));
    }
    report->rootless = text;
    return STATUS_OK;
}

/* Returns the first update in which anything of two runs differs, a column or a root; 0: none. */
static uint64_t first_apart(const struct compare_report *report) {
    uint64_t first = report->root_update;
    for (size_t i = 0; i < report->order_count; i++) {
        const uint64_t update = report->columns[report->order[i]].first_update;
        if (first == 0 || update < first) first = update;
    }
    return first;
}

/* Finds whether the loss that is logged is all that differs of what the roots are made of, in every
 * update of both, while weights move in one whose loss differs: a training that minimised another
 * loss would have moved them otherwise. */
static void find_logged_alone(const struct trace_run *a, const struct trace_run *b,
                              struct compare_report *report) {
    static const enum record_digest parts_said[] = {DIGEST_WEIGHTS, DIGEST_LR, DIGEST_BATCH,
                                                    DIGEST_RNG};
    uint8_t before[RECORD_DIGEST_BYTES] = {0};
    int moves = 0;
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        i += x->step <= y->step;
        j += y->step <= x->step;
        if (x->step != y->step) continue;
        const unsigned parts = compare_root_parts(x, y);
        const uint8_t *const weights = x->digests[DIGEST_WEIGHTS];
        /* What one of the two did not record is not known to be the same. */
        for (size_t d = 0; d < sizeof parts_said / sizeof *parts_said; d++)
            if (!record_has_digest(x->digests[parts_said[d]]) ||
                !record_has_digest(y->digests[parts_said[d]]))
                return;
        if ((parts & ~(1u << COMPARE_PART_LOSS)) != 0) return;
        moves |= parts != 0 && record_has_digest(before) &&
                 memcmp(weights, before, RECORD_DIGEST_BYTES) != 0;
        memcpy(before, weights, RECORD_DIGEST_BYTES);
    }
    report->logged_alone = moves;
}

/* Finds the first update whose roots differ, and up to there the first gradient that is the same in
 * both. */
static enum status find_roots(const struct trace_run *a, const struct trace_run *b,
                              struct arena *arena, struct compare_report *report) {
    char words[COMPARABLE_WHY], *text;
    if (report->roots == 0) return STATUS_OK;
    report->root_update = runs_first_apart(a, b, &report->gap);
    batch_gap_words(&report->gap, words);
    TRY(arena_format(arena, &text, "%s", words));
    report->batches_lack = text;
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        i += x->step <= y->step;
        j += y->step <= x->step;
        if (x->step != y->step) continue;
        if (report->gradient_update == 0 && equal_gradients(&a->plan, x, y))
            report->gradient_update = x->step;
        if (x->step != report->root_update) continue;
        report->same_gradient = equal_gradients(&a->plan, x, y);
        report->root_parts = compare_root_parts(x, y);
        first_find(&a->plan, x, &b->plan, y, &report->where);
        break;
    }
    if (report->root_update > 0) find_logged_alone(a, b, report);
    return STATUS_OK;
}

/* Compares what two runs of traces recorded beyond any log: draws and roots. */
static enum status compare_runs(const struct compare_input *input, struct arena *arena,
                                struct compare_report *report) {
    static const char *const names[2] = {"A", "B"};
    const struct trace_run *a = input[0].run, *b = input[1].run;
    char *words;
    report->rng_words = report->configurations = report->configurations_short = report->orders =
        report->rootless = report->batches_lack = "";
    report->known = (struct compare_recorded){.tensor = "", .step = "", .later = ""};
    if (a == NULL || b == NULL) return STATUS_OK;
    ledger_compare(a, b, &report->rng);
    TRY(ledger_words(&report->rng, names, arena, &words));
    report->rng_words = words;
    char unlike[COMPARABLE_WHY];
    report->unlike = runs_unlike(a, b, unlike);
    if (report->unlike) { /* columns may be compared, digests may not */
        TRY(arena_format(arena, &words, "%s", unlike));
        report->rootless = words;
    } else {
        TRY(runs_comparable(a, b, &report->roots));
        TRY(name_rootless((const struct trace_run *const[]){a, b}, arena, report));
    }
    if ((a->plan.foreign == NULL) == (b->plan.foreign == NULL)) report->loop = compare_loops(a, b);
    if (a->plan.foreign != NULL && b->plan.foreign != NULL) {
        TRY(compare_configurations(&a->plan, &b->plan, 0, arena, &report->configurations));
        TRY(compare_configurations(&a->plan, &b->plan, COMPARE_KEYS_SHORT, arena,
                                   &report->configurations_short));
        TRY(compare_orders(a, b, arena, &report->orders));
        report->unseen = compare_unseen_of(a, b);
        report->recorded = 1;
        report->optimizers_apart = compare_optimizers_apart(&a->plan, &b->plan);
        report->kernels_apart = compare_kernels_apart(&a->plan, &b->plan);
        report->labels_key = compare_labels_key(&a->plan, &b->plan);
        report->reference_apart = compare_reference_moves(&a->plan, &b->plan);
        report->settings_apart = compare_settings_apart(&a->plan, &b->plan);
        report->others_apart = compare_others_apart(&a->plan, &b->plan);
    }
    TRY(find_roots(a, b, arena, report));
    if (!report->recorded || report->unlike) return STATUS_OK;
    return compare_recordings(a, b, first_apart(report), arena, &report->known);
}

/* Returns the column of what training did that ends earlier in one log while that goes on, the
 * earliest end first; NULL: there is none. */
static const struct compare_column *find_end(const struct compare_report *report) {
    const struct compare_column *first = NULL;
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        const int rank = test_rank(column->name);
        if (column->ends_before > 0 && rank >= 1 && rank <= 3 &&
            (first == NULL || column->ends_before < first->ends_before))
            first = column;
    }
    return first;
}

static enum status judge_end(struct compare_report *report, struct arena *arena) {
    const struct compare_column *ends = find_end(report);
    char *text;
    if (report->verdict != COMPARE_VERDICT_EQUAL || ends == NULL) return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "every pair agrees, but from update %llu on %c has no number of %s and goes "
                     "on, and %c has some: a value that is not a number is often left out or "
                     "written as null",
                     (unsigned long long)ends->ends_before, "AB"[ends->ends_in],
                     log_names[ends->name].name, "BA"[ends->ends_in]));
    report->verdict = COMPARE_VERDICT_UNTESTABLE;
    report->why = text;
    return STATUS_OK;
}

/* A loss that both logs name and of which neither has a number is what most people compare logs
 * for. That it is missing in both is no agreement, whatever the other columns say; only equal roots
 * say more than it could. */
static void judge_blank(const struct compare_input *input, struct compare_report *report) {
    const int blank[2] = {input[0].log->blank_loss, input[1].log->blank_loss};
    if (report->verdict != COMPARE_VERDICT_EQUAL || report->roots > 0 || !(blank[0] || blank[1]))
        return;
    report->verdict = COMPARE_VERDICT_UNTESTABLE;
    report->why =
        blank[0] && blank[1] ? "every compared column agrees, but both logs name the loss and have "
                               "no number of it: it was not compared, and null or an empty cell is "
                               "also how NaN is written"
        : blank[0] ? "every compared column agrees, but A names the loss and has no number of it: "
                     "it was not compared, and null or an empty cell is also how NaN is written"
                   : "every compared column agrees, but B names the loss and has no number of it: "
                     "it was not compared, and null or an empty cell is also how NaN is written";
}

/* Finds the log that has no more rows while the other one goes on. One whose next row is not due
 * when the other one ends has not ended before it: rows that are written every ten updates end with
 * the tenth before. */
static enum status find_ended(const struct compare_input *input, struct arena *arena,
                              struct compare_report *report) {
    const uint64_t reach[2] = {compare_reach(input[0].log), compare_reach(input[1].log)};
    char *text;
    report->ended = "";
    for (int s = 0; s < 2; s++) {
        if (reach[s] == 0 || reach[1 - s] < reach[s] + compare_widest(input[s].log)) continue;
        TRY(arena_format(arena, &text, "%c ends at update %llu and %c goes on to %llu", "AB"[s],
                         (unsigned long long)reach[s], "BA"[s], (unsigned long long)reach[1 - s]));
        report->ended = text;
    }
    return STATUS_OK;
}

/* Two trainings of which one stopped early are not known to be equal, however equal they were. */
static enum status judge_ended(const struct compare_input *input, struct arena *arena,
                               struct compare_report *report) {
    char *text;
    TRY(find_ended(input, arena, report));
    const int may_end = input[0].may_end && input[1].may_end;
    report->undecided = report->ended[0] != '\0' && !may_end;
    if (report->verdict != COMPARE_VERDICT_EQUAL || report->ended[0] == '\0') return STATUS_OK;
    TRY(arena_format(arena, &text,
                     may_end
                         ? "%s; %s, and only updates of both were asked for (--common)"
                         : "%s, but %s: equal as far as both go, and no more is known (--common "
                           "asks for the updates of both alone)",
                     report->why, report->ended));
    report->why = text;
    if (!may_end) report->verdict = COMPARE_VERDICT_UNTESTABLE;
    return STATUS_OK;
}

/* Says how many pairs are no numbers in both, where nothing differs. */
static enum status add_not_finite(struct compare_report *report, struct arena *arena) {
    char *text = NULL;
    for (size_t i = 0; i < report->column_count && report->verdict != COMPARE_VERDICT_DIFFERS;
         i++) {
        const struct compare_column *column = &report->columns[i];
        if (column->not_finite == 0) continue;
        TRY(arena_format(arena, &text, "%s%s%zu of %zu of %s", text != NULL ? text : "",
                         text != NULL ? ", " : "", column->not_finite, column->pairs,
                         log_names[column->name].name));
    }
    if (text == NULL) return STATUS_OK;
    TRY(arena_format(
        arena, &text,
        "%s; pairs that are NaN or infinite in both (%s) say that both broke, and are no "
        "agreement of numbers",
        report->why, text));
    report->why = text;
    return STATUS_OK;
}

/* Says of how many rows the losses were compared, where that is less than half of those that
 * another column of what both logs hold was compared at: the verdict is that of few rows. */
static enum status add_few_losses(struct compare_report *report, struct arena *arena) {
    const struct compare_column *loss = NULL, *most = NULL;
    char *text;
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (column->name == LOG_LOSS) loss = column;
        if (most == NULL || column->pairs > most->pairs) most = column;
    }
    if (report->verdict != COMPARE_VERDICT_EQUAL || report->roots > 0 || loss == NULL ||
        loss->pairs == 0 || loss->pairs >= most->pairs - loss->pairs)
        return STATUS_OK;
    TRY(arena_format(arena, &text, "%s; the loss was compared at %zu of %zu rows only", report->why,
                     loss->pairs, most->pairs));
    report->why = text;
    return STATUS_OK;
}

/* How far a norm in f32 may be off, of sums in another order (chosen). */
#define NORM_ROUNDING 1e-5

/* Whether a column's pairs are apart by no more than an order of sums makes them. */
static int is_rounding(const struct compare_column *column) {
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const double a = compare_point(&column->side[0], i).value,
                     b = compare_point(&column->side[1], j).value;
        if (!(real_abs_f64(a - b) <= NORM_ROUNDING * real_abs_f64(a))) return 0;
    }
    return 1;
}

/* Finds whether nothing but norms differs, while the roots say that what they are norms of is the
 * same: ranks and shards add in other orders. */
static void find_norms_alone(struct compare_report *report) {
    int alone = report->roots > 0 && report->root_update == 0 && !report->unlike &&
                report->order_count > 0 && report->lr.groups_differ == 0;
    int rounds = 1;
    for (uint32_t c = 0; c < report->column_count && alone; c++) {
        const struct compare_column *const column = &report->columns[c];
        if (column->class_of != COMPARE_DIFFERENT) continue;
        alone = column->name == LOG_GRAD_NORM || column->name == LOG_PARAM_NORM;
        rounds &= is_rounding(column);
    }
    report->norms_alone = alone;
    report->norms_round = alone && rounds;
    const struct compare_column *const norm = compare_column_of(report, LOG_GRAD_NORM);
    if (report->unlike || report->lr.groups_differ > 0 ||
        (norm != NULL && norm->class_of == COMPARE_DIFFERENT && !is_rounding(norm)))
        report->logged_alone = 0;
}

static void judge(struct compare_report *report) {
    const int lr = report->lr.state;
    report->verdict = COMPARE_VERDICT_DIFFERS;
    find_norms_alone(report);
    if (report->norms_round) {
        report->verdict = COMPARE_VERDICT_EQUAL;
        report->why =
            "the roots are equal: weights, applied LRs and what else they are made of are "
            "the same bit for bit. Norms are apart by no more than sums in another order "
            "make them, as those of other ranks or shards are";
    } else if (report->order_count > 0) {
        report->why = "some column differs by more than its printed precision";
    } else if (report->lr.groups_differ > 0) {
        report->why = "the LR of a further parameter group differs by more than its printed "
                      "precision";
    } else if (report->rng.found || report->rng.place.stream != NULL) {
        report->why = "every compared column agrees, but other random words were drawn";
    } else if (report->unlike) {
        report->why = "every compared column agrees, but the two do not train the same tensors";
    } else if (report->root_update > 0) {
        report->why = "every compared column agrees, but the digests of the trainings differ";
    } else if (report->to == 0) {
        report->verdict = COMPARE_VERDICT_UNTESTABLE;
        report->why = "no column has one update in both logs";
    } else if (lr == COMPARE_LR_DIFFERENT) {
        report->why = "every printed column agrees, but the applied LRs differ under the contracts "
                      "that explain them";
    } else if (report->start == UINT64_MAX) {
        report->verdict = COMPARE_VERDICT_UNTESTABLE;
        report->why = "every compared column agrees, and that proves nothing: no update of either "
                      "has an LR and a gradient that are not 0, so nothing was trained";
    } else if (report->roots > 0) {
        report->verdict = COMPARE_VERDICT_EQUAL;
        report->why =
            report->gap.updates > 0
                ? "every compared column agrees, and so do weights, applied LRs and what else "
                  "the roots are made of, bit for bit, but for batches that one of the two did "
                  "not record (below)"
                : "every compared column agrees, and the roots are equal: weights, applied LRs "
                  "and what else they are made of are the same bit for bit";
    } else if (!shows_training(report) &&
               (lr == COMPARE_LR_UNTESTABLE || lr == COMPARE_LR_UNFITTED)) {
        report->verdict = COMPARE_VERDICT_UNTESTABLE;
        report->why =
            report->to <= report->start
                ? "no row in both lies behind the first update that trains, so none shows "
                  "what an update did, and one printed LR can be two applied ones"
                : "only LR or bookkeeping columns have numbers in both, and one printed LR can be "
                  "two applied ones";
    } else if (!shows_training(report) && (lr == COMPARE_LR_NONE || names_training(report))) {
        report->verdict = COMPARE_VERDICT_UNTESTABLE;
        report->why = names_training(report)
                          ? "every compared column agrees, and that proves nothing: losses, "
                            "rewards and gradient norms were compared at no update behind the "
                            "first that trains"
                          : "every compared column agrees, and that proves nothing: none is of "
                            "what training did, and one log at least has no LR";
    } else if (shows_training(report) && !any_moves(report)) {
        report->verdict = COMPARE_VERDICT_UNTESTABLE;
        report->why = "every compared column agrees, and that proves nothing: nothing that was "
                      "compared of what training did changes by more than its printed precision, "
                      "so another training could have printed the same";
    } else {
        report->verdict = COMPARE_VERDICT_EQUAL;
        report->why = lr == COMPARE_LR_UNTESTABLE
                          ? "every compared column agrees within its printed precision, also "
                            "after update 1, which speaks against other applied LRs"
                          : "every compared column agrees within its printed precision";
    }
}

/* The factor of a gradient norm where a DPO loss is ln 2 is that of the loss's slope as well as of
 * a divisor, so its meaning is the one that the comparison points to, or both. */
static enum status widen_norm(struct compare_report *report, struct arena *arena) {
    struct compare_ratio *ratios;
    if (report->ratio_count == 0 || report->cause == CAUSE_NORMALISATION ||
        !compare_starts_at_ln2(report))
        return STATUS_OK;
    TRY(arena_take(arena, report->ratio_count, sizeof *ratios, "ratios", &ratios));
    for (size_t i = 0; i < report->ratio_count; i++) {
        ratios[i] = report->ratios[i];
        if (ratios[i].name != LOG_GRAD_NORM || ratios[i].kind >= COMPARE_FACTOR_OFFSET ||
            compare_scale_of(&ratios[i]) > 0.0)
            continue;
        const int objective = report->cause == CAUSE_OBJECTIVE;
        ratios[i].meaning = objective
                                ? "the slopes of the two losses where they are ln 2 (beta, "
                                  "label smoothing, loss type)"
                                : "another beta, label smoothing or loss type, or a loss that "
                                  "is divided once too often or too rarely";
        if (objective) ratios[i].bug = "";
    }
    report->ratios = ratios;
    return STATUS_OK;
}

enum status compare_logs(const struct compare_input *input, struct arena *arena,
                         struct compare_report *out) {
    memset(out, 0, sizeof *out);
    out->cause = -1;
    TRY(fill_columns(input, arena, out));
    TRY(put_in_order(out, arena));
    TRY(find_ratios(out, arena));
    TRY(compare_lrs(input, arena, out));
    TRY(compare_runs(input, arena, out));
    find_start(input, out);
    judge(out);
    judge_blank(input, out);
    TRY(judge_end(out, arena));
    TRY(judge_ended(input, arena, out));
    TRY(add_not_finite(out, arena));
    TRY(add_few_losses(out, arena));
    TRY(compare_explain(out, arena));
    TRY(widen_norm(out, arena));
    compare_quiet(out);
    return add_groups(&out->lr, arena);
}

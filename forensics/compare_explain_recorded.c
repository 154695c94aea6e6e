/* SPDX-License-Identifier: Apache-2.0
 * What two recordings say of the first difference beyond their columns: random draws, the order of
 * the loop, and the digests of batches and gradients. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_explain.h"

/* Tells whether two recordings part in this phase by their digests, before the first step: columns
 * may agree there, as a loss of ln 2 does whatever the batch is, and the trainings do not. */
int compare_parts_in(const struct compare_report *report, const char *phase) {
    return report->recorded && report->roots > 0 && report->root_update > 0 &&
           report->root_update <= report->start && strcmp(report->where.phase, phase) == 0;
}

/* Tells whether the gradient whose norm differs first is the same bit for bit, by its digests. */
int compare_norm_alone(const struct compare_report *report) {
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    return norm != NULL && report->gradient_update > 0 &&
           norm->first_update == report->gradient_update;
}

/* Returns the cause that owns a stream, of its seed or (with `words`) of how many words it needs.
 */
static int32_t stream_cause(const char *name, int words) {
    if (strncmp(name, "init", 4) == 0) return words ? CAUSE_MODEL : CAUSE_INIT;
    if (strncmp(name, "data", 4) == 0) return CAUSE_DATA_ORDER;
    if (strncmp(name, "rounding", 8) == 0) return words ? CAUSE_DTYPE : CAUSE_RNG;
    return CAUSE_RNG;
}

/* Recorded draws tell more than any column, provided that they part no later than the columns do.
 * Returns 1 when they explain the difference. */
int compare_explain_draws(struct compare_report *report) {
    const struct ledger_difference *rng = &report->rng;
    const uint64_t first =
        report->order_count == 0 ? UINT64_MAX : report->columns[report->order[0]].first_update;
    if (rng->found && rng->update <= first) {
        compare_say(
            report, stream_cause(rng->consumer, 1),
            "The runs drew other numbers of random words no later than they parted; the line RNG "
            "says who drew, and when.",
            "Give both runs the same draws (rates, shuffling, rounding) and compare again.");
        return 1;
    }
    if (rng->place.stream != NULL && rng->place.update <= first) {
        compare_say(
            report, stream_cause(rng->place.stream, 0),
            "A random stream stands elsewhere no later than the runs parted: the same numbers of "
            "words, but other words.",
            "Look for what moved the stream: a restart that does not restore it, a draw more or "
            "less, another seed.");
        return 1;
    }
    if (rng->found || rng->seed_count == 0) return 0;
    compare_say(
        report, rng->seed_count > 1 ? CAUSE_RNG : stream_cause(rng->seeds[0].stream, 0),
        "Both drew equally many random words, but from other seeds: they are other words from the "
        "first one on.",
        "Give both runs the same seeds and compare again.");
    return 1;
}

/* ---- loops whose phases come in another order ---- */

static const struct {
    const char *meaning[2], *next; /* what A's loop does, and what B's does */
} loop_words[] = {
    [COMPARE_LOOP_KEEPS] =
        {{"The gradient differs first behind an update in which A called no zero_grad and B did: "
          "in A it is added to the one before (the order of the loop, which is of cause schedule).",
          "The gradient differs first behind an update in which B called no zero_grad and A did: "
          "in B it is added to the one before (the order of the loop, which is of cause "
          "schedule)."},
         "Call zero_grad once behind each step in both loops. If the loop without it clears "
         "gradients by other means (p.grad = None), it is not this: compare betas, eps, decay and "
         "clipping."},
    [COMPARE_LOOP_CLEARS] =
        {{"What both computed before agrees, and A calls zero_grad between backward and step, "
          "which takes away gradients that B steps with (the order of the loop, which is of cause "
          "schedule).",
          "What both computed before agrees, and B calls zero_grad between backward and step, "
          "which takes away gradients that A steps with (the order of the loop, which is of cause "
          "schedule)."},
         "Call zero_grad behind the step, or before the first backward of an update."},
    [COMPARE_LOOP_SCALED] = {
        {"What both computed before agrees, and A clips before it unscales, so its norm and its "
         "limit are of gradients that the loss scale multiplies (clip_scaled_grads: the order of "
         "the loop, which is of cause schedule).",
         "What both computed before agrees, and B clips before it unscales, so its norm and its "
         "limit are of gradients that the loss scale multiplies (clip_scaled_grads: the order of "
         "the loop, which is of cause schedule)."},
        "Call scaler.unscale_(optimizer) before clip_grad_norm_ in both loops."}};

/* Tells whether the norms of the first update in which they differ are apart by the loss scale, as
 * those of one gradient are before and behind unscale_; true where they were not both recorded. */
static int norms_scaled(const struct compare_report *report, uint64_t update) {
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    const struct compare_column *scale = compare_column_of(report, LOG_LOSS_SCALE);
    const int32_t side = report->loop.side;
    if (norm == NULL || norm->pairs == 0) return 1;
    if (scale == NULL || norm->first_update != update) return 0;
    for (size_t i = 0; i < scale->side[side].count; i++) {
        const struct series_point point = compare_point(&scale->side[side], i);
        if (point.update == update)
            return real_abs_f64(norm->first[side].value / norm->first[1 - side].value -
                                point.value) < COMPARE_RATIO_DRIFT * point.value;
    }
    return 0;
}

/* Tells whether another order of phases explains the first difference, which is `first` of loss and
 * gradient: nothing that a training reads differs before the order acts. Gradients that are kept
 * act on the next update's gradient; gradients that were cleared leave the step without any, so the
 * next loss may be the first to show it; and a norm before unscale_ is the loss scale times the one
 * behind it, or another gradient differs as well. */
int compare_loops_part(const struct compare_report *report, const struct compare_column *first) {
    const struct compare_loop *loop = &report->loop;
    const struct compare_column *data = compare_first_of(report, compare_data_names);
    const struct compare_column *lr = compare_first_of(report, compare_lr_names);
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
    const uint64_t acts = loop->update + (loop->kind == COMPARE_LOOP_KEEPS);
    const uint64_t last = acts + (loop->kind == COMPARE_LOOP_CLEARS && first == forward);
    if (loop->kind == COMPARE_LOOP_ALIKE || first == NULL || first->first_update < acts ||
        first->first_update > last || (forward != NULL && forward->first_update <= acts))
        return 0;
    if (report->root_update > 0 && report->root_update != acts) return 0;
    if (loop->kind == COMPARE_LOOP_SCALED && !norms_scaled(report, acts)) return 0;
    return (data == NULL || data->first_update > first->first_update) &&
           (lr == NULL || lr->first_update >= first->first_update) &&
           (report->lr.group_first == NULL ||
            report->lr.group_first->column.first_update >= first->first_update);
}

void compare_explain_loops(struct compare_report *report) {
    const struct compare_loop *loop = &report->loop;
    compare_say(report, CAUSE_SCHEDULE, loop_words[loop->kind].meaning[loop->side],
                loop_words[loop->kind].next);
}

/* ---- a model in eval mode ---- */

#define UNSEEN_MODE                                                                                \
    "is in eval mode there, which switches dropout off and lets batch norms use the means that "   \
    "they keep, or "

/* A recorder is told of a call of its model in training. Where it is told of none and the training
 * goes backward all the same, the mode is the likeliest cause, and it is not the only one. Nothing
 * is known of the batch there. */
enum status compare_explain_unseen_forward(struct compare_report *report,
                                           const struct compare_column *first, struct arena *arena,
                                           int *out) {
    const struct compare_unseen *const unseen = &report->unseen;
    const char side = "AB"[unseen->side];
    const unsigned long long update = unseen->update;
    char *text, *next;
    *out = report->recorded && !report->unlike && unseen->update > 0 && first != NULL &&
           first->first_update == unseen->update &&
           (report->root_update == 0 || report->root_update == unseen->update);
    if (!*out) return STATUS_OK;
    TRY(arena_format(
        arena, &text,
        "The gap opens in update %llu, %s no forward call in training is recorded in %c, which "
        "goes backward all the same (%llu update%s): %c's model " UNSEEN_MODE
        "its forward pass is one that the recorder is not told of (%s). Whether the data differ, "
        "too, was not recorded.",
        update, unseen->never ? "and" : "from which on", side, (unsigned long long)unseen->updates,
        unseen->updates == 1 ? "" : "s", side,
        unseen->never ? "forward=False, a compiled model" : "a compiled graph"));
    TRY(arena_format(arena, &next,
                     "Call model.train() before the forward pass of update %llu in %c, as behind "
                     "each evaluation and generation, and compare again.",
                     update, side));
    compare_say(report, -1, text, next);
    return STATUS_OK;
}

/* ---- what digests of two recordings tell of the batch ---- */

/* Tells whether the batch is what two recordings part in, no later than the columns do. */
int compare_batches_part(const struct compare_report *report, const struct compare_column *first) {
    return report->recorded && report->roots > 0 && report->root_update > 0 &&
           report->root_update <= first->first_update && strcmp(report->where.phase, "fetch") == 0;
}

#define BATCHES_DIFFER                                                                             \
    "The tensors that the model is given differ before the first step, by their digests"

/* A digest is of all tensors that a model is given, and does not tell which of them differs. */
#define OTHER_LABELS                                                                               \
    "other labels (another loss mask, or labels that one run alone gives to the model), or more "  \
    "calls of the model in one run alone (a policy that is its own reference)"

/* Says which setting alone gives a model other labels, if one differs: then the rows may be the
 * same. */
static enum status name_labels(struct compare_report *report, struct arena *arena) {
    char *text;
    if (report->labels_key == NULL) return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "%s The configurations differ in %s (above), which changes by itself what "
                     "labels the model is given: the rows may be the same.",
                     report->meaning, report->labels_key));
    report->meaning = text;
    TRY(arena_format(arena, &text, "Make %s equal and compare again.", report->labels_key));
    report->next = text;
    return STATUS_OK;
}

/* The batches differ for certain, so that no later part of the training is named: whatever else
 * differs cannot be told from what follows from them. */
enum status compare_explain_batches(struct compare_report *report, struct arena *arena) {
    const int tells = compare_start_tells(report);
    const enum compare_gap gap = compare_judge_start(report);
    if (report->root_update > report->start) {
        compare_say(
            report, CAUSE_DATA_ORDER,
            "Both are equal bit for bit, by their digests, up to the update in which the tensors "
            "that the model is given differ (roots, above): other rows or another order from "
            "there on.",
            "Compare which rows that update used in both runs (sample order, seed, epoch, "
            "drop-last, workers), and what a restart restored of the sampler.");
        return STATUS_OK;
    }
    compare_say(
        report, -1,
        !tells ? BATCHES_DIFFER
            ": other rows or another order, or the same rows in other micro-batches, with other "
            "padding or truncation, or " OTHER_LABELS ". The loss of update 1 does not tell which, "
            "since a DPO training that starts at its reference prints ln 2 whatever its rows are."
        : gap == COMPARE_GAP_ROUNDING ? BATCHES_DIFFER
            ", and what is computed of them by no more than rounding makes: the same rows in other "
            "micro-batches or with other padding do this, and so do labels that one run alone "
            "gives to the model, and more calls of the model in one alone; other rows would move "
            "it by more."
        : gap == COMPARE_GAP_BETWEEN ? BATCHES_DIFFER
            ", and what is computed of them by less than from row to row: the same rows with "
            "another average (a mean of means), padding or truncation, other rows, or " OTHER_LABELS
            "."
                                     : BATCHES_DIFFER
            ", and what is computed of them by more than rounding: other rows or another order, "
            "packing, truncation or padding, or " OTHER_LABELS ". Whether weights or the loss "
            "differ, too, shows when the batches are equal.",
        "Compare the first batch of both runs: token ids, mask, labels, and in how many forward "
        "passes it comes. Make it equal and compare again.");
    return name_labels(report, arena);
}

/* ---- what digests of two recordings tell of weights and generators ---- */

int compare_root_differs(const struct compare_report *report, enum compare_part part) {
    return report->root_update > 0 && (report->root_parts >> part & 1u) != 0;
}

int compare_same_start(const struct compare_report *report, uint64_t update) {
    const struct compare_recorded *known = &report->known;
    return report->recorded && known->weights == COMPARE_ALIKE && known->frozen == COMPARE_ALIKE &&
           known->batch == COMPARE_ALIKE && report->root_update == update;
}

/* Adds a word to a list of what differs, too. */
static enum status add_word(const char *word, struct arena *arena, char **text) {
    return arena_format(arena, text, "%s%s%s", *text, (*text)[0] == '\0' ? "" : ", ", word);
}

/* Lists what two recordings that begin with other weights differ in besides, before or in the step
 * of the first update. */
static enum status list_others(const struct compare_report *report, struct arena *arena,
                               char **out) {
    const struct compare_recorded *known = &report->known;
    const struct compare_column *lr = compare_first_of(report, compare_lr_names);
    const struct compare_group *group = report->lr.group_first;
    TRY(arena_format(arena, out, "%s", ""));
    if (known->batch == COMPARE_APART) TRY(add_word("the batch of update 1", arena, out));
    if (compare_root_differs(report, COMPARE_PART_RNG))
        TRY(add_word("the states of random generators", arena, out));
    if ((lr != NULL && lr->first_update <= report->start) ||
        (group != NULL && group->column.first_update <= report->start))
        TRY(add_word("the LR", arena, out));
    if (report->settings_apart && !report->optimizers_apart)
        TRY(add_word("settings (configurations, above)", arena, out));
    if (report->optimizers_apart)
        TRY(add_word("settings of the optimizer (configurations, above)", arena, out));
    if (known->step[0] != '\0') TRY(add_word(known->step, arena, out));
    return STATUS_OK;
}

enum status compare_explain_initial(struct compare_report *report, struct arena *arena, int *out) {
    const struct compare_recorded *known = &report->known;
    const int trained = known->weights == COMPARE_APART, frozen = known->frozen == COMPARE_APART;
    char *others, *text;
    *out = report->recorded && !report->unlike && (trained || frozen);
    if (!*out) return STATUS_OK;
    TRY(list_others(report, arena, &others));
    TRY(arena_format(
        arena, &text, "The weights differ before update %llu, by their digests%s%s%s%s",
        (unsigned long long)(known->begins > 0 ? known->begins : 1),
        frozen && trained ? ", those that are not trained, too"
        : frozen          ? ": those that are not trained (frozen, above)"
                          : "",
        others[0] != '\0' ? ". So do "
                          : ": no later column can be read before they are "
                            "equal",
        others, others[0] != '\0' ? ": which of it makes the gap cannot be told." : "."));
    compare_say(report, others[0] == '\0' ? CAUSE_INIT : -1, text,
                "Begin both with the same weights (one checkpoint, or one seed before the model is "
                "made) and compare again.");
    return STATUS_OK;
}

int compare_generators_part(const struct compare_report *report,
                            const struct compare_column *first) {
    return report->recorded && report->root_parts == 1u << COMPARE_PART_RNG &&
           report->where.phase[0] == '\0' &&
           (first == NULL || first->first_update > report->root_update);
}

#define GENERATORS_NEXT                                                                            \
    "Look for what draws in one run alone: an evaluation, a sample that is generated, a loader "   \
    "that is made anew, another seed; or seed the generators again behind it, and compare again."

/* Lists what else of two recordings may open a gap, beside what parts first. */
static enum status list_rivals(const struct compare_report *report, int settings,
                               struct arena *arena, char **out) {
    TRY(arena_format(arena, out, "%s", ""));
    if (report->known.batch_update > 0) TRY(add_word("later batches", arena, out));
    if (compare_lrs_differ(report)) TRY(add_word("LRs", arena, out));
    if (settings) TRY(add_word("settings (configurations, above)", arena, out));
    if (report->orders[0] != '\0' || report->loop.kind != COMPARE_LOOP_ALIKE)
        TRY(add_word("the order of the loop", arena, out));
    if (compare_count_skips(report)) TRY(add_word("skipped updates", arena, out));
    if (report->known.later[0] != '\0') TRY(add_word(report->known.later, arena, out));
    return STATUS_OK;
}

#define STOPS(side)                                                                                \
    side " draws nothing in the update in which states of random generators part, and both drew "  \
         "in those before: what drew there is switched off in " side                               \
         " (dropout of a model in eval mode or of rate 0, a sampler, an augmentation)."

/* Says so where one of the two stops drawing in the update in which the roots part; returns 0, and
 * sets nothing, where neither does. */
static int explain_stop(struct compare_report *report) {
    const struct compare_recorded *const known = &report->known;
    if (known->stops == 0 || known->rng_update != report->root_update) return 0;
    compare_say(report, CAUSE_RNG, known->stops == 1 ? STOPS("A") : STOPS("B"),
                "Look at the mode of the model (train or eval) and at rates of dropout from that "
                "update on, in both runs.");
    return 1;
}

/* What the generators did is known; what followed from it is known only where nothing else that was
 * recorded differs. */
enum status compare_explain_generators(struct compare_report *report, struct arena *arena) {
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
    const struct compare_column *norm = compare_first_of(report, compare_gradient_names);
    char *rivals, *text;
    TRY(list_rivals(report, report->settings_apart, arena, &rivals));
    if (forward == NULL && norm == NULL && !compare_lrs_differ(report)) {
        compare_say(report, CAUSE_RNG,
                    "Batch, weights, LRs and loss are equal where the roots part, and the states "
                    "of random generators are not: one run drew other numbers there (an "
                    "evaluation, a sampler, dropout, another seed). No column shows that anything "
                    "followed from it.",
                    GENERATORS_NEXT);
    } else if (rivals[0] != '\0') {
        TRY(arena_format(arena, &text,
                         "The states of random generators differ first, while batch, weights, LRs "
                         "and loss are still equal (roots, above). But more differs: %s. Which of "
                         "it opens the gap cannot be told.",
                         rivals));
        compare_say(report, -1, text, GENERATORS_NEXT);
    } else if (!explain_stop(report)) {
        compare_say(report, CAUSE_RNG,
                    "The states of random generators differ first, while batch, weights, LRs and "
                    "loss are still equal (roots, above): one run drew other numbers (an "
                    "evaluation, a sampler, another seed), and what is drawn behind it, as "
                    "dropout, is other numbers in both.",
                    GENERATORS_NEXT);
    }
    return STATUS_OK;
}

int compare_draws_part(const struct compare_report *report, const struct compare_column *first) {
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
    return report->recorded && first != NULL && first == forward &&
           report->root_update == first->first_update && report->known.begins > 0 &&
           report->root_update > report->known.begins && report->root_update > report->start &&
           report->known.batch == COMPARE_ALIKE && compare_root_differs(report, COMPARE_PART_RNG) &&
           compare_root_differs(report, COMPARE_PART_LOSS);
}

/* Weights and batch of that update are the same bit for bit, and so were the states of generators
 * behind the update before it. A setting that changes the loss would have changed an earlier one.
 */
enum status compare_explain_later_draws(struct compare_report *report, struct arena *arena) {
    char *text;
    if (!report->settings_apart && explain_stop(report)) return STATUS_OK;
    TRY(arena_format(
        arena, &text,
        "Both are equal bit for bit up to update %llu, by their digests, and the batch of update "
        "%llu is the same. Its loss is not, and neither are the states of random generators behind "
        "it: one run drew other numbers in front of that forward pass or in it (an evaluation, a "
        "sample that is generated, a loader that is made anew), and what is drawn there, as "
        "dropout, is other numbers in both. Labels or buffers that have no digest could move that "
        "loss, too.%s",
        (unsigned long long)report->root_update - 1, (unsigned long long)report->root_update,
        report->settings_apart
            ? " See whether a setting that differs (configurations, above) draws "
              "numbers, as one of an evaluation does."
            : ""));
    compare_say(report, CAUSE_RNG, text, GENERATORS_NEXT);
    return STATUS_OK;
}

/* ---- a loss that parts between two steps ---- */

int compare_loss_parts(const struct compare_report *report, const struct compare_column *first) {
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
    return report->recorded && !report->unlike && first != NULL && first == forward &&
           report->root_update == first->first_update && report->known.begins > 0 &&
           report->root_update > report->known.begins && report->root_update > report->start &&
           report->known.batch == COMPARE_ALIKE &&
           !compare_root_differs(report, COMPARE_PART_RNG) &&
           compare_root_differs(report, COMPARE_PART_LOSS) &&
           strcmp(report->where.phase, "forward") == 0;
}

/* The weights behind the step before are the same, bit for bit, and so are the batch and what was
 * drawn. A reference, weights that are moved between two steps, and a loss have no digest. */
enum status compare_explain_loss(struct compare_report *report, struct arena *arena) {
    const unsigned long long update = report->root_update;
    char *text;
    TRY(arena_format(
        arena, &text,
        "Both are equal bit for bit behind the step of update %llu, by their digests, and so are "
        "the batch of update %llu and what random generators drew; its loss is not. No step made "
        "this gap, and none grew: between the two, weights were changed outside of a step "
        "(loaded, averaged, clamped), the reference of the loss moved, or the loss is another one "
        "there (a parameter that is scheduled, a mode, labels or buffers that have no digest).%s",
        update - 1, update,
        report->reference_apart
            ? " In one run alone the reference follows the policy (sync_ref_model, above), which "
              "does this."
            : ""));
    compare_say(report, report->reference_apart ? CAUSE_REFERENCE : -1, text,
                report->reference_apart
                    ? "Make sync_ref_model equal and compare again."
                    : "Look what each run does between these two updates: what is loaded, swapped "
                      "or written into weights, in callbacks and hooks; then what the loss takes "
                      "beside the batch.");
    return STATUS_OK;
}

/* ---- a step from the same gradient ---- */

int compare_gradient_parts(const struct compare_report *report,
                           const struct compare_column *first) {
    const unsigned before =
        1u << COMPARE_PART_BATCH | 1u << COMPARE_PART_LR | 1u << COMPARE_PART_LOSS;
    return report->recorded && !report->same_gradient && report->root_update > report->start &&
           first->name == LOG_GRAD_NORM && first->first_update == report->root_update &&
           (report->root_parts & before) == 0 && strcmp(report->where.phase, "optimize") == 0;
}

/* Tells whether both recorded the gradient's norm of an update behind their first one in many
 * digits, and it agrees. */
static int norm_agrees(const struct compare_report *report) {
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    const uint64_t update = report->root_update;
    return update > report->start && compare_is_fine(norm, update + 1) &&
           compare_has_pair_at(norm, update) &&
           !(norm->class_of == COMPARE_DIFFERENT && norm->first_update <= update);
}

/* Tells whether it does while settings of the optimizer differ and nothing that moves a gradient
 * does: weights, batch and loss of it are the same by their digests, so its step is another one. */
static int step_alone_differs(const struct compare_report *report) {
    return report->optimizers_apart && !report->others_apart && norm_agrees(report);
}

int compare_step_parts(const struct compare_report *report, const struct compare_column *first) {
    const unsigned before =
        1u << COMPARE_PART_BATCH | 1u << COMPARE_PART_LR | 1u << COMPARE_PART_LOSS;
    if (!report->recorded || report->root_update == 0 || (report->root_parts & before) != 0 ||
        strcmp(report->where.phase, "optimize") != 0)
        return 0;
    if (report->same_gradient) return first == NULL || first->first_update > report->root_update;
    return first != NULL && first->first_update > report->root_update &&
           (first->first_update > report->root_update + 1 || norm_agrees(report));
}

/* Says that one loop steps its optimizer more often in each update, where the counts show it; sets
 * *out to 0, and nothing else, where they do not. */
static enum status explain_strides(struct compare_report *report, struct arena *arena, int *out) {
    const int64_t *const strides = report->known.strides;
    char *text;
    *out = strides[0] > 0 && strides[1] > 0 && strides[0] != strides[1];
    if (!*out) return STATUS_OK;
    const int more = strides[1] > strides[0];
    TRY(arena_format(
        arena, &text,
        "What update %llu computes before its step is the same, by its digests, and the weights "
        "behind it are not (roots, above). %c's optimizer counts %lld steps in each update and "
        "%c's %lld: %c steps more often, from one gradient or from several (the order of the loop, "
        "which is of cause schedule).",
        (unsigned long long)report->root_update, "AB"[more], (long long)strides[more],
        "AB"[1 - more], (long long)strides[1 - more], "AB"[more]));
    compare_say(report, CAUSE_SCHEDULE, text,
                "Look where each loop, its callbacks and its trainer call optimizer.step(): one "
                "call in each update.");
    return STATUS_OK;
}

enum status compare_explain_step(struct compare_report *report, const struct compare_column *first,
                                 struct arena *arena) {
    const unsigned long long update = report->root_update;
    const int settings = report->optimizers_apart;
    const int same = report->same_gradient || step_alone_differs(report);
    char *rivals, *shown, *text;
    struct compare_report others = *report;
    int strides;
    TRY(explain_strides(report, arena, &strides));
    if (strides) return STATUS_OK;
    if (report->known.step[0] != '\0') others.known.later = ""; /* it is of this step, too */
    TRY(list_rivals(&others, 0, arena, &rivals));
    TRY(arena_format(arena, &shown, "%s", ""));
    if (first != NULL)
        TRY(arena_format(arena, &shown, " Loss and gradient norm show it from update %llu on.",
                         (unsigned long long)first->first_update));
    TRY(arena_format(
        arena, &text,
        "Batch, loss%s and LR of update %llu are the same, by their digests, and the weights "
        "behind its step are not (roots, above): %sthe optimizer's step is another one%s.%s%s%s%s",
        report->same_gradient ? ", gradients" : "", update,
        report->same_gradient ? ""
        : norm_agrees(report)
            ? "the norm of its gradient is the same in all digits, and "
            : "its gradient, of which no digest was taken there, is another one, or ",
        settings && report->kernels_apart
            ? ", whose settings and kernels differ (configurations, above)"
        : settings ? ", whose settings differ (configurations, above)"
        : report->kernels_apart
            ? ", made by another kernel (fused, foreach: configurations, above), which rounds "
              "otherwise"
            : " (its class or arithmetic, decay, clipping, another kernel), or weights are changed "
              "behind it",
        shown, rivals[0] != '\0' ? " Later more differs: " : "", rivals,
        rivals[0] != '\0' ? ". Which of it makes most of the gap cannot be told." : ""));
    compare_say(report, same && rivals[0] == '\0' ? CAUSE_OPTIMIZER : -1, text,
                !settings && report->kernels_apart
                    ? "Step with the same kernel in both runs (fused, foreach) and compare again: "
                      "a gap that vanishes was rounding."
                    : "Make betas, eps, decay and its groups, the clipping threshold and the fused "
                      "flag equal, and compare again.");
    return STATUS_OK;
}

enum status compare_add_step(struct compare_report *report, struct arena *arena) {
    const struct compare_recorded *known = &report->known;
    char *text;
    if (!report->recorded || report->unlike || report->meaning[0] == '\0') return STATUS_OK;
    if (report->cause == CAUSE_SCHEDULE && known->step[0] != '\0') {
        TRY(arena_format(arena, &text,
                         "%s But more than that differs in the same update, by what was recorded: "
                         "%s. Which of it makes the gap cannot be told.",
                         report->meaning, known->step));
        report->cause = -1;
        report->next = "Make one of them equal and compare again; twinstep ablate measures with "
                       "your two commands how much of the gap each makes (docs/ABLATE.md).";
    } else if (known->step[0] != '\0') {
        TRY(arena_format(arena, &text, "%s Of that update's step the recordings say: %s.",
                         report->meaning, known->step));
    } else if (report->cause == CAUSE_SCHEDULE && known->later[0] != '\0') {
        TRY(arena_format(arena, &text, "%s Later %s differs, too.", report->meaning, known->later));
    } else {
        return STATUS_OK;
    }
    report->meaning = text;
    return STATUS_OK;
}

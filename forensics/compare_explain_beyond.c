/* SPDX-License-Identifier: Apache-2.0
 * What two files show that rounding does not make, where their first difference is rounding.
 *
 * Once a training does not repeat itself bit for bit, its first difference is that of update 1, and
 * whatever else happens comes later. Noise makes no other batches, LRs, skipped updates, counts or
 * phases, and it does not grow by orders of magnitude in one update. Invariant: without such
 * evidence nothing is changed. */
#include <inttypes.h>

#include "base/real.h"
#include "forensics/compare_explain.h"
#include "forensics/compare_floor.h"

/* A gap is a jump where it is so many times what any update before had in loss or gradient norm,
 * and this share of the values at the least. Of repeats with noise of 1e-7 to 1e-4 in each
 * gradient, gaps grew by up to 35 in the second update, in which AdamW makes steps of one size of
 * gradients of any, and by up to 30 behind it; by up to 700 where the LR let the loss rise. So a
 * jump by itself must be larger, and the numbers themselves may not move by more than STILL in that
 * update: with norms that grew by 7 an update, gaps grew by 2,700. */
#define JUMP 100.0
#define JUMP_ALONE 1000.0
#define JUMP_LEAST 1e-4
#define STILL 3.0
/* What two equal numbers of f32 may be apart, as a share; smaller gaps measure nothing. */
#define ROUND_LEAST 1e-7
/* An LR that is apart by this many times what the gradient is, or by this share, acts more. */
#define LR_ACTS 1000.0
#define LR_SHARE 0.01

enum kind { DATA, UNSEEN, SKIPS, LOOP, LR, CLIPPING, STEP, COUNT, GENERATORS, KINDS };

struct event {
    uint64_t update; /* 0: it did not happen */
    const char *text;
};

struct jump {
    uint64_t update; /* 0: there is none */
    enum log_name name;
    double times;
};

static double share(double a, double b) {
    const double x = real_abs_f64(a), y = real_abs_f64(b), size = x > y ? x : y;
    if (!real_finite_f64(a) || !real_finite_f64(b))
        return real_finite_f64(a) || real_finite_f64(b) ? real_inf_f64() : 0.0;
    return size > 0.0 ? real_abs_f64(a - b) / size : 0.0;
}

/* One column on its way through the updates of both logs. */
struct walk {
    const struct compare_column *column; /* NULL: there is none */
    enum log_name name;
    size_t i, j, before; /* `before`: how many pairs it has passed */
    double last[2];
};

/* Tells whether the column has a pair left. */
static int has_next(struct walk *walk) {
    return walk->column != NULL && walk->column->pairs > 0 &&
           compare_next(walk->column, &walk->i, &walk->j);
}

/* Tells whether both numbers are near those of the pair before. */
static int is_still(const struct walk *walk, double a, double b) {
    const double values[2] = {real_abs_f64(a), real_abs_f64(b)};
    for (size_t s = 0; s < 2; s++)
        if (values[s] > STILL * walk->last[s] || walk->last[s] > STILL * values[s]) return 0;
    return 1;
}

/* Holds a pair against the level of the updates before, and adds its gap to that of this one. */
static void hold_pair(const struct compare_report *report, struct walk *walk, double least,
                      double level, double *here, struct jump *out) {
    const struct series_point a = compare_point(&walk->column->side[0], walk->i++),
                              b = compare_point(&walk->column->side[1], walk->j++);
    const double gap = share(a.value, b.value), size = real_abs_f64(a.value);
    const double digits = size > 0.0 ? 0.5 * (a.quantum + b.quantum) / size : 0.0;
    const double most = digits > level ? digits : level;
    const int alone = least > JUMP;
    if (out->update == 0 && walk->before >= 2 && a.update > report->start + 1 &&
        gap >= JUMP_LEAST && gap > least * most && (!alone || is_still(walk, a.value, b.value)))
        *out = (struct jump){a.update, walk->name, gap / most};
    if (gap > *here) *here = gap;
    if (digits > *here) *here = digits;
    walk->last[0] = real_abs_f64(a.value);
    walk->last[1] = real_abs_f64(b.value);
    walk->before++;
}

/* Finds the first jump behind the update that follows the first step, of at least so many times. */
static struct jump find_jump(const struct compare_report *report, double least) {
    struct walk walks[] = {
        {.column = compare_column_of(report, LOG_LOSS), .name = LOG_LOSS},
        {.column = compare_column_of(report, LOG_GRAD_NORM), .name = LOG_GRAD_NORM}};
    struct jump jump = {0, LOG_OTHER, 0.0};
    double level = ROUND_LEAST;
    while (jump.update == 0) {
        const int left[2] = {has_next(&walks[0]), has_next(&walks[1])};
        uint64_t next = UINT64_MAX;
        double here = level;
        for (size_t w = 0; w < 2; w++) {
            const uint64_t at =
                left[w] ? compare_point(&walks[w].column->side[0], walks[w].i).update : UINT64_MAX;
            if (at < next) next = at;
        }
        if (next == UINT64_MAX) break;
        for (size_t w = 0; w < 2; w++)
            if (left[w] && compare_point(&walks[w].column->side[0], walks[w].i).update == next)
                hold_pair(report, &walks[w], least, level, &here, &jump);
        level = here;
    }
    return jump;
}

static enum status say_event(struct event *event, uint64_t update, struct arena *arena,
                             const char *what) {
    char *text;
    TRY(arena_format(arena, &text, "%s from update %" PRIu64 " on", what, update));
    *event = (struct event){update, text};
    return STATUS_OK;
}

static enum status find_data(const struct compare_report *report, struct arena *arena,
                             struct event *out) {
    const struct compare_column *const counts = compare_first_of(report, compare_data_names);
    const uint64_t batch = report->recorded ? report->known.batch_update : 0;
    if (batch > 0 && (counts == NULL || batch <= counts->first_update))
        return say_event(out, batch, arena,
                         "other tensors are given to the model (digests of the batch)");
    if (counts == NULL) return STATUS_OK;
    return say_event(out, counts->first_update, arena, "other counts of tokens or samples");
}

static enum status find_lr(const struct compare_report *report, struct arena *arena,
                           struct event *out) {
    const struct compare_column *lr = compare_column_of(report, LOG_LR_APPLIED);
    const struct compare_group *const group = report->lr.group_first;
    if (!compare_lrs_differ(report)) return STATUS_OK;
    if (lr == NULL || lr->pairs == 0) lr = compare_column_of(report, LOG_LR_LOGGED);
    if (lr == NULL || lr->class_of != COMPARE_DIFFERENT) lr = group != NULL ? &group->column : NULL;
    if (lr == NULL) return STATUS_OK;
    char *text;
    TRY(arena_format(arena, &text, "another LR (%s against %s)",
                     word_apart(lr->first[0].value, lr->first[1].value).text,
                     word_apart(lr->first[1].value, lr->first[0].value).text));
    return say_event(out, lr->first_update, arena, text);
}

static enum status find_loop(const struct compare_report *report, struct arena *arena,
                             struct event *out) {
    static const char *const does[] = {[COMPARE_LOOP_ALIKE] = "",
                                       [COMPARE_LOOP_KEEPS] = "calls no zero_grad",
                                       [COMPARE_LOOP_CLEARS] =
                                           "calls zero_grad between backward and step",
                                       [COMPARE_LOOP_SCALED] = "clips before it unscales"};
    const struct compare_loop *const loop = &report->loop;
    const uint64_t update = loop->update;
    char *text;
    if (loop->kind == COMPARE_LOOP_ALIKE) return STATUS_OK;
    TRY(arena_format(arena, &text, "%c alone %s in update %" PRIu64, "AB"[loop->side],
                     does[loop->kind], update));
    *out = (struct event){update, text};
    return STATUS_OK;
}

static enum status find_recorded(const struct compare_report *report, struct arena *arena,
                                 struct event events[KINDS]) {
    const struct compare_recorded *const known = &report->known;
    char *text;
    if (!report->recorded || report->unlike) return STATUS_OK;
    if (report->unseen.update > 0) {
        TRY(arena_format(arena, &text,
                         "no forward call in training in %c alone (a model in eval mode, or a call "
                         "that the recorder is not told of)",
                         "AB"[report->unseen.side]));
        TRY(say_event(&events[UNSEEN], report->unseen.update, arena, text));
    }
    TRY(find_loop(report, arena, &events[LOOP]));
    if (known->step[0] != '\0') events[STEP] = (struct event){report->start, known->step};
    if (known->later[0] != '\0')
        events[CLIPPING] = (struct event){known->later_update, known->later};
    if (known->count_update > 0 && known->step[0] == '\0') {
        TRY(arena_format(arena, &text,
                         "the optimizer's count of updates (%" PRId64 " in A, %" PRId64 " in B)",
                         known->count[0], known->count[1]));
        TRY(say_event(&events[COUNT], known->count_update, arena, text));
    }
    if (known->rng_update > 0)
        TRY(say_event(&events[GENERATORS], known->rng_update, arena,
                      "other states of random generators"));
    return STATUS_OK;
}

/* Tells whether a later event follows from an earlier one by itself. */
static int follows(enum kind later, enum kind first) {
    switch (first) {
    case SKIPS:
        return later == COUNT || later == LR || later == STEP;
    case DATA:
    case UNSEEN:
        return later == GENERATORS;
    default:
        return 0;
    }
}

/* Returns the first event, of several of one update the one that the others may follow from. */
static enum kind first_of(const struct event events[KINDS]) {
    enum kind first = KINDS;
    for (int k = 0; k < KINDS; k++)
        if (events[k].update > 0 && (first == KINDS || events[k].update < events[first].update))
            first = (enum kind)k;
    return first;
}

/* Tells whether the LR is apart by far more than what rounding made of the first gradient. */
static int lr_acts(const struct compare_report *report) {
    const struct compare_column *const norm = compare_column_of(report, LOG_GRAD_NORM);
    const struct compare_column *lr = compare_column_of(report, LOG_LR_APPLIED);
    if (lr == NULL || lr->pairs == 0) lr = compare_column_of(report, LOG_LR_LOGGED);
    if (lr == NULL || lr->class_of != COMPARE_DIFFERENT) return 0;
    const double noise = norm != NULL && norm->class_of == COMPARE_DIFFERENT
                             ? share(norm->first[0].value, norm->first[1].value)
                             : 1.0;
    return lr->largest > LR_SHARE || lr->largest > LR_ACTS * noise;
}

/* Tells whether the first event is the only one, with what follows from it. A jump before it is of
 * something else, and so is a dtype that differs besides. */
static int is_alone(const struct compare_report *report, const struct event events[KINDS],
                    enum kind first, const struct jump *jump) {
    if (report->cause != CAUSE_NONDETERMINISM) return 0;
    if (jump->update > 0 && jump->update < events[first].update) return 0;
    for (int k = 0; k < KINDS; k++)
        if (k != (int)first && events[k].update > 0 && !follows((enum kind)k, first)) return 0;
    return 1;
}

/* Names the cause of an event. */
static int32_t cause_of(const struct compare_report *report, enum kind first,
                        const struct jump *jump) {
    switch (first) {
    case DATA:
        return CAUSE_DATA_ORDER;
    case LOOP:
        return CAUSE_SCHEDULE;
    case LR:
        return jump->update > 0 || lr_acts(report) ? CAUSE_SCHEDULE : -1;
    case CLIPPING:
    case STEP:
    case COUNT:
        return CAUSE_OPTIMIZER;
    case GENERATORS:
        return CAUSE_RNG;
    default:
        return -1;
    }
}

/* Lists the events in the order of their updates. */
static enum status list_events(const struct event events[KINDS], struct arena *arena, char **out) {
    struct event left[KINDS];
    for (int k = 0; k < KINDS; k++)
        left[k] = events[k];
    TRY(arena_format(arena, out, "%s", ""));
    for (enum kind next; (next = first_of(left)) != KINDS; left[next].update = 0)
        TRY(arena_format(arena, out, "%s%s%s", *out, (*out)[0] == '\0' ? "" : "; ",
                         left[next].text));
    return STATUS_OK;
}

static enum status name_jump(const struct jump *jump, struct arena *arena, char **out) {
    unsigned long long times = (unsigned long long)JUMP;
    if (jump->update == 0) return arena_format(arena, out, "%s", "");
    if (!real_finite_f64(jump->times))
        return arena_format(arena, out, " In update %" PRIu64 " %s is no finite number in one.",
                            jump->update, log_names[jump->name].name);
    while (times < 1000000000 && 10.0 * (double)times < jump->times)
        times *= 10;
    return arena_format(arena, out,
                        " In update %" PRIu64
                        " the gap of %s is more than %llu times what loss and gradient norm had in "
                        "any update before, by which noise does not grow in one update of a "
                        "training that is stable.",
                        jump->update, log_names[jump->name].name, times);
}

#define NOISE                                                                                      \
    "What differs first is a gradient, and by no more than kernels or an order of sums that do "   \
    "not repeat themselves make it. "

static enum status say_events(struct compare_report *report, const struct event events[KINDS],
                              const struct jump *jump, struct arena *arena) {
    const enum kind first = first_of(events);
    const int noise = report->cause == CAUSE_NONDETERMINISM;
    const int alone = is_alone(report, events, first, jump);
    const int32_t cause = alone ? cause_of(report, first, jump) : -1;
    char *list, *jumps, *text;
    TRY(list_events(events, arena, &list));
    TRY(name_jump(jump, arena, &jumps));
    TRY(arena_format(arena, &text,
                     "%s%sMore differs, which neither kernels nor rounding make: %s.%s%s",
                     noise ? NOISE : report->meaning, noise ? "" : " ", list, jumps,
                     alone ? "" : " Which of it opens most of the gap cannot be told."));
    compare_say(report, cause, text,
                noise ? "Make that equal first, and compare again. How far runs of one "
                        "configuration are apart, a floor says (--floor, docs/NOISE.md)."
                      : report->next);
    return STATUS_OK;
}

static enum status say_jump(struct compare_report *report, const struct jump *jump,
                            struct arena *arena) {
    char *jumps, *text;
    TRY(name_jump(jump, arena, &jumps));
    TRY(arena_format(
        arena, &text,
        NOISE "But more happened.%s There or in the update before it something else "
              "differs (data, a skipped update, a scale, clipping, random numbers, the "
              "optimizer's state), and %s.",
        jumps,
        report->recorded ? "nothing that was recorded names it" : "these logs do not name it"));
    compare_say(report, -1, text,
                "Look at that update in both runs: its batch, its scale, its step. How far runs of "
                "one configuration are apart, a floor says (--floor, docs/NOISE.md).");
    return STATUS_OK;
}

enum status compare_explain_beyond(struct compare_report *report, struct arena *arena) {
    struct event events[KINDS] = {{0, NULL}};
    struct jump jump = {0, LOG_OTHER, 0.0};
    const int noise = report->cause == CAUSE_NONDETERMINISM;
    if (!noise && report->cause != CAUSE_DTYPE) return STATUS_OK;
    if (report->rng.found || report->order_count == 0) return STATUS_OK;
    TRY(find_data(report, arena, &events[DATA]));
    if (compare_count_skips(report))
        TRY(say_event(&events[SKIPS], compare_column_of(report, LOG_SKIPPED)->first_update, arena,
                      "other skipped updates"));
    TRY(find_recorded(report, arena, events));
    if (noise) { /* that LRs differ beside a dtype has been said, and what a dtype makes may jump */
        TRY(find_lr(report, arena, &events[LR]));
        jump = find_jump(report, JUMP);
    }
    /* Other numbers that were drawn and moved nothing, as without dropout, are no cause. */
    if (jump.update == 0) events[GENERATORS].update = 0;
    if (first_of(events) != KINDS) return say_events(report, events, &jump, arena);
    if (jump.update > 0) jump = find_jump(report, JUMP_ALONE);
    return jump.update > 0 ? say_jump(report, &jump, arena) : STATUS_OK;
}

enum status compare_explain_floor(struct compare_report *report, const struct compare_floor *held,
                                  struct arena *arena) {
    char *text;
    if (report->cause != CAUSE_NONDETERMINISM || held->verdict != COMPARE_FLOOR_OUTSIDE)
        return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "%s But these two are outside the floor: runs of one configuration stay "
                     "closer, so more than what does not repeat itself differs, and the files do "
                     "not name it.",
                     report->meaning));
    compare_say(report, -1, text,
                "Look at the first update above the bound (below) in both runs: its batch, its "
                "LR, its step and the settings.");
    return STATUS_OK;
}

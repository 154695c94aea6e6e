/* SPDX-License-Identifier: Apache-2.0
 * Says in words what is risky about a legal order. It does not judge whether two arms differ: both
 * can share a hazard and still agree.
 *
 * Invariant: the words follow from the lists and the numbers of `schedule` alone. */
#include "trainer/loop_walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "optim/direction.h"
#include "scenarios/scenario.h"

struct report {
    const struct loop_walk *walk;
    const struct config *config;
    struct loop_words words;
    struct loop_hazard *out;
    size_t count;
};

/* Fills the next free row; `format` and what follows give its sentence. */
TWINSTEP_PRINTF(4, 5)
static void report_add(struct report *report, enum loop_hazard_kind kind,
                       enum loop_severity severity, const char *format, ...) {
    struct loop_hazard *row = &report->out[report->count++];
    va_list arguments;
    row->kind = kind;
    row->severity = severity;
    va_start(arguments, format);
    vsnprintf(row->text, sizeof row->text, format, arguments);
    va_end(arguments);
}

static void report_older(struct report *report) {
    const uint64_t written = report->walk->seen[LOOP_WALKED].applied.update;
    if (written != 0 && written < LOOP_WALKED)
        report_add(report, LOOP_LR_OLDER, LOOP_NOTE,
                   "optimize reads an LR that schedule wrote one update earlier");
}

/* The usual LR at update k is f(c0 + inc * (k - 1)): the first update sees the start of the
 * schedule. An order of phases or a shift can move it, and this reports by how many updates. */
static void report_offset(struct report *report) {
    const struct config *config = report->config;
    const struct loop_law law = report->walk->applied;
    const double inc = (double)config->schedule.increment;
    if (law.from > LOOP_WALKED || inc == 0.0 || law.slope != inc) return;
    const double ahead = (law.offset + inc - (double)config->schedule.origin) / inc;
    if (ahead == 0.0) return;
    const int same_update = report->walk->seen[LOOP_WALKED].applied.update == LOOP_WALKED;
    const char *why = "a schedule.shift or a late schedule moves the LR";
    if (config->schedule.shift == 0 && same_update)
        why = "count and schedule run before optimize";
    else if (config->schedule.shift == 0)
        why = "schedule runs before count";
    const double size = ahead < 0.0 ? -ahead : ahead;
    report_add(report, LOOP_LR_OFFSET, LOOP_WARNING,
               "%s: update k applies %s, %.4g update%s %s f(k-1)", why, report->words.applied, size,
               size == 1.0 ? "" : "s", ahead > 0.0 ? "ahead of" : "behind");
}

/* scheduler.step() of PyTorch advances its counter and sets the LR. Whoever moves `schedule` before
 * `optimize` and leaves `count` behind it has moved nothing: the LR is still f(k-1). llm.c's order
 * is this one, so a contract may ask for it. */
static void report_alone(struct report *report) {
    const struct config *config = report->config;
    const struct loop_law law = report->walk->applied;
    const double inc = (double)config->schedule.increment;
    const int same_update = report->walk->seen[LOOP_WALKED].applied.update == LOOP_WALKED;
    if (!same_update || config_has_contract(config) || config->schedule.shift != 0) return;
    if (inc == 0.0 || law.slope != inc) return;
    if (law.offset + inc != (double)config->schedule.origin) return;
    report_add(report, LOOP_SCHEDULE_ALONE, LOOP_NOTE,
               "schedule runs before optimize and count after it: update k still applies "
               "f(k-1), as if schedule ran after optimize; PyTorch's scheduler.step() is "
               "both, count and schedule: scheduler_step");
}

/* Start f0 is what the schedule itself gives before any update, so it is no hazard. */
static void report_start(struct report *report) {
    const struct config *config = report->config;
    if (report->walk->seen[1].applied.update != 0) return;
    if (config->schedule.start == START_F0) return;
    const char *word = loop_start_word(config);
    report_add(report, LOOP_LR_START, LOOP_WARNING,
               "update 1 runs before any schedule and applies the LR of schedule.start: %s%s", word,
               config->schedule.start == START_ZERO ? "; it changes no parameter" : "");
}

static void report_frozen(struct report *report) {
    const struct config *config = report->config;
    const uint64_t schedules = loop_runs_per_update(config, PHASE_SCHEDULE);
    const uint64_t counts = loop_runs_per_update(config, PHASE_COUNT_UPDATE);
    const char *why = NULL;
    if (schedules == 0)
        why = loop_runs_outside(config, PHASE_SCHEDULE)
                  ? "schedule runs in list epoch or eval only: "
                    "the LR is a staircase"
                  : "schedule never runs: the LR stays at its start";
    else if (counts == 0)
        why = loop_runs_outside(config, PHASE_COUNT_UPDATE)
                  ? "count runs in list epoch or eval only: the LR is a staircase"
                  : "count never runs: schedule sees the same counter in every update";
    else if (config->schedule.increment == 0)
        why = "schedule.increment is 0: schedule sees the same counter in every update";
    if (why != NULL) report_add(report, LOOP_LR_FROZEN, LOOP_WARNING, "%s", why);
}

static void report_logged(struct report *report) {
    const struct loop_seen *seen = &report->walk->seen[LOOP_WALKED];
    if (seen->logged.counter == seen->applied.counter &&
        (seen->logged.update == 0) == (seen->applied.update == 0))
        return;
    const char *which = "another LR";
    if (seen->logged.counter > seen->applied.counter) which = "a later LR";
    if (seen->logged.counter < seen->applied.counter) which = "an earlier LR";
    report_add(report, LOOP_LOGGED_DIFFERS, LOOP_NOTE,
               "log prints %s than is applied: update k applies %s, logs %s", which,
               report->words.applied, report->words.logged);
}

static void report_often(struct report *report) {
    const uint64_t counts = loop_runs_per_update(report->config, PHASE_COUNT_UPDATE);
    const uint64_t schedules = loop_runs_per_update(report->config, PHASE_SCHEDULE);
    if (counts > 1)
        report_add(report, LOOP_COUNT_OFTEN, LOOP_WARNING,
                   "count runs %llu times per update: the schedule advances %llu times too fast "
                   "unless warm-up and total are in the same unit",
                   (unsigned long long)counts, (unsigned long long)counts);
    if (schedules > 1)
        report_add(report, LOOP_SCHEDULE_OFTEN, counts > 1 ? LOOP_WARNING : LOOP_NOTE,
                   "schedule runs %llu times per update; the last one before optimize "
                   "counts",
                   (unsigned long long)schedules);
}

static void report_gradient(struct report *report) {
    const struct loop_seen *seen = &report->walk->seen[LOOP_WALKED];
    const uint64_t micro = report->walk->micro;
    if (seen->stale)
        report_add(report, LOOP_GRADIENT_CARRIES, LOOP_WARNING, "%s",
                   loop_runs_per_update(report->config, PHASE_ZERO) == 0
                       ? "zero never runs in an update: gradients carry over into the next one"
                       : "optimize sees gradients of an earlier update, for zero runs too "
                         "late or too early to clear them");
    if (seen->fresh == 0)
        report_add(report, LOOP_GRADIENT_EMPTY, LOOP_WARNING,
                   "no gradient of this update reaches optimize: zero, or no backward, stands "
                   "before it");
    else if (seen->fresh < micro)
        report_add(report, LOOP_GRADIENT_PARTIAL, LOOP_WARNING, "%s",
                   loop_count(report->config, LOOP_MICRO, PHASE_OPTIMIZE) > 0
                       ? "optimize runs before all micro-batches of the update are summed"
                       : "zero runs in every micro-batch: only the last one reaches optimize");
}

static void report_clip(struct report *report) {
    const struct config *config = report->config;
    const struct loop_seen *seen = &report->walk->seen[LOOP_WALKED];
    if (loop_runs_per_update(config, PHASE_CLIP) == 0)
        report_add(report, LOOP_CLIP_NEVER, config->clip.max_norm > 0.0 ? LOOP_WARNING : LOOP_NOTE,
                   "%s",
                   config->clip.max_norm > 0.0
                       ? "clip never runs in an update, so clip.max_norm has no effect and no "
                         "gradient norm is recorded"
                       : "clip never runs in an update, so no gradient norm is recorded");
    else if (!seen->clipped && seen->fresh > 0)
        report_add(report, LOOP_CLIP_LATE, LOOP_WARNING, "%s",
                   seen->clips
                       ? "clip runs after optimize and has no effect on this update"
                       : "clip runs before the last backward, so the gradient that optimize "
                         "sees is not clipped");
    if (loop_count(config, LOOP_MICRO, PHASE_CLIP) > 0 && report->walk->micro > 1)
        report_add(report, LOOP_CLIP_MICRO, LOOP_WARNING,
                   "clip runs after every micro-batch: partial sums are clipped, not the "
                   "gradient of the update");
}

/* Whether the optimizer writes nothing where it is told of a gradient that is not finite, which a
 * class of a module does not say. Whoever steps among the micro-batches is not told. */
static int is_held(const struct config *config) {
    const struct config_class *const which = &config->optimizer.which;
    const struct optim_class *const class_ =
        strcmp(which->module, CONFIG_NO_MODULE) == 0 ? optim_find(which->name) : NULL;
    return class_ != NULL && optim_holds(class_, which->values);
}

/* What an overflow does where the loop skips nothing. GradScaler's loop steps the scheduler at such
 * an update, too, unless whoever wrote it looks at the loss scale first. */
static void report_overflow(struct report *report) {
    const struct config *config = report->config;
    const int told = loop_count(config, LOOP_MICRO, PHASE_OPTIMIZE) == 0;
    if (config->scaler.kind != SCALER_DYNAMIC || config->loop.skip != SKIP_NONE) return;
    if (!told || !is_held(config))
        report_add(report, LOOP_OVERFLOW_APPLIED, LOOP_WARNING,
                   "loop.skip is none: an update whose gradient overflowed is applied, "
                   "although the loss scale backs off (GradScaler skips it)");
    else if (loop_runs_per_update(config, PHASE_COUNT_UPDATE) > 0)
        report_add(report, LOOP_SKIP_ADVANCES, LOOP_WARNING,
                   "the optimizer holds an update whose gradient overflowed, which still advances "
                   "the schedule: the LR runs ahead of the updates made");
}

static void report_scaler(struct report *report) {
    const struct config *config = report->config;
    const struct loop_seen *seen = &report->walk->seen[LOOP_WALKED];
    if (config->scaler.kind == SCALER_NONE) return;
    if (seen->clip_scaled && config->clip.max_norm > 0.0)
        report_add(report, LOOP_UNSCALE_LATE, LOOP_WARNING,
                   "clip runs before unscale: clip.max_norm acts on gradients that still hold "
                   "the loss scale");
    if (seen->early)
        report_add(report, LOOP_UNSCALE_EARLY, LOOP_WARNING,
                   "unscale runs before the last backward: the gradient mixes scaled and "
                   "unscaled terms");
    report_overflow(report);
}

static void report_optimize(struct report *report) {
    const uint64_t steps = loop_runs_per_update(report->config, PHASE_OPTIMIZE);
    if (steps > 1)
        report_add(report, LOOP_OPTIMIZE_OFTEN, LOOP_WARNING,
                   "optimize runs %llu times per update; lr_applied holds the last one's LR",
                   (unsigned long long)steps);
    if (report->walk->seen[LOOP_WALKED].in_graph)
        report_add(report, LOOP_OPTIMIZE_IN_GRAPH, LOOP_WARNING,
                   "optimize runs between forward and backward: the gradient is taken at "
                   "weights that forward did not use");
}

static void report_outside(struct report *report) {
    static const enum phase risky[] = {PHASE_OPTIMIZE, PHASE_SCHEDULE, PHASE_COUNT_UPDATE,
                                       PHASE_CLIP, PHASE_ZERO};
    for (size_t i = 0; i < COUNT_OF(risky); i++) {
        const int eval = report->config->loop.eval_every > 0 &&
                         loop_count(report->config, LOOP_EVAL, risky[i]) > 0;
        if (!eval && loop_count(report->config, LOOP_EPOCH, risky[i]) == 0) continue;
        report_add(report, LOOP_OUTSIDE_UPDATE, LOOP_WARNING,
                   "%s runs after each %s: training depends on how often that happens",
                   loop_phases()[risky[i]].name, eval ? "evaluation" : "epoch");
        return;
    }
}

static void report_skip(struct report *report) {
    const struct config *config = report->config;
    if (config->loop.skip == SKIP_NONE) return;
    const int applies = loop_runs(config, PHASE_OPTIMIZE, 1) && !is_held(config);
    if (loop_runs(config, PHASE_COUNT_UPDATE, 1) && !applies)
        report_add(report, LOOP_SKIP_ADVANCES, LOOP_WARNING,
                   "a skipped update still advances the schedule: the LR runs ahead of "
                   "the updates made");
    if (applies)
        report_add(report, LOOP_SKIP_APPLIES, LOOP_WARNING,
                   "loop.on_skip names optimize: a skipped update still changes parameters");
    if (loop_count(config, LOOP_UPDATE, PHASE_ZERO) > 0 && !loop_runs(config, PHASE_ZERO, 1))
        report_add(report, LOOP_SKIP_CARRIES, LOOP_WARNING,
                   "loop.on_skip does not name zero: the gradients of a skipped update carry "
                   "over into the next one");
}

size_t loop_hazards(const struct config *config, struct loop_hazard out[LOOP_HAZARD_KINDS]) {
    struct loop_walk walk;
    loop_walk_all(&walk, config);
    struct report report = {.walk = &walk, .config = config, .out = out};
    loop_words_of(config, &report.words);
    report_older(&report);
    report_offset(&report);
    report_alone(&report);
    report_start(&report);
    report_frozen(&report);
    report_logged(&report);
    report_often(&report);
    report_gradient(&report);
    report_clip(&report);
    report_scaler(&report);
    report_optimize(&report);
    report_outside(&report);
    report_skip(&report);
    return report.count;
}

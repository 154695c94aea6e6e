/* SPDX-License-Identifier: Apache-2.0
 * The table of phases, and the check whether an order of them is legal. This file does not say what
 * is risky about an order (loop_hazard.c).
 *
 * Invariant: an order that loop_check accepts never reads what was never written, steps the
 * optimizer at least once and writes one log row per update. */
#include "trainer/loop.h"

#include "data/batch.h"
#include "scenarios/scenario.h"

static const struct loop_phase phases[PHASE_TOTAL] = {
    [PHASE_FETCH] = {"fetch", 0, 0, LOOP_BATCH, "brings the next micro-batch"},
    [PHASE_FORWARD] = {"forward", LOOP_BATCH | LOOP_PARAMS | LOOP_WINDOW, LOOP_BATCH,
                       LOOP_GRAPH | LOOP_WINDOW, "computes the loss of the micro-batch"},
    [PHASE_BACKWARD] = {"backward", LOOP_GRAPH | LOOP_PARAMS | LOOP_GRADIENT, LOOP_GRAPH,
                        LOOP_GRADIENT, "adds the gradient of the micro-batch"},
    [PHASE_REDUCE] = {"reduce", LOOP_GRADIENT, LOOP_GRADIENT, LOOP_GRADIENT,
                      "joins the gradients of all ranks; changes nothing with one rank"},
    [PHASE_UNSCALE] = {"unscale", LOOP_GRADIENT, LOOP_GRADIENT, LOOP_GRADIENT,
                       "divides the gradient by the loss scale; changes nothing without one"},
    [PHASE_CLIP] = {"clip", LOOP_GRADIENT, LOOP_GRADIENT, LOOP_GRADIENT | LOOP_NORM,
                    "measures the gradient norm and scales the gradients by the coefficient"},
    [PHASE_OPTIMIZE] = {"optimize", LOOP_GRADIENT | LOOP_LR | LOOP_PARAMS | LOOP_SLOTS,
                        LOOP_GRADIENT, LOOP_PARAMS | LOOP_SLOTS,
                        "changes parameters and optimizer state with the current LR"},
    [PHASE_LOG] = {"log", LOOP_WINDOW | LOOP_NORM | LOOP_LR | LOOP_COUNTER, LOOP_WINDOW,
                   LOOP_ROW | LOOP_WINDOW, "writes the row of the update and starts a new window"},
    [PHASE_COUNT_UPDATE] = {"count", LOOP_COUNTER, 0, LOOP_COUNTER, "advances the counter n by 1"},
    [PHASE_SCHEDULE] = {"schedule", LOOP_COUNTER, 0, LOOP_LR, "sets LR = f(c0 + inc * n + d)"},
    [PHASE_ZERO] = {"zero", 0, 0, LOOP_GRADIENT, "sets accumulators and gradients to +0"},
};

const struct loop_phase *loop_phases(void) {
    return phases;
}

const char *loop_list_name(enum loop_list list) {
    static const char *const names[LOOP_LISTS] = {"micro", "update", "epoch", "eval", "on_skip"};
    return (unsigned)list < LOOP_LISTS ? names[list] : "?";
}

const struct key_list *loop_list_of(const struct config *config, enum loop_list list) {
    const struct key_list *const lists[LOOP_LISTS] = {[LOOP_MICRO] = &config->loop.micro,
                                                      [LOOP_UPDATE] = &config->loop.update,
                                                      [LOOP_EPOCH] = &config->loop.epoch,
                                                      [LOOP_EVAL] = &config->loop.eval,
                                                      [LOOP_ON_SKIP] = &config->loop.on_skip};
    return lists[list];
}

uint32_t loop_position(const struct config *config, enum loop_list list, enum phase phase,
                       uint32_t nth) {
    const struct key_list *items = loop_list_of(config, list);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < items->count; i++)
        if (items->item[i] == (uint8_t)phase && ++seen == nth) return i;
    return LOOP_NO_POSITION;
}

uint32_t loop_count(const struct config *config, enum loop_list list, enum phase phase) {
    const struct key_list *items = loop_list_of(config, list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->count; i++)
        count += items->item[i] == (uint8_t)phase;
    return count;
}

uint64_t loop_runs_per_update(const struct config *config, enum phase phase) {
    return loop_count(config, LOOP_MICRO, phase) * batch_micro_batches(config) +
           loop_count(config, LOOP_UPDATE, phase);
}

int loop_runs(const struct config *config, enum phase phase, int skipped) {
    return !skipped || loop_count(config, LOOP_ON_SKIP, phase) > 0;
}

static double counter_at(const struct config *config, uint64_t n, int64_t shift) {
    const double advanced = (double)config->schedule.increment * (double)n;
    return (double)config->schedule.origin + advanced + (double)shift;
}

double loop_schedule_counter(const struct config *config, uint64_t n) {
    return counter_at(config, n, config->schedule.shift);
}

double loop_logged_counter(const struct config *config, uint64_t n) {
    return counter_at(config, n, config->schedule.logged_shift);
}

double loop_start_counter(const struct config *config) {
    return (double)config->schedule.origin;
}

static enum status fault(struct loop_fault *out, enum loop_list list, uint32_t position,
                         enum phase phase, const char *reason) {
    if (out != NULL) {
        out->list = list;
        out->position = position;
        out->phase = phase;
    }
    if (position == LOOP_NO_POSITION)
        FAIL(STATUS_INPUT, "loop.%s: %s", loop_list_name(list), reason);
    FAIL(STATUS_INPUT, "loop.%s[%u] (%s): %s", loop_list_name(list), (unsigned)position,
         phases[phase].name, reason);
}

static const char *forbidden(enum loop_list list, enum phase phase) {
    if (phase <= PHASE_BACKWARD && list != LOOP_MICRO)
        return "handles one micro-batch, so it can only stand in loop.micro";
    if (phase == PHASE_LOG && (list == LOOP_EPOCH || list == LOOP_EVAL))
        return "writes the row of one update, so it can only stand in loop.update or loop.micro";
    return NULL;
}

static enum status check_items(const struct config *config, enum loop_list list,
                               struct loop_fault *out) {
    const struct key_list *items = loop_list_of(config, list);
    if (items->count > KEY_LIST_MAX)
        FAIL(STATUS_INPUT, "loop.%s: expected at most %d phases, got %u", loop_list_name(list),
             KEY_LIST_MAX, (unsigned)items->count);
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->item[i] >= PHASE_TOTAL)
            FAIL(STATUS_INPUT, "loop.%s[%u]: expected a phase number below %d, got %u",
                 loop_list_name(list), (unsigned)i, (int)PHASE_TOTAL, (unsigned)items->item[i]);
        const enum phase phase = (enum phase)items->item[i];
        const char *reason = forbidden(list, phase);
        if (reason != NULL) return fault(out, list, i, phase, reason);
    }
    return STATUS_OK;
}

/* Why a phase may not be missing. */
static const char *const missing_text[PHASE_TOTAL] = {
    [PHASE_FETCH] = "expected fetch, forward and backward, once each; fetch is missing",
    [PHASE_FORWARD] = "expected fetch, forward and backward, once each; forward is missing",
    [PHASE_BACKWARD] = "expected fetch, forward and backward, once each; backward is missing",
    [PHASE_OPTIMIZE] = "expected optimize at least once in loop.update or loop.micro; no update "
                       "would ever change a parameter",
    [PHASE_LOG] = "expected log exactly once per update; it is missing",
};

static enum status check_required(const struct config *config, struct loop_fault *out) {
    for (int p = PHASE_FETCH; p <= PHASE_BACKWARD; p++) {
        const enum phase phase = (enum phase)p;
        if (loop_count(config, LOOP_MICRO, phase) == 0)
            return fault(out, LOOP_MICRO, LOOP_NO_POSITION, phase, missing_text[phase]);
        const uint32_t repeat = loop_position(config, LOOP_MICRO, phase, 2);
        if (repeat != LOOP_NO_POSITION)
            return fault(out, LOOP_MICRO, repeat, phase,
                         "runs once per micro-batch, but stands here a second time");
    }
    if (loop_runs_per_update(config, PHASE_OPTIMIZE) == 0)
        return fault(out, LOOP_UPDATE, LOOP_NO_POSITION, PHASE_OPTIMIZE,
                     missing_text[PHASE_OPTIMIZE]);
    return STATUS_OK;
}

/* torch.amp.GradScaler.unscale_() raises when it is called a second time before update(), so this
 * program refuses an order that takes the loss scale out twice. */
static enum status check_unscale(const struct config *config, struct loop_fault *out) {
    static const enum loop_list others[] = {LOOP_EPOCH, LOOP_EVAL};
    if (config->scaler.kind == SCALER_NONE) return STATUS_OK;
    const char *reason = "a loss scale is taken out once per update, after its last backward";
    const uint32_t micro = loop_position(config, LOOP_MICRO, PHASE_UNSCALE, 1);
    if (micro != LOOP_NO_POSITION &&
        (batch_micro_batches(config) > 1 || loop_count(config, LOOP_UPDATE, PHASE_UNSCALE) > 0 ||
         loop_count(config, LOOP_MICRO, PHASE_UNSCALE) > 1))
        return fault(out, LOOP_MICRO, micro, PHASE_UNSCALE, reason);
    const uint32_t repeat = loop_position(config, LOOP_UPDATE, PHASE_UNSCALE, 2);
    if (repeat != LOOP_NO_POSITION) return fault(out, LOOP_UPDATE, repeat, PHASE_UNSCALE, reason);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        const uint32_t position = loop_position(config, others[i], PHASE_UNSCALE, 1);
        if (position != LOOP_NO_POSITION)
            return fault(out, others[i], position, PHASE_UNSCALE, reason);
    }
    return STATUS_OK;
}

/* Law 21 joins the shards of an update before its gradient is rounded, and law 22 joins gradients
 * of ranks behind the last micro-batch of all, so nothing may look at the gradient, or clear it,
 * between two micro-batches. */
static enum status check_shards(const struct config *config, struct loop_fault *out) {
    const struct key_list *const items = &config->loop.micro;
    const int of_ranks = config->parallel.ranks > 1 && config->numerics.shards <= 1;
    if (config->numerics.shards <= 1 && !of_ranks) return STATUS_OK;
    for (uint32_t i = 0; i < items->count; i++) {
        const enum phase phase = (enum phase)items->item[i];
        const uint32_t touched = phases[phase].reads | phases[phase].writes;
        if (phase != PHASE_BACKWARD && touched & LOOP_GRADIENT)
            return fault(out, LOOP_MICRO, i, phase,
                         of_ranks
                             ? "meets the gradient of one rank before those of all are joined "
                               "(parallel.ranks above 1), so it can only stand in loop.update"
                             : "meets the gradient before the shards of the update are joined "
                               "(numerics.shards above 1), so it can only stand in loop.update");
    }
    return STATUS_OK;
}

static enum status check_reduce(const struct config *config, struct loop_fault *out) {
    const uint32_t position = loop_position(config, LOOP_UPDATE, PHASE_REDUCE, 1);
    if (config->parallel.ranks <= 1 || position == 0) return STATUS_OK;
    return fault(out, LOOP_UPDATE, position, PHASE_REDUCE,
                 "expected reduce as its first phase with parallel.ranks above 1; before it each "
                 "rank has the sums of its own samples, as in [reduce, clip, optimize, log, count, "
                 "schedule, zero]");
}

static enum status check_log(const struct config *config, struct loop_fault *out) {
    if (loop_runs_per_update(config, PHASE_LOG) == 1) return STATUS_OK;
    const uint32_t in_micro = loop_position(config, LOOP_MICRO, PHASE_LOG, 1);
    if (in_micro != LOOP_NO_POSITION)
        return fault(out, LOOP_MICRO, in_micro, PHASE_LOG,
                     "would write more than one row per update; an update has exactly one");
    const uint32_t repeat = loop_position(config, LOOP_UPDATE, PHASE_LOG, 2);
    if (repeat != LOOP_NO_POSITION)
        return fault(out, LOOP_UPDATE, repeat, PHASE_LOG,
                     "would write a second row for one update; an update has exactly one");
    return fault(out, LOOP_UPDATE, LOOP_NO_POSITION, PHASE_LOG, missing_text[PHASE_LOG]);
}

/* A skipped update writes its row into the log as every update does, so loop.on_skip has to name
 * `log` wherever list `update` holds it. */
static enum status check_skip(const struct config *config, struct loop_fault *out) {
    const uint32_t in_micro = loop_position(config, LOOP_MICRO, PHASE_LOG, 1);
    if (config->loop.skip == SKIP_NONE) return STATUS_OK;
    if (config->loop.skip == SKIP_OLMO_OUTLIER && in_micro != LOOP_NO_POSITION)
        return fault(out, LOOP_MICRO, in_micro, PHASE_LOG,
                     "closes the loss of the update before loop.skip olmo-outlier looks at it");
    if (loop_count(config, LOOP_UPDATE, PHASE_LOG) == 0 || loop_runs(config, PHASE_LOG, 1))
        return STATUS_OK;
    return fault(out, LOOP_ON_SKIP, LOOP_NO_POSITION, PHASE_LOG,
                 "expected log among the phases of a skipped update; it writes the update's row");
}

static const char *unwritten_text(uint32_t resource) {
    if (resource & LOOP_BATCH) return "reads the micro-batch, which fetch has not brought yet";
    if (resource & LOOP_GRAPH) return "reads the activations, which forward has not computed yet";
    if (resource & LOOP_WINDOW) return "reads the loss of the update before any forward";
    return "reads gradients before any backward or zero wrote them";
}

/* Checks one pass over a list, and adds to *written what its phases write. One pass is enough: a
 * resource that was written stays, so a phase that finds what it needs in the first pass finds it
 * in every later pass. */
static enum status check_reads(const struct config *config, enum loop_list list, uint32_t *written,
                               struct loop_fault *out) {
    const struct key_list *items = loop_list_of(config, list);
    for (uint32_t i = 0; i < items->count; i++) {
        const enum phase phase = (enum phase)items->item[i];
        const uint32_t unwritten = phases[phase].needs & ~*written;
        if (unwritten != 0) return fault(out, list, i, phase, unwritten_text(unwritten));
        *written |= phases[phase].writes;
    }
    return STATUS_OK;
}

enum status loop_check(const struct config *config, struct loop_fault *out_fault) {
    for (int list = 0; list < LOOP_LISTS; list++)
        TRY(check_items(config, (enum loop_list)list, out_fault));
    TRY(check_required(config, out_fault));
    TRY(check_log(config, out_fault));
    TRY(check_skip(config, out_fault));
    TRY(check_unscale(config, out_fault));
    TRY(check_shards(config, out_fault));
    TRY(check_reduce(config, out_fault));
    /* An open run has these before its first phase: initial parameters, zeroed slots, n = 0, and
     * the LR of schedule.start. */
    uint32_t written = LOOP_LR | LOOP_COUNTER | LOOP_PARAMS | LOOP_SLOTS;
    TRY(check_reads(config, LOOP_MICRO, &written, out_fault));
    return check_reads(config, LOOP_UPDATE, &written, out_fault);
}

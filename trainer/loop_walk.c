/* SPDX-License-Identifier: Apache-2.0
 * Walks a loop with numbers instead of tensors: the counter, where the LR came from, and whose
 * gradients are in the sum. Says in words which LR an order applies and logs at update k, such as
 * "f(k-1)". An order whose LR lists epoch or eval move is said to be moved by them; the words never
 * guess when. It judges nothing: loop_hazard.c says what is risky. */
#include "trainer/loop_walk.h"

#include <stdio.h>

#include "data/batch.h"

/* An update of more than MICRO_CAP micro-batches is walked as one of MICRO_CAP. Only the counter
 * tells them apart, so it takes the missing passes in one jump before pass JUMP_BEFORE: the first
 * two passes and the last two see the counter that they have in the full update. */
enum { MICRO_CAP = 4, JUMP_BEFORE = 2 };

static void walk_optimize(struct loop_walk *walk, struct loop_seen *seen) {
    seen->applied = walk->lr;
    if (walk->graph_open) seen->in_graph = 1;
    if (seen->optimized) return;
    seen->optimized = 1;
    seen->fresh = walk->fresh;
    seen->stale = walk->stale;
    seen->clipped = walk->clipped;
}

static void walk_log(struct loop_walk *walk, struct loop_seen *seen) {
    seen->logged = walk->lr;
    if (walk->config->schedule.logged == LOGGED_RECOMPUTED)
        seen->logged = (struct loop_source){walk->k, loop_logged_counter(walk->config, walk->n)};
}

static void walk_apply(struct loop_walk *walk, enum phase phase) {
    struct loop_seen *seen = &walk->seen[walk->k];
    switch (phase) {
    case PHASE_FORWARD:
        walk->graph_open = 1;
        break;
    case PHASE_BACKWARD:
        walk->graph_open = 0;
        walk->fresh++;
        walk->clipped = 0;
        seen->clips = 0;
        seen->early |= walk->unscaled;
        break;
    case PHASE_UNSCALE:
        walk->unscaled = 1;
        break;
    case PHASE_CLIP:
        walk->clipped = 1;
        seen->clips = 1;
        seen->clip_scaled |= !walk->unscaled;
        break;
    case PHASE_OPTIMIZE:
        walk_optimize(walk, seen);
        break;
    case PHASE_LOG:
        walk_log(walk, seen);
        break;
    case PHASE_COUNT_UPDATE:
        walk->n++;
        break;
    case PHASE_SCHEDULE:
        walk->lr = (struct loop_source){walk->k, loop_schedule_counter(walk->config, walk->n)};
        break;
    case PHASE_ZERO:
        walk->fresh = 0;
        walk->stale = 0;
        break;
    default:
        break;
    }
}

static void walk_list(struct loop_walk *walk, enum loop_list list) {
    const struct key_list *items = loop_list_of(walk->config, list);
    for (uint32_t i = 0; i < items->count; i++)
        walk_apply(walk, (enum phase)items->item[i]);
}

static void walk_update(struct loop_walk *walk, uint64_t k) {
    const uint64_t batches = batch_micro_batches(walk->config);
    walk->k = k;
    walk->unscaled = 0;
    walk->stale |= walk->fresh > 0;
    walk->fresh = 0;
    for (uint64_t m = 0; m < walk->micro; m++) {
        if (m == JUMP_BEFORE)
            walk->n +=
                (batches - walk->micro) * loop_count(walk->config, LOOP_MICRO, PHASE_COUNT_UPDATE);
        walk_list(walk, LOOP_MICRO);
    }
    walk_list(walk, LOOP_UPDATE);
}

/* Takes the steady state from the last two updates. Update 1 may still see the start, and then the
 * law holds from update 2 on. */
static struct loop_law law_of(const struct config *config, const struct loop_source *first,
                              const struct loop_source *third, const struct loop_source *fourth) {
    struct loop_law law = {fourth->counter - third->counter, 0.0, 1};
    law.offset = fourth->counter - (double)LOOP_WALKED * law.slope;
    const int follows = first->counter == law.slope + law.offset;
    if (fourth->update == 0)
        law.from = LOOP_WALKED + 1;
    else if (first->update == 0 && !(config->schedule.start == START_F0 && follows))
        law.from = 2;
    return law;
}

void loop_walk_all(struct loop_walk *walk, const struct config *config) {
    const uint64_t batches = batch_micro_batches(config);
    *walk = (struct loop_walk){.config = config};
    walk->micro = batches < MICRO_CAP ? batches : MICRO_CAP;
    walk->lr.counter = loop_start_counter(config);
    for (uint64_t k = 1; k <= LOOP_WALKED; k++)
        walk_update(walk, k);
    const struct loop_seen *const first = &walk->seen[1], *const last = &walk->seen[LOOP_WALKED];
    walk->applied = law_of(config, &first->applied, &(last - 1)->applied, &last->applied);
    walk->logged = law_of(config, &first->logged, &(last - 1)->logged, &last->logged);
}

/* Writes f of slope * k + offset: f(k-1), f(8(k-1)), f(8k+3) or f(0). Both numbers are whole. */
static void write_counter(char *out, size_t size, double slope, double offset) {
    const double whole = slope != 0.0 ? offset / slope : 0.0;
    const int divides = slope > 1.0 && offset != 0.0 && (double)(int64_t)whole == whole;
    if (slope == 0.0)
        snprintf(out, size, "f(%.0f)", offset);
    else if (divides)
        snprintf(out, size, "f(%.0f(k%+.0f))", slope, whole);
    else if (slope == 1.0 && offset == 0.0)
        snprintf(out, size, "f(k)");
    else if (slope == 1.0)
        snprintf(out, size, "f(k%+.0f)", offset);
    else if (offset == 0.0)
        snprintf(out, size, "f(%.0fk)", slope);
    else
        snprintf(out, size, "f(%.0fk%+.0f)", slope, offset);
}

const char *loop_start_word(const struct config *config) {
    static const char *const words[] = {
        [START_F0] = "f0", [START_BASE] = "base", [START_ZERO] = "zero", [START_MIN] = "min"};
    return words[config->schedule.start];
}

static void write_start(char *out, size_t size, const struct config *config) {
    if (config->schedule.start == START_F0)
        write_counter(out, size, 0.0, loop_start_counter(config));
    else
        snprintf(out, size, "%s", loop_start_word(config));
}

int loop_runs_outside(const struct config *config, enum phase phase) {
    return loop_count(config, LOOP_EPOCH, phase) > 0 ||
           (config->loop.eval_every > 0 && loop_count(config, LOOP_EVAL, phase) > 0);
}

static void write_law(char out[LOOP_PHRASE], const struct config *config,
                      const struct loop_law *law) {
    char start[48];
    char steady[80];
    write_start(start, sizeof start, config);
    write_counter(steady, sizeof steady, law->slope, law->offset);
    const char *rest = "";
    if (loop_runs_outside(config, PHASE_SCHEDULE) || loop_runs_outside(config, PHASE_COUNT_UPDATE))
        rest = ", until list epoch or eval moves it";
    if (law->from > LOOP_WALKED)
        snprintf(out, LOOP_PHRASE, "%s at every update%s", start, rest);
    else if (law->from > 1)
        snprintf(out, LOOP_PHRASE, "%s at k=1, then %s%s", start, steady, rest);
    else
        snprintf(out, LOOP_PHRASE, "%s%s", steady, rest);
}

void loop_words_of(const struct config *config, struct loop_words *out_words) {
    struct loop_walk walk;
    loop_walk_all(&walk, config);
    write_law(out_words->applied, config, &walk.applied);
    write_law(out_words->logged, config, &walk.logged);
}

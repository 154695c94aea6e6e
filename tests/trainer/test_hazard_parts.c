/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is said of an order of phases, whole and in order, once more for random loops: four updates
 * are gone through with all of their micro-batches, and each hazard follows from what optimize, log
 * and clip saw in the last of them. */
#include "trainer/loop.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/base/helper_draws.h"
#include "tests/trainer/helper_loop.h"

enum { UPDATES = 4, CASES = 6000 };

static struct draws draws;
static struct config config;

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

/* ---- random loops ---- */

static void put(struct key_list *list, enum phase phase) {
    if (list->count >= COUNT_OF(list->item)) return;
    const uint32_t at = draws_pick(&draws, list->count + 1);
    for (uint32_t i = list->count; i > at; i--)
        list->item[i] = list->item[i - 1];
    list->item[at] = (uint8_t)phase;
    list->count++;
}

/* Most loops are PyTorch's with some phases moved, and so have few hazards each. */
static void draw_lists(void) {
    static const enum phase usual[] = {PHASE_CLIP,         PHASE_OPTIMIZE, PHASE_LOG,
                                       PHASE_COUNT_UPDATE, PHASE_SCHEDULE, PHASE_ZERO};
    static const enum phase more[] = {PHASE_CLIP,         PHASE_OPTIMIZE, PHASE_ZERO,
                                      PHASE_COUNT_UPDATE, PHASE_SCHEDULE, PHASE_UNSCALE};
    struct key_list *const update = &config.loop.update, *const micro = &config.loop.micro;
    helper_loop_list("fetch forward backward", micro);
    memset(update, 0, sizeof *update);
    const int shuffled = seldom(2);
    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        const enum phase phase = usual[i];
        if (phase != PHASE_LOG && seldom(8)) {
            if (phase == PHASE_OPTIMIZE || seldom(2)) put(micro, phase);
        } else if (shuffled) {
            put(update, phase);
        } else {
            update->item[update->count++] = (uint8_t)phase;
        }
    }
    while (seldom(3))
        put(seldom(3) ? micro : update, more[draws_pick(&draws, COUNT_OF(more))]);
    memset(&config.loop.epoch, 0, sizeof config.loop.epoch);
    memset(&config.loop.eval, 0, sizeof config.loop.eval);
    memset(&config.loop.on_skip, 0, sizeof config.loop.on_skip);
    if (seldom(5)) put(&config.loop.epoch, more[draws_pick(&draws, COUNT_OF(more))]);
    if (seldom(3)) put(&config.loop.eval, more[draws_pick(&draws, COUNT_OF(more))]);
    for (size_t i = 0; i < COUNT_OF(usual); i++)
        if (seldom(2)) put(&config.loop.on_skip, usual[i]);
}

static void draw_loop(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0x4a2a), .number = number};
    helper_loop_standard(&config);
    draw_lists();
    config.loop.eval_every = draws_pick(&draws, 3);
    config.loop.skip = seldom(2) ? SKIP_NONE : SKIP_NONFINITE;
    config.batch.size = 1 + draws_pick(&draws, 7);
    config.batch.micro = 1;
    config.clip.max_norm = seldom(3) ? 0.0 : 1.0;
    config.scaler.kind = (int32_t)draws_pick(&draws, 3);
    config.schedule.origin = seldom(3) ? draws_pick(&draws, 4) : 0;
    config.schedule.increment = seldom(3) ? draws_pick(&draws, 9) : 1;
    config.schedule.shift = seldom(3) ? (int64_t)draws_pick(&draws, 5) - 2 : 0;
    config.schedule.start = (int32_t)draws_pick(&draws, 4);
    config.schedule.logged = seldom(4) ? LOGGED_RECOMPUTED : LOGGED_CURRENT;
    config.schedule.logged_shift = (int64_t)draws_pick(&draws, 3) - 1;
    if (seldom(6)) snprintf(config.schedule.contract, sizeof config.schedule.contract, "llmc");
}

/* ---- what an update sees ---- */

struct source {
    int update; /* whose schedule gave the LR; 0: none has */
    double counter;
};

struct view {
    struct source applied, logged;
    int optimized, fresh, stale, clipped, clips, clipped_scaled, early, in_graph;
};

struct run {
    double n;
    struct source lr;
    int grads[UPDATES + 1]; /* micro-batches of each update in the gradient */
    int clipped, unscaled, forward_done;
};

static double counter_of(double n, int64_t shift) {
    return (double)config.schedule.origin + n * (double)config.schedule.increment + (double)shift;
}

static void step(struct run *run, int update, enum phase phase, struct view *view) {
    switch (phase) {
    case PHASE_FORWARD:
        run->forward_done = 1;
        break;
    case PHASE_BACKWARD:
        run->forward_done = 0;
        run->grads[update]++;
        run->clipped = view->clips = 0;
        if (run->unscaled) view->early = 1;
        break;
    case PHASE_UNSCALE:
        run->unscaled = 1;
        break;
    case PHASE_CLIP:
        run->clipped = view->clips = 1;
        if (!run->unscaled) view->clipped_scaled = 1;
        break;
    case PHASE_OPTIMIZE:
        view->applied = run->lr;
        if (run->forward_done) view->in_graph = 1;
        if (view->optimized++ > 0) break; /* the first one of an update counts for the rest */
        view->fresh = run->grads[update];
        for (int k = 1; k < update; k++)
            view->stale |= run->grads[k] > 0;
        view->clipped = run->clipped;
        break;
    case PHASE_LOG:
        view->logged = run->lr;
        if (config.schedule.logged == LOGGED_RECOMPUTED)
            view->logged =
                (struct source){update, counter_of(run->n, config.schedule.logged_shift)};
        break;
    case PHASE_COUNT_UPDATE:
        run->n += 1.0;
        break;
    case PHASE_SCHEDULE:
        run->lr = (struct source){update, counter_of(run->n, config.schedule.shift)};
        break;
    case PHASE_ZERO:
        memset(run->grads, 0, sizeof run->grads);
        break;
    default:
        break;
    }
}

static void go_through(struct view views[UPDATES + 1]) {
    struct run run = {.lr.counter = (double)config.schedule.origin};
    memset(views, 0, (UPDATES + 1) * sizeof *views);
    for (int k = 1; k <= UPDATES; k++) {
        run.unscaled = 0;
        for (uint64_t m = 0; m < config.batch.size; m++)
            for (uint32_t i = 0; i < config.loop.micro.count; i++)
                step(&run, k, (enum phase)config.loop.micro.item[i], &views[k]);
        for (uint32_t i = 0; i < config.loop.update.count; i++)
            step(&run, k, (enum phase)config.loop.update.item[i], &views[k]);
    }
}

static uint64_t times(const struct key_list *list, enum phase phase) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += list->item[i] == (uint8_t)phase ? 1 : 0;
    return count;
}

static uint64_t per_update(enum phase phase) {
    return times(&config.loop.micro, phase) * config.batch.size + times(&config.loop.update, phase);
}

static int elsewhere(enum phase phase) {
    return times(&config.loop.epoch, phase) > 0 ||
           (config.loop.eval_every != 0 && times(&config.loop.eval, phase) > 0);
}

/* ---- what is to be said ---- */

static struct loop_hazard want[LOOP_HAZARD_KINDS];
static size_t want_count;

static void say(enum loop_hazard_kind kind, int is_warning, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);
static void say(enum loop_hazard_kind kind, int is_warning, const char *format, ...) {
    va_list arguments;
    assert_true(want_count < LOOP_HAZARD_KINDS);
    struct loop_hazard *const row = &want[want_count++];
    row->kind = kind;
    row->severity = is_warning ? LOOP_WARNING : LOOP_NOTE;
    va_start(arguments, format);
    vsnprintf(row->text, sizeof row->text, format, arguments);
    va_end(arguments);
}

static void say_lr(const struct view views[UPDATES + 1], const struct loop_words *words) {
    static const char *const starts[] = {
        [START_BASE] = "base", [START_ZERO] = "zero; it changes no parameter", [START_MIN] = "min"};
    const struct source now = views[4].applied, before = views[3].applied;
    const double inc = (double)config.schedule.increment;
    const int same_update = now.update == 4;
    /* In updates by which the usual LR is another one: update 4 usually has counted three. */
    const int steady = now.update > 0 && inc > 0.0 && now.counter - before.counter == inc;
    const double gap = now.counter - (double)config.schedule.origin - 3.0 * inc;
    if (now.update > 0 && !same_update)
        say(LOOP_LR_OLDER, 0, "optimize reads an LR that schedule wrote one update earlier");
    if (steady && gap != 0.0) {
        const double size = (gap < 0.0 ? -gap : gap) / inc;
        say(LOOP_LR_OFFSET, 1, "%s: update k applies %s, %.4g update%s %s f(k-1)",
            config.schedule.shift != 0 ? "a schedule.shift or a late schedule moves the LR"
            : same_update              ? "count and schedule run before optimize"
                                       : "schedule runs before count",
            words->applied, size, size == 1.0 ? "" : "s", gap < 0.0 ? "behind" : "ahead of");
    }
    if (steady && gap == 0.0 && same_update && config.schedule.shift == 0 &&
        strcmp(config.schedule.contract, "none") == 0)
        say(LOOP_SCHEDULE_ALONE, 0,
            "schedule runs before optimize and count after it: update k still applies f(k-1), as "
            "if schedule ran after optimize; PyTorch's scheduler.step() is both, count and "
            "schedule: scheduler_step");
    if (views[1].applied.update == 0 && config.schedule.start != START_F0)
        say(LOOP_LR_START, 1,
            "update 1 runs before any schedule and applies the LR of schedule.start: %s",
            starts[config.schedule.start]);
    if (per_update(PHASE_SCHEDULE) == 0)
        say(LOOP_LR_FROZEN, 1, "%s",
            elsewhere(PHASE_SCHEDULE)
                ? "schedule runs in list epoch or eval only: the LR is a staircase"
                : "schedule never runs: the LR stays at its start");
    else if (per_update(PHASE_COUNT_UPDATE) == 0)
        say(LOOP_LR_FROZEN, 1, "%s",
            elsewhere(PHASE_COUNT_UPDATE)
                ? "count runs in list epoch or eval only: the LR is a staircase"
                : "count never runs: schedule sees the same counter in every update");
    else if (config.schedule.increment == 0)
        say(LOOP_LR_FROZEN, 1,
            "schedule.increment is 0: schedule sees the same counter in every update");
    const struct source logged = views[4].logged;
    if (logged.counter != now.counter || (logged.update > 0) != (now.update > 0))
        say(LOOP_LOGGED_DIFFERS, 0, "log prints %s than is applied: update k applies %s, logs %s",
            logged.counter > now.counter   ? "a later LR"
            : logged.counter < now.counter ? "an earlier LR"
                                           : "another LR",
            words->applied, words->logged);
    const int counts = (int)per_update(PHASE_COUNT_UPDATE),
              schedules = (int)per_update(PHASE_SCHEDULE);
    if (counts > 1)
        say(LOOP_COUNT_OFTEN, 1,
            "count runs %d times per update: the schedule advances %d times too fast unless "
            "warm-up and total are in the same unit",
            counts, counts);
    if (schedules > 1)
        say(LOOP_SCHEDULE_OFTEN, counts > 1,
            "schedule runs %d times per update; the last one before optimize counts", schedules);
}

static void say_gradient(const struct view *last) {
    if (last->stale)
        say(LOOP_GRADIENT_CARRIES, 1, "%s",
            per_update(PHASE_ZERO) == 0
                ? "zero never runs in an update: gradients carry over into the next one"
                : "optimize sees gradients of an earlier update, for zero runs too late or too "
                  "early to clear them");
    if (last->fresh == 0)
        say(LOOP_GRADIENT_EMPTY, 1,
            "no gradient of this update reaches optimize: zero, or no backward, stands before it");
    else if ((uint64_t)last->fresh < config.batch.size)
        say(LOOP_GRADIENT_PARTIAL, 1, "%s",
            times(&config.loop.micro, PHASE_OPTIMIZE) > 0
                ? "optimize runs before all micro-batches of the update are summed"
                : "zero runs in every micro-batch: only the last one reaches optimize");
    const int clips = config.clip.max_norm > 0.0;
    if (per_update(PHASE_CLIP) == 0)
        say(LOOP_CLIP_NEVER, clips,
            "clip never runs in an update, so %sno gradient norm is recorded",
            clips ? "clip.max_norm has no effect and " : "");
    else if (last->fresh > 0 && !last->clipped)
        say(LOOP_CLIP_LATE, 1, "%s",
            last->clips ? "clip runs after optimize and has no effect on this update"
                        : "clip runs before the last backward, so the gradient that optimize sees "
                          "is not clipped");
    if (times(&config.loop.micro, PHASE_CLIP) > 0 && config.batch.size > 1)
        say(LOOP_CLIP_MICRO, 1,
            "clip runs after every micro-batch: partial sums are clipped, not the gradient of the "
            "update");
    if (config.scaler.kind != SCALER_NONE && last->clipped_scaled && clips)
        say(LOOP_UNSCALE_LATE, 1,
            "clip runs before unscale: clip.max_norm acts on gradients that still hold the loss "
            "scale");
    if (config.scaler.kind != SCALER_NONE && last->early)
        say(LOOP_UNSCALE_EARLY, 1,
            "unscale runs before the last backward: the gradient mixes scaled and unscaled terms");
    if (config.scaler.kind == SCALER_DYNAMIC && config.loop.skip == SKIP_NONE)
        say(LOOP_OVERFLOW_APPLIED, 1,
            "loop.skip is none: an update whose gradient overflowed is applied, although the loss "
            "scale backs off (GradScaler skips it)");
}

static void say_rest(const struct view *last) {
    static const struct {
        enum phase phase;
        const char *name;
    } risky[] = {{PHASE_OPTIMIZE, "optimize"},
                 {PHASE_SCHEDULE, "schedule"},
                 {PHASE_COUNT_UPDATE, "count"},
                 {PHASE_CLIP, "clip"},
                 {PHASE_ZERO, "zero"}};
    if (per_update(PHASE_OPTIMIZE) > 1)
        say(LOOP_OPTIMIZE_OFTEN, 1,
            "optimize runs %d times per update; lr_applied holds the last one's LR",
            (int)per_update(PHASE_OPTIMIZE));
    if (last->in_graph)
        say(LOOP_OPTIMIZE_IN_GRAPH, 1,
            "optimize runs between forward and backward: the gradient is taken at weights that "
            "forward did not use");
    for (size_t i = 0; i < COUNT_OF(risky); i++)
        if (elsewhere(risky[i].phase)) {
            const int evaluates =
                config.loop.eval_every != 0 && times(&config.loop.eval, risky[i].phase) > 0;
            say(LOOP_OUTSIDE_UPDATE, 1,
                "%s runs after each %s: training depends on how often that happens", risky[i].name,
                evaluates ? "evaluation" : "epoch");
            break;
        }
    if (config.loop.skip == SKIP_NONE) return;
    const struct key_list *const skip = &config.loop.on_skip;
    if (times(skip, PHASE_COUNT_UPDATE) > 0 && times(skip, PHASE_OPTIMIZE) == 0)
        say(LOOP_SKIP_ADVANCES, 1,
            "a skipped update still advances the schedule: the LR runs ahead of the updates made");
    if (times(skip, PHASE_OPTIMIZE) > 0)
        say(LOOP_SKIP_APPLIES, 1,
            "loop.on_skip names optimize: a skipped update still changes parameters");
    if (times(&config.loop.update, PHASE_ZERO) > 0 && times(skip, PHASE_ZERO) == 0)
        say(LOOP_SKIP_CARRIES, 1,
            "loop.on_skip does not name zero: the gradients of a skipped update carry over into "
            "the next one");
}

static void corroborate_hazards(void **state) {
    (void)state;
    size_t seen[LOOP_HAZARD_KINDS] = {0}, far = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct view views[UPDATES + 1];
        struct loop_hazard found[LOOP_HAZARD_KINDS];
        struct loop_words words;
        draw_loop(number);
        go_through(views);
        loop_words_of(&config, &words);
        want_count = 0;
        say_lr(views, &words);
        say_gradient(&views[UPDATES]);
        say_rest(&views[UPDATES]);
        const size_t count = loop_hazards(&config, found);
        for (size_t i = 0; i < count && i < want_count; i++)
            if (found[i].kind != want[i].kind || found[i].severity != want[i].severity ||
                strcmp(found[i].text, want[i].text) != 0)
                fail_msg("loop %u: \"%s\", expected \"%s\"", number, found[i].text, want[i].text);
        if (count != want_count) fail_msg("loop %u: %zu of %zu", number, count, want_count);
        for (size_t i = 0; i < count; i++) {
            seen[found[i].kind]++;
            far += strstr(found[i].text, "updates ahead") != NULL;
        }
    }
    for (size_t kind = 0; kind < LOOP_HAZARD_KINDS; kind++)
        if (seen[kind] < 50) fail_msg("kind %zu: %zu", kind, seen[kind]);
    assert_true(far > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_hazards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Has one function per kind of difference, each of which may lower the number of updates that are
 * certain. Nothing is trained; schedules are evaluated, as they are pure functions. A difference
 * that no function knows makes the answer 0, so a key that is added later is safe before it is
 * known here. */
#include "experiment/inert_updates.h"

#include <string.h>

#include "base/real.h"
#include "optim/outlier.h"
#include "scenarios/stream_course.h"
#include "trainer/loop.h"
#include "trainer/plugins/plugin.h"
#include "trainer/run.h"

struct inertness {
    const struct config *a, *b;
    uint64_t samples;
    uint64_t sure; /* updates that are certain so far */
};

static void at_most(struct inertness *inertness, uint64_t updates) {
    if (updates < inertness->sure) inertness->sure = updates;
}

static int same_list(const struct key_list *a, const struct key_list *b) {
    return a->count == b->count && memcmp(a->item, b->item, a->count) == 0;
}

static int skips_outliers(const struct config *config) {
    return config->loop.skip == SKIP_OLMO_OUTLIER;
}

/* Whether a and b differ only in keys that a function below knows. */
static int only_known_differ(const struct config *a, const struct config *b) {
    struct config like = *b;
    like.schedule = a->schedule;
    like.resume = a->resume;
    like.fault = a->fault;
    like.loop.eval = a->loop.eval;
    like.loop.eval_every = a->loop.eval_every;
    like.loop.epoch = a->loop.epoch;
    like.batch.tail = a->batch.tail;
    memcpy(like.rng.data, a->rng.data, sizeof like.rng.data);
    memcpy(like.rng.dropout, a->rng.dropout, sizeof like.rng.dropout);
    memcpy(like.rng.rounding, a->rng.rounding, sizeof like.rng.rounding);
    memcpy(like.rng.order, a->rng.order, sizeof like.rng.order);
    if (skips_outliers(a) && skips_outliers(b)) {
        like.loop.skip_sigma = a->loop.skip_sigma;
        like.loop.on_skip = a->loop.on_skip;
    }
    if (a->scaler.kind == SCALER_DYNAMIC && b->scaler.kind == SCALER_DYNAMIC) {
        like.scaler.growth_interval = a->scaler.growth_interval;
        like.scaler.growth_factor = a->scaler.growth_factor;
    }
    return memcmp(&like, a, sizeof like) == 0;
}

/* ---- learning rates ---- */

static int counts(const struct key_list *list) {
    int found = 0;
    for (uint8_t i = 0; i < list->count; i++)
        found += list->item[i] == PHASE_COUNT_UPDATE;
    return found;
}

/* Whether the schedule's counter takes one step in an update and none elsewhere. */
static int counts_once(const struct config *config) {
    return counts(&config->loop.update) == 1 && counts(&config->loop.micro) == 0 &&
           counts(&config->loop.epoch) == 0 && counts(&config->loop.eval) == 0 &&
           counts(&config->loop.on_skip) <= 1;
}

struct rates {
    const struct config *config;
    const struct sched_class *class_;
};

/* Opens the schedule of a configuration; *out_sure says whether its rates can be known beforehand:
 * it is one of ours, has no state, and its counter counts updates. */
static enum status rates_open(const struct config *config, struct rates *out, int *out_sure) {
    *out = (struct rates){config, NULL};
    *out_sure = strcmp(config->schedule.which.module, CONFIG_NO_MODULE) == 0 &&
                config->schedule.start != START_MIN && counts_once(config);
    if (*out_sure == 0) return STATUS_OK;
    TRY(plugin_schedule(&config->schedule.which, &out->class_));
    *out_sure = out->class_->state_size == 0;
    return STATUS_OK;
}

static enum status rate_at(const struct rates *rates, double counter, double *out) {
    const struct sched_call call = run_schedule_call(rates->config);
    return plugin_value(&rates->config->schedule.which, rates->class_, &call, counter, out);
}

/* The rate before the first schedule phase. START_MIN is excluded by rates_open. */
static enum status rate_first(const struct rates *rates, double *out) {
    const int start = rates->config->schedule.start;
    if (start == START_F0) return rate_at(rates, loop_start_counter(rates->config), out);
    *out = start == START_BASE ? rates->config->optimizer.lr : 0.0;
    return STATUS_OK;
}

static int alike(const double lr[2]) {
    return real_bits_f64(lr[0]) == real_bits_f64(lr[1]);
}

/* Lowers the certain updates to those before the first rate that differs. An update k reads the
 * schedule at counter k at the most; after a restart that loses the counter, or a skipped update,
 * it reads an earlier counter, which has been compared as well. One that gets something wrong may
 * read a later counter, or take another peak (inert_wrong_restart). */
static enum status compare_rates(struct inertness *inertness, const struct rates rates[2]) {
    double lr[2];
    for (int i = 0; i < 2; i++)
        TRY(rate_first(&rates[i], &lr[i]));
    if (!alike(lr)) at_most(inertness, 0);
    for (uint64_t n = 0; n <= inertness->sure; n++) {
        for (int i = 0; i < 2; i++)
            TRY(rate_at(&rates[i], loop_schedule_counter(rates[i].config, n), &lr[i]));
        if (!alike(lr)) at_most(inertness, n == 0 ? 0 : n - 1);
    }
    return STATUS_OK;
}

/* A restart may double the counter, or make the LR that it finds the schedule's peak
 * (resume.wrong): what is read behind it has not been compared. */
static void inert_wrong_restart(struct inertness *inertness) {
    const struct config *const configs[] = {inertness->a, inertness->b};
    for (int i = 0; i < 2; i++)
        if (configs[i]->resume.after != 0 && configs[i]->resume.wrong.count > 0)
            at_most(inertness, configs[i]->resume.after);
}

static enum status inert_schedule(struct inertness *inertness) {
    struct rates rates[2];
    int sure[2];
    if (memcmp(&inertness->a->schedule, &inertness->b->schedule, sizeof inertness->a->schedule) ==
        0)
        return STATUS_OK;
    inert_wrong_restart(inertness);
    TRY(rates_open(inertness->a, &rates[0], &sure[0]));
    TRY(rates_open(inertness->b, &rates[1], &sure[1]));
    if (sure[0] && sure[1]) return compare_rates(inertness, rates);
    at_most(inertness, 0);
    return STATUS_OK;
}

/* ---- restarts and events ---- */

static void inert_restart(struct inertness *inertness) {
    const struct config *const configs[] = {inertness->a, inertness->b};
    if (memcmp(&inertness->a->resume, &inertness->b->resume, sizeof inertness->a->resume) == 0)
        return;
    for (int i = 0; i < 2; i++)
        if (configs[i]->resume.after != 0) at_most(inertness, configs[i]->resume.after);
}

static void inert_fault(struct inertness *inertness) {
    const struct config *const configs[] = {inertness->a, inertness->b};
    if (memcmp(&inertness->a->fault, &inertness->b->fault, sizeof inertness->a->fault) == 0) return;
    for (int i = 0; i < 2; i++)
        if (configs[i]->fault.update != 0) at_most(inertness, configs[i]->fault.update - 1);
}

static int same_event(const struct stream_event *a, const struct stream_event *b) {
    return a->kind == b->kind && a->slot == b->slot && a->update == b->update &&
           a->number == b->number && a->clock == b->clock && a->placed == b->placed;
}

/* Events are in their order, so those before the first one that differs are the same in both. */
static enum status inert_stream(struct inertness *inertness, enum stream stream) {
    struct stream_events events[2];
    TRY(stream_events_parse(stream_text(inertness->a, stream), &events[0]));
    TRY(stream_events_parse(stream_text(inertness->b, stream), &events[1]));
    uint32_t i = 0;
    while (i < events[0].count && i < events[1].count &&
           same_event(&events[0].event[i], &events[1].event[i]))
        i++;
    for (int which = 0; which < 2; which++)
        if (i < events[which].count) at_most(inertness, events[which].event[i].update - 1);
    return STATUS_OK;
}

/* ---- evaluations and epochs ---- */

/* An evaluation's phases run after the update but still belong to it, hence the - 1. */
static void inert_eval(struct inertness *inertness) {
    const struct config *const configs[] = {inertness->a, inertness->b};
    if (inertness->a->loop.eval_every == inertness->b->loop.eval_every &&
        same_list(&inertness->a->loop.eval, &inertness->b->loop.eval))
        return;
    for (int i = 0; i < 2; i++)
        if (configs[i]->loop.eval_every != 0) at_most(inertness, configs[i]->loop.eval_every - 1);
}

/* The number of updates after which the place in the data need no longer follow from counting them:
 * a restart or an event of the data stream may have moved it. */
static enum status place_known(const struct config *config, uint64_t *out) {
    struct stream_events events;
    *out = UINT64_MAX;
    if (config->resume.after != 0) *out = config->resume.after;
    TRY(stream_events_parse(config->rng.data, &events));
    if (events.count > 0 && events.event[0].update - 1 < *out) *out = events.event[0].update - 1;
    return STATUS_OK;
}

/* The last full update of an epoch may already end it, so the two are certain to agree only before
 * it. */
static enum status inert_epoch(struct inertness *inertness) {
    const struct config *const configs[] = {inertness->a, inertness->b};
    const uint64_t full =
        inertness->samples / (inertness->a->batch.size * config_fed_ranks(inertness->a));
    if (inertness->a->batch.tail == inertness->b->batch.tail &&
        same_list(&inertness->a->loop.epoch, &inertness->b->loop.epoch))
        return STATUS_OK;
    at_most(inertness, full == 0 ? 0 : full - 1);
    for (int i = 0; i < 2; i++) {
        uint64_t known;
        TRY(place_known(configs[i], &known));
        at_most(inertness, known);
    }
    return STATUS_OK;
}

/* ---- rules that look back ---- */

static void inert_skip(struct inertness *inertness) {
    if (!skips_outliers(inertness->a) ||
        (real_bits_f64(inertness->a->loop.skip_sigma) ==
             real_bits_f64(inertness->b->loop.skip_sigma) &&
         same_list(&inertness->a->loop.on_skip, &inertness->b->loop.on_skip)))
        return;
    at_most(inertness, outlier_least(inertness->a->loop.skip_window) - 1);
}

/* An interval of n lets the scale grow at the end of update n at the earliest, later where an
 * update overflowed. That update already leaves another scale behind, hence the - 1. */
static void inert_scaler(struct inertness *inertness) {
    const struct config *const configs[] = {inertness->a, inertness->b};
    if (memcmp(&inertness->a->scaler, &inertness->b->scaler, sizeof inertness->a->scaler) == 0)
        return;
    for (int i = 0; i < 2; i++)
        at_most(inertness, configs[i]->scaler.growth_interval - 1);
}

enum status inert_updates(const struct config *a, const struct config *b, uint64_t steps,
                          uint64_t samples, uint64_t *out) {
    struct inertness inertness = {.a = a, .b = b, .samples = samples, .sure = steps};
    *out = 0;
    if (!only_known_differ(a, b)) return STATUS_OK;
    inert_restart(&inertness);
    inert_fault(&inertness);
    for (uint32_t i = 0; i < STREAM_KEYS; i++)
        TRY(inert_stream(&inertness, stream_of_key(i)));
    inert_eval(&inertness);
    TRY(inert_epoch(&inertness));
    inert_skip(&inertness);
    inert_scaler(&inertness);
    TRY(inert_schedule(&inertness));
    *out = inertness.sure;
    return STATUS_OK;
}

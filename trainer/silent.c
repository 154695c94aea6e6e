/* SPDX-License-Identifier: Apache-2.0
 * Compares learning rates counter by counter. */
#include "trainer/silent.h"

#include <string.h>

#include "base/real.h"
#include "trainer/loop.h"
#include "trainer/plugin.h"
#include "trainer/run_private.h"

/* Equal but for the schedule's class, its values, total and warm-up. */
static int only_shape_differs(const struct config *a, const struct config *b) {
    struct config like = *b;
    like.schedule.which = a->schedule.which;
    like.schedule.total = a->schedule.total;
    like.schedule.warmup = a->schedule.warmup;
    like.schedule.warmup_ratio = a->schedule.warmup_ratio;
    like.schedule.warmup_rounding = a->schedule.warmup_rounding;
    return memcmp(&like, a, sizeof like) == 0;
}

static int counts(const struct key_list *list) {
    int found = 0;
    for (uint8_t i = 0; i < list->count; i++)
        found += list->item[i] == PHASE_COUNT_UPDATE;
    return found;
}

/* One step of the counter in an update, and none elsewhere. */
static int counts_once(const struct config *config) {
    return counts(&config->loop.update) == 1 && counts(&config->loop.micro) == 0 &&
           counts(&config->loop.epoch) == 0 && counts(&config->loop.eval) == 0 &&
           counts(&config->loop.on_skip) <= 1;
}

struct rates {
    const struct config *config;
    const struct sched_class *class_;
};

/* A pure schedule of ours that starts where the other one does. */
static enum status rates_open(const struct config *config, struct rates *out, int *out_sure) {
    *out = (struct rates){config, NULL};
    *out_sure = strcmp(config->schedule.which.module, CONFIG_NO_MODULE) == 0 &&
                config->schedule.start != START_MIN && counts_once(config);
    if (*out_sure == 0) return STATUS_OK;
    TRY(plugin_schedule(&config->schedule.which, &out->class_));
    *out_sure = out->class_->state_size == 0;
    return STATUS_OK;
}

static enum status rate_at(const struct rates *rates, double counter, uint64_t *out_bits) {
    const struct sched_call call = run_schedule_call(rates->config);
    double lr;
    TRY(plugin_value(&rates->config->schedule.which, rates->class_, &call, counter, &lr));
    *out_bits = real_bits_f64(lr);
    return STATUS_OK;
}

static enum status alike_at(const struct rates rates[2], double counter, int *out) {
    uint64_t bits[2];
    for (int i = 0; i < 2; i++)
        TRY(rate_at(&rates[i], counter, &bits[i]));
    *out = bits[0] == bits[1];
    return STATUS_OK;
}

/* After update k nothing has looked further than counter k; one more is left as a margin. */
enum status silent_updates(const struct config *a, const struct config *b, uint64_t steps,
                           uint64_t *out) {
    struct rates rates[2];
    int sure[2], alike = 1;
    *out = 0;
    if (!only_shape_differs(a, b)) return STATUS_OK;
    TRY(rates_open(a, &rates[0], &sure[0]));
    TRY(rates_open(b, &rates[1], &sure[1]));
    if (!sure[0] || !sure[1]) return STATUS_OK;
    TRY(alike_at(rates, loop_start_counter(a), &alike));
    for (uint64_t n = 0; alike && n <= steps + 1; n++) {
        TRY(alike_at(rates, loop_schedule_counter(a, n), &alike));
        if (alike && n >= 1) *out = n - 1;
    }
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Holds the settings of two checkpoints' optimizers against each other, by torch's names. */
#include "readback/kept_settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "readback/update.h"

/* Numbers of a group that a rule uses and no trainer is known to move from update to update. The LR
 * is the scheduler's; of momentum and betas see below. */
static const char *const kept_keys[] = {"weight_decay", "eps",         "eps[0]",        "eps[1]",
                                        "dampening",    "nesterov",    "amsgrad",       "maximize",
                                        "decay_rate",   "beta2_decay", "clip_threshold"};
/* OneCycleLR and CyclicLR move these with the LR (cycle_momentum). */
static const char *const cycled_keys[] = {"momentum", "betas[0]", "betas[1]", "beta1"};

static int is_one_of(const char *key, const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0) return 1;
    return 0;
}

static const struct training_number *find_number(const struct training_group *group,
                                                 const char *key) {
    for (size_t i = 0; i < group->number_count; i++)
        if (strcmp(group->numbers[i].key, key) == 0) return &group->numbers[i];
    return NULL;
}

/* Whether the file's own groups say that a scheduler moves momentum or betas: it leaves the range
 * there, as it leaves `initial_lr` for the LR. */
static int is_cycled(const struct training_group *group) {
    return find_number(group, "max_momentum") != NULL ||
           find_number(group, "base_momentum") != NULL;
}

/* torch's Adafactor calls its limit of clipping "d", as D-Adaptation and Prodigy do the step size
 * that they estimate anew at each update. */
static int is_limit(const struct training_group *group, const char *key) {
    return strcmp(key, "d") == 0 && find_number(group, "beta2_decay") != NULL;
}

/* Some trainers move the decay along a schedule of its own (Megatron's start_wd and end_wd), by
 * little from one update to the next. A tenth is chosen: a schedule of ten updates or more moves by
 * no more than that once it is under way, and nobody types a decay that is so near. */
static int is_scheduled_decay(const char *key, double was, double is) {
    const double most = fmax(fabs(was), fabs(is));
    return strcmp(key, "weight_decay") == 0 && was != 0.0 && is != 0.0 &&
           fabs(is - was) <= 0.1 * most;
}

void kept_settings_compare(const struct training_folder *before,
                           const struct training_folder *after, struct kept_settings *out) {
    size_t length = 0;
    *out = (struct kept_settings){.held = 0};
    for (size_t g = 0; g < after->group_count && g < before->group_count; g++) {
        const struct training_group *const now = &after->groups[g];
        for (size_t i = 0; i < now->number_count; i++) {
            const struct training_number *const is = &now->numbers[i];
            const struct training_number *const was = find_number(&before->groups[g], is->key);
            const int kept =
                is_one_of(is->key, kept_keys, COUNT_OF(kept_keys)) || is_limit(now, is->key);
            const int cycled = is_one_of(is->key, cycled_keys, COUNT_OF(cycled_keys));
            if (was == NULL || !(kept || (cycled && !is_cycled(now)))) continue;
            out->held++;
            if (was->value == is->value) continue;
            out->other++;
            out->scheduled += (size_t)is_scheduled_decay(is->key, was->value, is->value);
            if (length >= sizeof out->text) continue;
            const int printed =
                snprintf(out->text + length, sizeof out->text - length,
                         "%s%s of group %zu was %s and is %s", length > 0 ? "; " : "", is->key, g,
                         update_number(was->value, 0.0).text, update_number(is->value, 0.0).text);
            length += printed > 0 ? (size_t)printed : 0;
        }
    }
}

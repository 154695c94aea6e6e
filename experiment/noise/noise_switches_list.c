/* SPDX-License-Identifier: Apache-2.0
 * Lists the switches of a configuration: the base, the keys of numerics.determinism, whole modes,
 * and kinds of sum. Measures nothing. Invariant: switches that stand over the same one follow each
 * other, right behind it. */
#include <stdio.h>
#include <string.h>

#include "experiment/noise/noise_switches.h"
#include "scenarios/inert.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"

struct listing {
    const struct config *base;
    uint64_t steps;
    struct noise_switch *out;
    uint32_t count;
    uint32_t over; /* index of the switch over which those that are added stand */
};

static struct noise_switch *add(struct listing *listing) {
    struct noise_switch *const fresh = &listing->out[listing->count++];
    memset(fresh, 0, sizeof *fresh);
    fresh->config = *listing->base;
    fresh->over = listing->over;
    return fresh;
}

static void check(const struct listing *listing, struct noise_switch *one) {
    if (one->untestable[0] == '\0' && config_validate(&one->config, listing->steps) != STATUS_OK)
        snprintf(one->untestable, sizeof one->untestable, "%s", status_text());
}

/* Moves one key of numerics.determinism away from what the base has; the switch is named by the
 * word that the key then has. */
static enum status add_key(struct listing *listing, const char *name, int32_t *value) {
    struct noise_switch *const one = &listing->out[listing->count - 1];
    char path[64];
    snprintf(path, sizeof path, "numerics.determinism.%s", name);
    const struct key_row *const row = schema_find(path, NULL);
    const char *const inert = inert_reason(listing->base, path);
    if (row == NULL) FAIL(STATUS_INTERNAL, "%s is no row", path);
    *value = !*value;
    snprintf(one->name, sizeof one->name, "determinism.%s: %s", name, row->names[*value]);
    if (inert != NULL) snprintf(one->untestable, sizeof one->untestable, "%s", inert);
    check(listing, one);
    return STATUS_OK;
}

static enum status add_keys(struct listing *listing) {
    TRY(add_key(listing, "workspace", &add(listing)->config.numerics.determinism.workspace));
    TRY(add_key(listing, "order", &add(listing)->config.numerics.determinism.order));
    TRY(add_key(listing, "atomics", &add(listing)->config.numerics.determinism.atomics));
    TRY(add_key(listing, "split_k", &add(listing)->config.numerics.determinism.split_k));
    return add_key(listing, "fill", &add(listing)->config.numerics.determinism.fill);
}

static struct noise_switch *add_in_mode(struct listing *listing, int32_t mode) {
    struct noise_switch *const one = add(listing);
    config_set_mode(&one->config, mode);
    if (mode == MODE_SHUFFLED) one->config.numerics.order_seed = KEY_WORD_UINT;
    return one;
}

static void add_mode(struct listing *listing, int32_t mode, const char *name) {
    struct noise_switch *const one = add_in_mode(listing, mode);
    snprintf(one->name, sizeof one->name, "mode %s", name);
    check(listing, one);
}

/* Adds one switch per kind of sum: the mode with that kind alone. */
static enum status add_kinds(struct listing *listing, int32_t mode, const char *key, uint32_t first,
                             uint32_t last) {
    const struct key_row *const row = schema_find(key, NULL);
    if (row == NULL) FAIL(STATUS_INTERNAL, "%s is no row", key);
    for (uint32_t kind = first; kind <= last && row->names[kind] != NULL; kind++) {
        struct noise_switch *const one = add_in_mode(listing, mode);
        *(mode == MODE_ATOMIC ? &one->config.atomic.kinds : &one->config.shuffle.kinds) =
            (struct key_list){.item = {(uint8_t)kind}, .count = 1};
        snprintf(one->name, sizeof one->name, "%s: %s", key, row->names[kind]);
        check(listing, one);
    }
    return STATUS_OK;
}

#define KIND_FORWARD 0u /* indices of shuffle.kinds: forward, weight, dq, embedding, norm, loss */
#define KIND_WEIGHT 1u
#define KIND_NORM 4u
#define KIND_LOSS 5u

enum status noise_switches_list(const struct config *config, uint64_t steps,
                                struct noise_switch *out, uint32_t *out_count) {
    const int device = config->numerics.backend == BACKEND_CUDA;
    struct config base = *config;
    struct listing listing = {.base = &base, .steps = steps, .out = out};
    config_set_mode(&base, device ? MODE_DETERMINISTIC : MODE_INVARIANT);
    struct noise_switch *const first = add(&listing);
    snprintf(first->name, sizeof first->name, "%s",
             device ? "mode deterministic" : "mode invariant");
    check(&listing, first);
    TRY(add_keys(&listing));
    add_mode(&listing, MODE_FAST, "fast");
    add_mode(&listing, MODE_ORDER_FREE, "order-free");
    if (device) {
        add_mode(&listing, MODE_INVARIANT, "invariant");
        listing.over = listing.count - 1;
    }
    add_mode(&listing, MODE_SHAPED, "shaped");
    add_mode(&listing, MODE_ATOMIC, "atomic");
    TRY(add_kinds(&listing, MODE_ATOMIC, "atomic.kinds", KIND_WEIGHT, KIND_NORM));
    add_mode(&listing, MODE_SHUFFLED, "shuffled");
    TRY(add_kinds(&listing, MODE_SHUFFLED, "shuffle.kinds", KIND_FORWARD, KIND_LOSS));
    *out_count = listing.count;
    return STATUS_OK;
}

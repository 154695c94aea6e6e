/* SPDX-License-Identifier: Apache-2.0
 * Lists the configurations with which each stratum is measured: one key is changed, and everything
 * else stays as it was resolved. So the DPO reference, which has keys of its own, stays what it is.
 * Trains nothing; a change that cannot be made is listed with the reason. */
#include "experiment/noise/noise.h"

#include <stdio.h>
#include <string.h>

#include "optim/clip.h"
#include "ranks/tree.h"
#include "scenarios/inert.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"

#define PAD_MORE 5 /* odd, so that rows change their alignment, too */

const char *noise_stratum_name(enum noise_stratum stratum) {
    static const char *const names[NOISE_STRATA] = {"repeat",      "instance", "process", "threads",
                                                    "micro-batch", "padding",  "layout",  "one-ulp",
                                                    "f64",         "device"};
    return stratum < NOISE_STRATA ? names[stratum] : "";
}

struct variants {
    const struct config *config;
    uint64_t steps;
    struct noise_variant *out;
    uint32_t count;
};

static struct noise_variant *add(struct variants *variants, enum noise_stratum stratum) {
    struct noise_variant *fresh = &variants->out[variants->count++];
    memset(fresh, 0, sizeof *fresh);
    fresh->config = *variants->config;
    fresh->stratum = stratum;
    return fresh;
}

static void add_untestable(struct variants *variants, enum noise_stratum stratum,
                           const char *reason) {
    struct noise_variant *fresh = add(variants, stratum);
    snprintf(fresh->untestable, sizeof fresh->untestable, "%s", reason);
}

/* Names a combination that does not validate instead of leaving it out. */
static void check(const struct variants *variants, struct noise_variant *variant) {
    if (config_validate(&variant->config, variants->steps) == STATUS_OK) return;
    snprintf(variant->untestable, sizeof variant->untestable, "%s", status_text());
}

static void add_threads(struct variants *variants, uint64_t processors) {
    const uint64_t own = variants->config->numerics.threads;
    const uint64_t counts[] = {1, 2, processors};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        if (counts[i] == own || (i == 2 && processors <= 2)) continue;
        struct noise_variant *fresh = add(variants, NOISE_THREADS);
        fresh->config.numerics.threads = counts[i];
        snprintf(fresh->name, sizeof fresh->name, "%ju instead of %ju", (uintmax_t)counts[i],
                 (uintmax_t)own);
        check(variants, fresh);
    }
}

/* Micro-batches are cut from what a rank has of an update: the largest such share. */
static uint64_t largest_share(const struct config *config) {
    const uint32_t ranks = (uint32_t)config->parallel.ranks;
    uint64_t largest = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const uint64_t own = tree_rank_samples(rank, config->batch.size,
                                               (uint32_t)config_dealt_shards(config), ranks);
        if (own > largest) largest = own;
    }
    return largest;
}

/* Splits the batch, or a rank's share of it, into one micro-batch, into two halves, and into single
 * samples. A batch.micro above the share cuts no otherwise than one that is the share. */
static void add_micro(struct variants *variants) {
    const struct config *const config = variants->config;
    const uint64_t share = largest_share(config);
    const uint64_t own = config->batch.micro < share ? config->batch.micro : share;
    const uint64_t splits[] = {share, share % 2 == 0 ? share / 2 : own, 1};
    const char *const whose = config->parallel.ranks > 1 ? "a rank's " : "";
    const uint32_t before = variants->count;
    uint64_t last = own;
    for (size_t i = 0; i < COUNT_OF(splits); i++) {
        if (splits[i] == own || splits[i] == last) continue;
        struct noise_variant *fresh = add(variants, NOISE_MICRO);
        last = fresh->config.batch.micro = splits[i];
        snprintf(fresh->name, sizeof fresh->name, "%ju of %s%ju instead of %ju",
                 (uintmax_t)splits[i], whose, (uintmax_t)share, (uintmax_t)own);
        check(variants, fresh);
    }
    if (variants->count == before)
        add_untestable(variants, NOISE_MICRO,
                       config->parallel.ranks > 1
                           ? "no rank has more than 1 sample of batch.size: there is no other split"
                           : "batch.size is 1: there is no other split");
}

static void add_padding(struct variants *variants) {
    const int packed = variants->config->batch.padding == PADDING_PACKED;
    struct noise_variant *fresh = add(variants, NOISE_PADDING);
    fresh->config.batch.pad += PAD_MORE;
    snprintf(fresh->name, sizeof fresh->name, "%d more positions", PAD_MORE);
    check(variants, fresh);
    fresh = add(variants, NOISE_PADDING);
    fresh->config.batch.padding = packed ? PADDING_LONGEST : PADDING_PACKED;
    snprintf(fresh->name, sizeof fresh->name, "%s instead of %s", packed ? "longest" : "packed",
             packed ? "packed" : "longest");
    check(variants, fresh);
}

static void add_layout(struct variants *variants) {
    const char *inert = inert_reason(variants->config, "batch.layout");
    const int separate = variants->config->batch.layout == LAYOUT_SEPARATE;
    if (inert != NULL) {
        add_untestable(variants, NOISE_LAYOUT, inert);
        return;
    }
    struct noise_variant *fresh = add(variants, NOISE_LAYOUT);
    fresh->config.batch.layout = separate ? LAYOUT_CONCATENATED : LAYOUT_SEPARATE;
    snprintf(fresh->name, sizeof fresh->name, "%s",
             separate ? "concatenated instead of separate" : "separate instead of concatenated");
    check(variants, fresh);
}

static void add_f64(struct variants *variants) {
    const struct config *config = variants->config;
    struct noise_variant *fresh = add(variants, NOISE_F64);
    if (config->numerics.param == DTYPE_F64 && config->numerics.compute == DTYPE_F64)
        snprintf(fresh->untestable, sizeof fresh->untestable,
                 "numerics.param and numerics.compute are f64: nothing wider to measure against");
    else if (strcmp(config->init.nudge, CONFIG_NO_NUDGE) != 0)
        snprintf(fresh->untestable, sizeof fresh->untestable,
                 "init.nudge moves by a unit of the dtype: f64 would start elsewhere");
    else if (config_ranks_close(config))
        snprintf(
            fresh->untestable, sizeof fresh->untestable,
            "parallel.ranks is %ju: ranks that close gradients of their own exchange f32, bf16 "
            "or f16, so they have no f64 twin; parallel.ranks 1 has one",
            (uintmax_t)config->parallel.ranks);
    else if (noise_set_f64(&fresh->config) == STATUS_OK)
        check(variants, fresh);
    else
        snprintf(fresh->untestable, sizeof fresh->untestable, "%s", status_text());
}

/* The CPU is the other device of every backend; a second device of the same kind is not looked for.
 */
static void add_device(struct variants *variants) {
    if (variants->config->numerics.backend == BACKEND_CPU) {
        add_untestable(variants, NOISE_DEVICE, "no second device");
        return;
    }
    struct noise_variant *fresh = add(variants, NOISE_DEVICE);
    fresh->config.numerics.backend = BACKEND_CPU;
    snprintf(fresh->name, sizeof fresh->name, "cpu instead of the backend");
    check(variants, fresh);
}

uint32_t noise_variants(const struct config *config, uint64_t steps, uint64_t processors,
                        struct noise_variant *out) {
    struct variants variants = {.config = config, .steps = steps, .out = out};
    add(&variants, NOISE_REPEAT);
    add(&variants, NOISE_INSTANCE);
    add(&variants, NOISE_PROCESS);
    add_threads(&variants, processors);
    add_micro(&variants);
    add_padding(&variants);
    add_layout(&variants);
    add(&variants, NOISE_ONE_ULP);
    add_f64(&variants);
    add_device(&variants);
    return variants.count;
}

enum status noise_set_mode(struct config *config, const char *mode) {
    const struct key_row *row = schema_find("numerics.mode", NULL);
    if (row == NULL) FAIL(STATUS_INTERNAL, "numerics.mode is no row");
    for (int32_t i = 0; row->names[i] != NULL; i++)
        if (strcmp(row->names[i], mode) == 0) {
            config_set_mode(config, i);
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT,
         "expected invariant, deterministic, fast, shuffled, shaped, atomic or another mode of "
         "numerics.mode, got \"%s\"",
         mode);
}

enum status noise_set_dtype(struct config *config, const char *dtype) {
    static const enum dtype known[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_F64};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(dtype_name(known[i]), dtype) != 0) continue;
        const int32_t own = (int32_t)known[i];
        const int narrow = dtype_width(known[i]) < dtype_width(DTYPE_F32);
        const int32_t wide = narrow ? (int32_t)DTYPE_F32 : own;
        config->numerics.param = config->numerics.compute = config->numerics.gradient = own;
        config->numerics.accumulate = config->numerics.optimizer = config->numerics.loss = wide;
        config->numerics.master = narrow ? (int32_t)DTYPE_F32 : CONFIG_MASTER_NONE;
        config->numerics.product = config->numerics.softmax = CONFIG_AS_COMPUTE;
        config->numerics.rounding = ROUNDING_NEAREST;
        config->dpo.reference_compute = own;
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "expected f32, bf16, f16 or f64, got \"%s\"", dtype);
}

enum status noise_set_f64(struct config *config) {
    TRY(noise_set_dtype(config, "f64"));
    config->numerics.mode = MODE_INVARIANT;
    config->numerics.rope = DTYPE_F64;
    config->clip.dtype = CLIP_GRADIENT;
    return STATUS_OK;
}

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
#include "scenarios/stream_course.h"

#define PAD_MORE 5 /* odd, so that rows change their alignment, too */

const char *noise_stratum_name(enum noise_stratum stratum) {
    static const char *const names[NOISE_STRATA] = {"repeat",      "instance", "process", "threads",
                                                    "micro-batch", "padding",  "layout",  "ranks",
                                                    "one-ulp",     "f64",      "device"};
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
    if (config_fed_ranks(config) > 1) {
        add_untestable(variants, NOISE_MICRO,
                       "parallel.feeds own-on-tensor deals whole micro-batches to ranks: another "
                       "split is of other samples");
        return;
    }
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

/* The key by which the training itself reads the number of ranks, so that another number would be
 * another training; NULL: none does. */
static const char *reads_ranks(const struct config *config) {
    static const char *const keys[] = {"parallel.sync",  "parallel.keeps", "parallel.logged",
                                       "parallel.feeds", "parallel.deal",  "parallel.draws",
                                       "clip.over"};
    const int32_t values[] = {config->parallel.sync,   config->parallel.keeps,
                              config->parallel.logged, config->parallel.feeds,
                              config->parallel.deal,   config->parallel.draws == DRAWS_SAME_ROWS,
                              config->clip.over};
    const int32_t divisor = config->loss.divisor;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (values[i] != 0) return keys[i];
    if (resume_errs(config, RESUME_SHARDS_BY_INDEX)) return "resume.wrong";
    if (config->loop.micro.count > 3) return "loop.micro";
    return divisor == DIVISOR_UPDATE || divisor == DIVISOR_UPDATE_UNSHIFTED ? NULL : "loss.divisor";
}

/* Where ranks join shards, one rank, and as many as there are shards; laws 21 and 5 promise that
 * neither moves a bit. */
static void add_rank_counts(struct variants *variants) {
    const struct config *const config = variants->config;
    const uint64_t own = config->parallel.ranks, shards = config->numerics.shards;
    const uint64_t most = shards < config->batch.size ? shards : config->batch.size;
    const uint64_t counts[] = {1, most};
    const char *const key = reads_ranks(config);
    if (key != NULL) {
        struct noise_variant *fresh = add(variants, NOISE_RANKS);
        snprintf(fresh->untestable, sizeof fresh->untestable,
                 "%s reads the number of ranks: another one would be another training", key);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        if (counts[i] == own || (i > 0 && counts[i] == counts[0])) continue;
        struct noise_variant *fresh = add(variants, NOISE_RANKS);
        fresh->config.parallel.ranks = counts[i];
        const int length = snprintf(fresh->name, sizeof fresh->name, "%ju instead of %ju",
                                    (uintmax_t)counts[i], (uintmax_t)own);
        if (shards > 1)
            snprintf(fresh->name + length, sizeof fresh->name - (size_t)length, ", of %ju shards",
                     (uintmax_t)shards);
        check(variants, fresh);
    }
}

/* Where ranks close gradients of their own, the orders that no library's numbers are needed for,
 * and buckets that are laid out otherwise. */
static void add_rank_orders(struct variants *variants) {
    static const int32_t orders[] = {REDUCE_TREE, REDUCE_LINEAR,  REDUCE_RECURSIVE,
                                     REDUCE_RING, REDUCE_HALVING, REDUCE_GLOO};
    const struct config *const config = variants->config;
    const char *const *const names = schema_find("parallel.reduce", NULL)->names;
    const int32_t own = config->parallel.reduce, buckets = config->parallel.buckets;
    if (config->parallel.race != RACE_NONE) {
        add_untestable(variants, NOISE_RANKS,
                       "parallel.race puts wrong numbers into buckets where an update has several, "
                       "and moves nothing where it has one: without it, what another order changes "
                       "can be measured");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        if (orders[i] == own) continue;
        struct noise_variant *fresh = add(variants, NOISE_RANKS);
        fresh->config.parallel.reduce = orders[i];
        snprintf(fresh->name, sizeof fresh->name, "%s instead of %s", names[orders[i]], names[own]);
        check(variants, fresh);
    }
    if (buckets == BUCKETS_FSDP2) return;
    struct noise_variant *fresh = add(variants, NOISE_RANKS);
    const char *const *const words = schema_find("parallel.buckets", NULL)->names;
    fresh->config.parallel.buckets = buckets == BUCKETS_ONCE ? BUCKETS_REBUILT : BUCKETS_ONCE;
    snprintf(fresh->name, sizeof fresh->name, "buckets %s instead of %s",
             words[fresh->config.parallel.buckets], words[buckets]);
    check(variants, fresh);
}

/* A training of one rank and one shard has no such stratum, and no line says so. */
static void add_ranks(struct variants *variants) {
    const struct config *const config = variants->config;
    if (config_ranks_close(config))
        add_rank_orders(variants);
    else if (config->parallel.ranks > 1 || config->numerics.shards > 1)
        add_rank_counts(variants);
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
    add_ranks(&variants);
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

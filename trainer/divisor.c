/* SPDX-License-Identifier: Apache-2.0
 * The gradients of plain sums, what each kind of divisor would say, and which kinds agree with what
 * was read. The least squares are trainer/divisor_fit.c's. */
#include "trainer/divisor.h"

#include <math.h>
#include <string.h>

#include "kernels/op.h"
#include "scenarios/selection.h"
#include "trainer/divisor_fit.h"
#include "trainer/restart.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"
#include "trainer/streams.h"
#include "trainer/optimizer_input.h"

/* The most memory that gradients of plain sums may take. It was chosen as what a workstation has
 * left beside a training of a model that is small enough to be read this way. */
#define PLAIN_BYTES_MAX ((size_t)8 << 30)

const char *divisor_kind_name(enum loss_divisor kind) {
    return schema_find("loss.divisor", NULL)->names[kind];
}

static uint32_t count_kinds(void) {
    const char *const *const names = schema_find("loss.divisor", NULL)->names;
    uint32_t count = 0;
    while (names[count] != NULL)
        count++;
    return count;
}

/* ---- what kinds say ---- */

/* Counts the label tokens of each of `ranks` equal shares of the update. */
static void count_ranks(const struct run *run, const struct sampler_plan *plan, uint64_t ranks,
                        uint64_t *out) {
    const uint64_t share = run->config.batch.size / ranks;
    memset(out, 0, ranks * sizeof *out);
    for (uint32_t i = 0; i < plan->samples; i++)
        for (uint32_t side = 0; side < run->dataset->sides; side++)
            out[i / share] += dataset_side(run->dataset, plan->sample[i], side)->labels;
}

/* Returns 1 when a micro-batch lies in two shares, so that it has two divisors. Ranks that train
 * have micro-batches of their own. */
static int splits_micros(const struct config *config, uint64_t ranks) {
    if (ranks == config->parallel.ranks) return 0;
    return config->batch.size / ranks % config->batch.micro != 0;
}

/* The same of a plan, whose micro-batches may be cut where a rank ends. */
static int plan_splits(const struct sampler_plan *plan, uint64_t share) {
    for (uint32_t m = 0; m < plan->micros; m++) {
        const struct sampler_micro *const micro = &plan->micro[m];
        if (micro->first / share != (micro->first + micro->samples - 1) / share) return 1;
    }
    return 0;
}

static enum status add_kind(const struct run *run, struct divisor_reader *reader,
                            enum loss_divisor kind, uint64_t ranks, struct arena *arena) {
    struct divisor_reading *reading = &reader->reading;
    struct divisor_kind *out = &reading->kinds[reading->kind_count++];
    struct config config = run->config;
    struct sampler_plan plan = reader->plan;
    uint64_t *labels;
    TRY(arena_take(arena, ranks, sizeof *labels, "ranks", &labels));
    TRY(arena_take(arena, reading->micros, sizeof *out->expected, "divisors", &out->expected));
    out->kind = kind;
    out->ranks = ranks;
    config.loss.divisor = (int32_t)kind;
    if (ranks > 0) {
        config.loss.ranks = ranks;
        count_ranks(run, &plan, ranks, labels);
        plan.rank_labels = labels;
    }
    for (uint32_t m = 0; m < reading->micros; m++)
        out->expected[m] = loss_divisor_of(&config, &plan, m, 0);
    return STATUS_OK;
}

/* Lists every kind, and mean-of-ranks once for every number of ranks whose shares hold whole
 * micro-batches. */
static enum status open_kinds(const struct run *run, struct divisor_reader *reader,
                              struct arena *arena) {
    struct divisor_reading *reading = &reader->reading;
    const uint64_t size = run->config.batch.size;
    const uint32_t count = count_kinds();
    TRY(arena_take(arena, count + size, sizeof *reading->kinds, "divisors", &reading->kinds));
    for (uint32_t kind = 0; kind < count; kind++)
        if (kind != DIVISOR_MEAN_OF_RANKS)
            TRY(add_kind(run, reader, (enum loss_divisor)kind, 0, arena));
    if (reader->plan.samples != size || reader->plan.leaked.micros > 0) return STATUS_OK;
    for (uint64_t ranks = 2; ranks <= size; ranks++)
        if (size % ranks == 0 && !plan_splits(&reader->plan, size / ranks))
            TRY(add_kind(run, reader, DIVISOR_MEAN_OF_RANKS, ranks, arena));
    return STATUS_OK;
}

/* ---- plain gradients ---- */

/* The gradients are for the host, so the host closes them. */
static enum status copy_gradient(struct run *run, unsigned char *out) {
    static const enum run_window windows[] = {WINDOW_NOW, WINDOW_OLD};
    const enum dtype dtype = run->layout.accumulator_dtype;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        struct close_args args = {.count = run->table.rows[row].count,
                                  .uses = run->table.rows[row].uses,
                                  .storage = dtype,
                                  .gradient = out + run->packed[row] * dtype_carrier(dtype)};
        for (uint32_t use = 0; use < args.uses; use++)
            TRY(run_read(run, windows[use], run->accumulators[row][use],
                         args.count * run->layout.accumulator, &args.acc[use]));
        run->host->close(&run->model.call, &args);
    }
    return STATUS_OK;
}

static enum status plain_micro(struct run *run, unsigned char *out) {
    TRY(phase_run(run, PHASE_ZERO));
    TRY(phase_run(run, PHASE_FETCH));
    TRY(phase_run(run, PHASE_FORWARD));
    TRY(phase_run(run, PHASE_BACKWARD));
    return copy_gradient(run, out);
}

/* Copies the plan, because its arrays belong to the run that made it, and that run is closed. */
static enum status keep_plan(const struct run *run, struct divisor_reader *reader,
                             struct arena *arena) {
    struct sampler_plan *plan = &reader->plan;
    struct sampler_micro *micro;
    uint32_t *sample;
    *plan = run->plan;
    TRY(arena_take(arena, plan->micros, sizeof *micro, "plan", &micro));
    TRY(arena_take(arena, plan->samples, sizeof *sample, "plan", &sample));
    memcpy(micro, plan->micro, plan->micros * sizeof *micro);
    memcpy(sample, plan->sample, plan->samples * sizeof *sample);
    plan->micro = micro;
    plan->sample = sample;
    plan->rank_labels = NULL;
    return STATUS_OK;
}

static enum status plain_all(struct run *run, struct divisor_reader *reader, struct arena *arena) {
    struct divisor_reading *reading = &reader->reading;
    TRY(restart_begin(run));
    streams_begin(run);
    TRY(sampler_plan_update(&run->sampler, state_head_of(run->state.host)->sampler, &run->plan));
    TRY(keep_plan(run, reader, arena));
    reading->micros = run->plan.micros;
    reader->elements = run->table.elements;
    reader->dtype = run->layout.accumulator_dtype;
    const size_t bytes = reader->elements * dtype_carrier(reader->dtype);
    if (bytes > PLAIN_BYTES_MAX / reading->micros) {
        reading->untestable = "the gradients of all micro-batches need more than 8 GiB";
        return STATUS_OK;
    }
    measure_begin(run);
    TRY(arena_take(arena, reading->micros, sizeof *reader->plain, "gradients", &reader->plain));
    for (run->micro = 0; run->micro < run->plan.micros;) {
        unsigned char **out = &reader->plain[run->micro];
        TRY(arena_take(arena, bytes, 1, "gradients", out));
        TRY(plain_micro(run, *out));
    }
    return STATUS_OK;
}

/* ---- before and after ---- */

/* Returns why no numbers can tell the divisors of this configuration, or NULL where they may. */
static const char *find_reason(const struct run *run) {
    const struct config *config = &run->config;
    if (loop_runs_per_update(config, PHASE_OPTIMIZE) != 1 ||
        loop_count(config, LOOP_UPDATE, PHASE_OPTIMIZE) != 1)
        return "the optimizer does not step once, after all micro-batches";
    if (loop_count(config, LOOP_MICRO, PHASE_CLIP) > 0 ||
        loop_count(config, LOOP_UPDATE, PHASE_CLIP) > 1)
        return "the gradient is clipped more than once in an update";
    if (config->loss.divisor == DIVISOR_MEAN_OF_RANKS && splits_micros(config, config->loss.ranks))
        return "a micro-batch lies in the shares of two ranks: its terms have two divisors";
    return NULL;
}

enum status divisor_before(const struct run *run, struct arena *arena, struct divisor_reader *out) {
    struct run *plain;
    memset(out, 0, sizeof *out);
    out->reading.untestable = find_reason(run);
    out->reading.task = (enum task)run->config.task;
    const struct run_options options = {.undivided = 1,
                                        .carriers = run->options.carriers,
                                        .steps = run->options.steps,
                                        .order_seed = run->options.order_seed};
    TRY(run_open(&run->config, run->dataset, &options, &plain));
    const unsigned char *state;
    enum status status = run_read_state(run, &state);
    if (status == STATUS_OK) status = run_restore(plain, state);
    if (status == STATUS_OK) status = plain_all(plain, out, arena);
    run_close(plain);
    TRY(status);
    TRY(open_kinds(run, out, arena));
    struct divisor_reading *reading = &out->reading;
    TRY(arena_take(arena, reading->micros, sizeof *reading->items, "divisors", &reading->items));
    TRY(arena_take(arena, reading->micros, sizeof *reading->divisor, "divisors",
                   &reading->divisor));
    TRY(arena_take(arena, reading->micros, sizeof *reading->error, "divisors", &reading->error));
    for (uint32_t m = 0; m < reading->micros; m++)
        reading->items[m] =
            reading->task == TASK_SFT ? out->plan.micro[m].labels : out->plan.micro[m].samples;
    return STATUS_OK;
}

/* Returns the factor of clipping by the log. It is 1 where clipping scaled nothing that the
 * optimizer took in. */
static double clip_of(const struct run *run) {
    const double coefficient = run->record.reals[REAL_CLIP_COEF];
    const uint32_t clip = loop_position(&run->config, LOOP_UPDATE, PHASE_CLIP, 1);
    if (clip == LOOP_NO_POSITION ||
        clip > loop_position(&run->config, LOOP_UPDATE, PHASE_OPTIMIZE, 1))
        return 1.0;
    if (run->config.clip.apply == CLIP_COPY) return 1.0;
    return run->config.clip.apply == CLIP_ABOVE && coefficient > 1.0 ? 1.0 : coefficient;
}

/* Turns the weights of the plain sums into divisors. A coefficient is rounded once to the loss
 * dtype, for dpo in both readings. The plain sum is scaled by other factors than the training's, so
 * forward and backward round elsewhere. That shows in the rest of the fit, but for what all
 * elements have in common, for which a unit of the compute dtype is added. */
static void invert_weights(struct divisor_reading *reading, const struct run *run,
                           const double *weight, const double *error) {
    const double unit = dtype_epsilon((enum dtype)run->config.numerics.loss) +
                        dtype_epsilon((enum dtype)run->config.numerics.compute);
    for (uint32_t m = 0; m < reading->micros; m++) {
        const double off = error[m] + unit * fabs(weight[m]);
        if (!(fabs(weight[m]) > 2.0 * off)) {
            reading->untestable = "rounding hides it: the error bound of a micro-batch's weight is "
                                  "more than half of it";
            return;
        }
        reading->divisor[m] = reading->clip / weight[m];
        reading->error[m] = fabs(reading->divisor[m]) * off / (fabs(weight[m]) - off);
    }
}

/* Judges a kind. `factor` comes from the micro-batch with the smallest error. One micro-batch alone
 * always has a factor, so it tells nothing and is not named. */
static void judge_kind(const struct divisor_reading *reading, struct divisor_kind *kind) {
    uint32_t best = 0;
    for (uint32_t m = 1; m < reading->micros; m++)
        if (reading->error[m] / kind->expected[m] < reading->error[best] / kind->expected[best])
            best = m;
    const double factor = reading->divisor[best] / kind->expected[best];
    const double off = reading->error[best] / kind->expected[best];
    int alike = reading->micros > 1;
    kind->explains = 1;
    for (uint32_t m = 0; m < reading->micros; m++) {
        const double expected = kind->expected[m], read = reading->divisor[m];
        if (fabs(read - expected) > reading->error[m]) kind->explains = 0;
        if (fabs(read - factor * expected) > reading->error[m] + off * expected) alike = 0;
    }
    kind->factor = kind->explains ? 1.0 : alike ? factor : (double)NAN;
}

enum status divisor_after(struct divisor_reader *reader, const struct run *run,
                          struct arena *arena) {
    struct divisor_reading *reading = &reader->reading;
    struct divisor_fit fit = {
        .run = run, .plain = reader->plain, .dtype = reader->dtype, .count = reading->micros};
    if (reading->untestable == NULL && (run->skipped || run->overflow))
        reading->untestable = "the update was skipped, or its gradient was not finite";
    if (reading->untestable != NULL) return STATUS_OK;
    reading->clip = clip_of(run);
    TRY(divisor_fit(&fit, arena));
    reading->rest = fit.rest;
    reading->untestable = fit.untestable;
    if (reading->untestable == NULL) invert_weights(reading, run, fit.weight, fit.error);
    for (uint32_t k = 0; k < reading->kind_count && reading->untestable == NULL; k++)
        judge_kind(reading, &reading->kinds[k]);
    return STATUS_OK;
}

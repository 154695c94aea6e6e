/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * By which number an update divided its micro-batches, read back from one run. Every loss.divisor,
 * in both tasks, with and without a moment, clipped and not, must read as its definition gives it
 * from the label tokens counted here. Where the numbers cannot tell, the reading must say so. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/divisor.h"

#define MICROS 3
#define SAMPLES 23 /* 6, 6, 6 and 5: the last micro-batch of update 4 has one */

#define MODEL "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 31}, init: {std: 0.1}, "
#define SFT "task: sft, batch: {size: 6, micro: 2}, " MODEL
#define DPO "task: dpo, batch: {size: 6, micro: 2}, " MODEL
#define DPO_SHORT "task: dpo, batch: {size: 6, micro: 2, tail: keep}, " MODEL

#define ADAMW "optimizer: {name: adamw, lr: 1e-3, weight_decay: 0.1}, "
#define PLAIN "optimizer: {name: sgd, lr: 1, weight_decay: 0.1}, "
#define MOMENTUM "optimizer: {name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1}, "
#define UNCLIPPED "clip: {max_norm: 0}, "
#define CLIPPED "clip: {max_norm: 0.01}, "
#define BF16 "numerics: {param: bf16, compute: bf16, master: f32, gradient: bf16}, "

static const struct setting {
    const char *name, *text;
    double most; /* relative error bound of a divisor */
} settings[] = {
    {"adamw", ADAMW UNCLIPPED, 1e-5},
    {"adamw, clipped", ADAMW CLIPPED, 1e-5},
    {"sgd", PLAIN UNCLIPPED, 1e-4},
    {"sgd, clipped", "optimizer: {name: sgd, lr: 10}, " CLIPPED, 1e-4},
    {"sgd with momentum", MOMENTUM CLIPPED, 1e-3},
    {"lion", "optimizer: {name: lion, lr: 1e-4}, " CLIPPED, 1e-5},
    {"adamw, bf16 with masters", ADAMW UNCLIPPED BF16, 0.05},
    {"sgd, bf16 with masters", PLAIN UNCLIPPED BF16, 0.05},
    {"f64", ADAMW CLIPPED "numerics: {param: f64, compute: f64}, ", 1e-12},
    {"order-free", ADAMW CLIPPED "numerics: {mode: order-free}, ", 1e-5},
    {"dropout", PLAIN CLIPPED "dropout: {residual: 0.2, attention: 0.1}, ", 1e-2},
    {"dropout of torch", ADAMW CLIPPED "dropout: {residual: 0.2}, rng: {kind: torch}, ", 1e-5},
    {"loss scale",
     ADAMW CLIPPED "scaler: {kind: static, init_scale: 1000}, "
                   "loop: {update: [unscale, clip, optimize, log, count, schedule, zero]}, ",
     1e-5},
    {"clip after the step",
     ADAMW CLIPPED "loop: {update: [optimize, clip, log, count, schedule, zero]}, ", 1e-5},
    {"copies clipped", ADAMW "clip: {max_norm: 0.01, apply: copy}, ", 1e-5},
    {"events", ADAMW CLIPPED "rng: {data: advance 1 at 3}, ", 1e-5},
};

static const struct kind_case {
    enum loss_divisor kind;
    const char *text;
    uint64_t ranks;
} kinds[] = {
    {DIVISOR_UPDATE, "loss: {divisor: update}", 0},
    {DIVISOR_MEAN_OF_MEANS, "loss: {divisor: mean-of-means}", 0},
    {DIVISOR_SUM_OF_MEANS, "loss: {divisor: sum-of-means}", 0},
    {DIVISOR_UPDATE_AND_MICROS, "loss: {divisor: update-and-micros}", 0},
    {DIVISOR_MEAN_OF_RANKS, "loss: {divisor: mean-of-ranks, ranks: 3}", 3},
    {DIVISOR_UPDATE_UNSHIFTED, "loss: {divisor: update-unshifted}", 0},
    {DIVISOR_MEANS_OVER_SIZE, "loss: {divisor: means-over-size}", 0},
    {DIVISOR_MICROS_BY_TOKENS, "loss: {divisor: micros-by-tokens}", 0},
};

/* Counts of label tokens or pairs by micro-batch, of real tokens, and of labelled first tokens. */
struct counted {
    double own[MICROS], tokens[MICROS], opens;
};

/* The definitions of the divisors; a rank is one micro-batch here. */
static double defined(enum loss_divisor kind, const struct counted *counted, int micro) {
    const double *const own = counted->own, *const tokens = counted->tokens;
    const double all = own[0] + own[1] + own[2];
    switch (kind) {
    case DIVISOR_MEAN_OF_MEANS:
    case DIVISOR_MEAN_OF_RANKS:
        return own[micro] * MICROS;
    case DIVISOR_SUM_OF_MEANS:
        return own[micro];
    case DIVISOR_UPDATE_AND_MICROS:
        return all * MICROS;
    case DIVISOR_UPDATE_UNSHIFTED:
        return all + counted->opens;
    case DIVISOR_MEANS_OVER_SIZE:
        return own[micro] * 2;
    case DIVISOR_MICROS_BY_TOKENS:
        return own[micro] * (tokens[0] + tokens[1] + tokens[2]) / tokens[micro];
    case DIVISOR_UPDATE:
    default:
        return all;
    }
}

struct training {
    struct arena arena;
    struct config config;
    struct dataset data;
    struct run run;
    struct divisor_reader reader;
    struct counted counted;
};

/* Trains update `update` of the configuration and reads it back. */
static void training_open(const char *text, uint64_t update, struct training *out) {
    memset(out, 0, sizeof *out);
    helper_config(8, &out->config, "%s", text);
    helper_ids_open(&out->config, 5, SAMPLES, 14, &out->arena, &out->data);
    helper_run_open(
        &out->config, &out->data,
        &(struct run_options){
            .steps = 8, .readback = 1, .apart = 1, .order_seed = out->config.numerics.order_seed},
        &out->run);
    for (uint64_t k = 1; k < update; k++)
        (void)helper_step(&out->run);
    if (divisor_before(&out->run, &out->arena, &out->reader) != STATUS_OK)
        fail_msg("%s", status_text());
    const struct record *record = helper_step(&out->run);
    if (divisor_after(&out->reader, &out->run, &out->arena) != STATUS_OK)
        fail_msg("%s", status_text());
    for (uint32_t m = 0; m < out->reader.reading.micros && m < MICROS; m++) {
        const struct sampler_micro *micro = &out->run.plan.micro[m];
        const int sft = out->config.task == TASK_SFT;
        out->counted.own[m] = sft ? record->micros[m][MICRO_TOKENS] : (double)micro->samples;
        out->counted.tokens[m] = (double)micro->tokens;
        out->counted.opens += sft ? (double)micro->opens : 0.0;
    }
}

static void training_close(struct training *training) {
    run_close(&training->run);
    arena_close(&training->arena);
}

/* Exactly those kinds must be named that give the same numbers. */
static void check_kinds(const struct divisor_reading *reading, const struct counted *counted,
                        enum loss_divisor truth) {
    int named = 0;
    for (uint32_t k = 0; k < reading->kind_count; k++) {
        const struct divisor_kind *kind = &reading->kinds[k];
        int same = 1;
        for (int m = 0; m < MICROS; m++) {
            const double expected = defined(kind->kind, counted, m);
            assert_true(fabs(kind->expected[m] - expected) <= 1e-15 * expected); /* 9 half ulps */
            if (fabs(expected - defined(truth, counted, m)) > reading->error[m]) same = 0;
        }
        assert_int_equal(kind->explains, same);
        named += kind->kind == truth && kind->explains;
        if (kind->explains) assert_true(kind->factor == 1.0);
    }
    assert_int_equal(named, 1);
}

static void check_one(const struct setting *setting, const char *task, const struct kind_case *kind,
                      uint64_t update) {
    struct training t;
    char text[1024];
    snprintf(text, sizeof text, "%s%s%s", task, setting->text, kind->text);
    training_open(text, update, &t);
    const struct divisor_reading *r = &t.reader.reading;
    if (r->untestable != NULL) fail_msg("%s: %s", text, r->untestable);
    assert_int_equal(r->micros, MICROS);
    double worst = 0.0, widest = 0.0;
    for (int m = 0; m < MICROS; m++) {
        const double truth = defined(kind->kind, &t.counted, m);
        const double off = fabs(r->divisor[m] - truth);
        assert_true(off <= r->error[m]);
        assert_true((double)r->items[m] == t.counted.own[m]);
        if (off / truth > worst) worst = off / truth;
        if (r->error[m] / truth > widest) widest = r->error[m] / truth;
    }
    print_message("%-26s %-44s off %.1e, bound %.1e, rest %.1e, clip %.4f\n", setting->name,
                  kind->text, worst, widest, r->rest, r->clip);
    assert_true(widest <= setting->most);
    if (widest < 0.02) check_kinds(r, &t.counted, kind->kind);
    training_close(&t);
}

static void corroborate_definitions(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT_OF(settings); s++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            check_one(&settings[s], SFT, &kinds[k], 3);
            if (s >= 4) continue;
            check_one(&settings[s], DPO, &kinds[k], 2);
            if (kinds[k].ranks == 0) check_one(&settings[s], DPO_SHORT, &kinds[k], 4);
        }
}

/* The reading must say so where no numbers could tell, and where these do not. */
static const struct mute_case {
    const char *text, *reason;
    uint64_t update;
} mutes[] = {
    {SFT ADAMW "loop: {update: [clip, optimize, log, count, schedule]}", "none of this update's",
     3},
    {SFT "optimizer: {name: adafactor, lr: 1e-2}", "keeps no moment", 2},
    {SFT ADAMW "loop: {micro: [fetch, forward, backward, optimize], update: [clip, log, count, "
               "schedule, zero]}",
     "does not step once", 2},
    {SFT ADAMW "loop: {micro: [fetch, forward, backward, optimize], update: [clip, optimize, log, "
               "count, schedule, zero]}",
     "does not step once", 2},
    {SFT ADAMW "loop: {micro: [fetch, forward, backward, clip]}", "more than once", 2},
    {SFT ADAMW "loss: {divisor: mean-of-ranks, ranks: 2}", "shares of two ranks", 2},
    {SFT PLAIN "schedule: {warmup: 3}", "learning rate is 0", 1},
    {SFT "optimizer: {name: sgd, lr: 1e-9}", "rounding hides it", 2},
    {SFT ADAMW "loop: {skip: olmo-outlier, skip_window: 4, skip_sigma: 1e-9}", "was skipped", 2},
};

static void validate_reasons(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mutes); i++) {
        struct training t;
        training_open(mutes[i].text, mutes[i].update, &t);
        const char *reason = t.reader.reading.untestable;
        print_message("%s\n", reason == NULL ? "(read)" : reason);
        assert_non_null(reason);
        assert_non_null(strstr(reason, mutes[i].reason));
        training_close(&t);
    }
}

/* The fit must refuse two gradients that are equal up to a factor, and a gradient of zeros. */
static void verify_dependence(void **state) {
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        struct training t;
        training_open(SFT ADAMW "seed: 4", 3, &t);
        float *const second = (float *)(void *)t.reader.plain[2];
        const float *const first = (const float *)(void *)t.reader.plain[1];
        assert_null(t.reader.reading.untestable);
        for (size_t e = 0; e < t.reader.elements; e++)
            second[e] = zero ? 0.0f : 2.0f * first[e];
        assert_int_equal(divisor_after(&t.reader, &t.run, &t.arena), STATUS_OK);
        assert_non_null(t.reader.reading.untestable);
        assert_non_null(
            strstr(t.reader.reading.untestable, zero ? "has no gradient" : "linearly dependent"));
        training_close(&t);
    }
}

/* Tests both parts of a bound: what gradients leave over, and what rounding hides in weights. */
static void verify_bounds(void **state) {
    (void)state;
    struct training t;
    training_open(SFT ADAMW CLIPPED "seed: 4", 3, &t);
    const struct divisor_reading *r = &t.reader.reading;
    float *plain[MICROS];
    double taken = 0.0, own = 0.0;
    for (int m = 0; m < MICROS; m++)
        plain[m] = (float *)(void *)t.reader.plain[m];
    for (size_t e = 0; e < t.reader.elements; e++) {
        double sum = 0.0;
        for (int m = 0; m < MICROS; m++)
            sum += (double)plain[m][e] / r->divisor[m];
        taken += sum * sum;
    }
    plain[0][5] += 1.0f; /* the optimizer input knows nothing of it */
    for (size_t e = 0; e < t.reader.elements; e++)
        own += (double)plain[0][e] * (double)plain[0][e];
    assert_int_equal(divisor_after(&t.reader, &t.run, &t.arena), STATUS_OK);
    assert_null(r->untestable);
    const double most = 1.0 / (r->divisor[0] * sqrt(taken));
    assert_true(r->rest > 0.3 * most && r->rest < 1.01 * most);
    assert_true(r->error[0] >
                0.99 * r->rest * sqrt(taken) / sqrt(own) * r->divisor[0] * r->divisor[0]);
    training_close(&t);

    training_open("task: sft, batch: {size: 6, micro: 6}, " MODEL
                  "optimizer: {name: sgd, lr: 1e-3, weight_decay: 0}, " UNCLIPPED,
                  2, &t);
    const float *const gradient = (const float *)(void *)t.reader.plain[0];
    double gain = 0.0, squares = 0.0;
    assert_null(r->untestable);
    for (uint32_t i = 0; i < t.run.owner_count; i++) {
        const uint32_t row = t.run.owner[i];
        const float *const weight = (const float *)run_param(&t.run, row);
        for (size_t e = 0; e < t.run.table.rows[row].count; e++) {
            const double g = fabs((double)gradient[t.run.packed[row] + e]);
            gain += g * 0.5 * dtype_spacing(fabs((double)weight[e]) + 1e-30, DTYPE_F32) / 1e-3;
            squares += g * g;
        }
    }
    const double hidden = gain / squares + r->rest / r->divisor[0];
    assert_true(r->error[0] > 0.95 * hidden * r->divisor[0] * r->divisor[0]);
    training_close(&t);
}

/* Where the log has a clip factor that did not act, the kind is found up to a factor. */
static void verify_factor(void **state) {
    (void)state;
    struct training t;
    training_open(SFT ADAMW CLIPPED "loss: {divisor: sum-of-means}", 3, &t);
    const double clip = t.reader.reading.clip;
    assert_true(clip < 0.01);
    t.run.record.reals[REAL_CLIP_COEF] = 1.0;
    assert_int_equal(divisor_after(&t.reader, &t.run, &t.arena), STATUS_OK);
    for (uint32_t k = 0; k < t.reader.reading.kind_count; k++) {
        const struct divisor_kind *kind = &t.reader.reading.kinds[k];
        assert_false(kind->explains);
        if (kind->kind == DIVISOR_SUM_OF_MEANS) assert_true(fabs(kind->factor * clip - 1.0) < 1e-5);
        if (kind->kind == DIVISOR_UPDATE) assert_true(isnan(kind->factor));
    }
    training_close(&t);
}

/* All kinds give the same for a single micro-batch. What leaked in is divided by its own count. */
static void validate_shapes(void **state) {
    (void)state;
    struct training t;
    training_open("task: sft, batch: {size: 6, micro: 6}, " MODEL ADAMW "seed: 1", 2, &t);
    assert_null(t.reader.reading.untestable);
    assert_int_equal(t.reader.reading.micros, 1);
    assert_int_equal(t.reader.reading.kind_count, 7);
    for (uint32_t k = 0; k < 7; k++) {
        const enum loss_divisor kind = t.reader.reading.kinds[k].kind;
        if (kind != DIVISOR_UPDATE_UNSHIFTED)
            assert_int_equal(t.reader.reading.kinds[k].explains, kind != DIVISOR_MEANS_OVER_SIZE);
        if (kind == DIVISOR_MEANS_OVER_SIZE) assert_true(isnan(t.reader.reading.kinds[k].factor));
    }
    training_close(&t);
    training_open("task: sft, batch: {size: 5, micro: 1, tail: leak}, " MODEL ADAMW "seed: 1", 5,
                  &t);
    const struct divisor_reading *r = &t.reader.reading;
    uint64_t leaked = 0, own = 0;
    assert_null(r->untestable);
    assert_int_equal(r->micros, 3 + 5);
    for (uint32_t m = 0; m < r->micros; m++)
        *(m < 3 ? &leaked : &own) += r->items[m];
    assert_true(r->kinds[DIVISOR_UPDATE].explains && leaked != own);
    assert_false(r->kinds[DIVISOR_MEAN_OF_MEANS].explains);
    assert_true(fabs(r->divisor[0] - (double)leaked) <= r->error[0]);
    assert_true(fabs(r->divisor[7] - (double)own) <= r->error[7]);
    training_close(&t);
}

/* Linked in the place of measure_begin, this counts how often an update begins to be measured. */
static int begun;
void __real_measure_begin(struct run *run);
void __wrap_measure_begin(struct run *run);
void __wrap_measure_begin(struct run *run) {
    begun++;
    __real_measure_begin(run);
}

/* Too many gradients to keep must be refused; an update that is not trained is not measured. */
static void verify_too_many(void **state) {
    (void)state;
    static const struct run_options options = {.steps = 8, .readback = 1, .apart = 1};
    struct training t;
    memset(&t, 0, sizeof t);
    helper_config(8, &t.config,
                  "task: sft, batch: {size: 2053, micro: 1}, model: {layers: 1, hidden: 256, "
                  "heads: 2, mlp: 20, vocab: 4099}, " ADAMW);
    helper_ids_open(&t.config, 5, 2053, 6, &t.arena, &t.data);
    helper_run_open(&t.config, &t.data, &options, &t.run);
    begun = 0;
    assert_int_equal(divisor_before(&t.run, &t.arena, &t.reader), STATUS_OK);
    assert_non_null(t.reader.reading.untestable);
    assert_non_null(strstr(t.reader.reading.untestable, "more than 8 GiB"));
    assert_int_equal(t.reader.reading.micros, 2053);
    assert_int_equal(begun, 0);
    training_close(&t);
    training_open(SFT ADAMW "seed: 1", 2, &t);
    assert_int_equal(begun, 1 + 2); /* one for the plain gradients, one for each update */
    training_close(&t);
}

/* The reading must change no bit of the run. */
static void verify_untouched(void **state) {
    (void)state;
    struct training t;
    struct run alone;
    training_open(SFT ADAMW CLIPPED "dropout: {residual: 0.2}, rng: {kind: torch}", 3, &t);
    helper_run_open(&t.config, &t.data, &(struct run_options){.steps = 8}, &alone);
    for (int k = 0; k < 3; k++)
        (void)helper_step(&alone);
    assert_int_equal(alone.layout.bytes, t.run.layout.bytes);
    assert_memory_equal(run_state_host(&alone), run_state_host(&t.run), alone.layout.bytes);
    run_close(&alone);
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_definitions), cmocka_unit_test(validate_reasons),
        cmocka_unit_test(verify_dependence),       cmocka_unit_test(verify_bounds),
        cmocka_unit_test(verify_factor),           cmocka_unit_test(validate_shapes),
        cmocka_unit_test(verify_too_many),         cmocka_unit_test(verify_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

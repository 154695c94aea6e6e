/* SPDX-License-Identifier: Apache-2.0
 * labels: grad memory
 * The gradient of the whole model and loss, in f64, must agree with differences of the loss itself:
 * along random directions in each parameter tensor, along random directions in all of them that
 * lean towards the gradient, and for single elements. It is taken after two optimizer steps (so
 * that norm weights are no longer 1, and the policy is no longer the reference), over several
 * micro-batches, with padded rows full of NaN.
 *
 * The difference is D(h) = (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h, which errs by h^4 / 30
 * times the fifth derivative; Richardson's D(h) + (D(h) - D(2h)) / 15 removes that term. Two bounds
 * are printed beside the error: truncation, |D(h) - D(2h)| / 15, which is the largest term removed
 * and so a generous bound; and rounding, 4 * 2^-53 |f| * 1.5 / h (f is itself a sum, hence the 4).
 * Every function of the model is smooth (there is no ReLU, and the maximum of a softmax cancels),
 * so no element is left out. The error is relative to the norm of the gradient tensor. The bound is
 * a hundred times tighter than the promise of 1e-7.
 *
 * With the argument `cpu`, the losses that are differenced are those of the CPU's kernels, and the
 * gradients those of the module that TWINSTEP_BACKEND names; at the point of the check both must
 * hold the same parameters and the same loss, to the bit. (The shim takes a hundred times as long
 * for a loss.) Modes shaped, shuffled and atomic then follow, with four subjects each; atomic
 * promises no bits, so there the CPU takes over the module's parameters. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

#define BOUND 1e-9
#define STEP 0x1p-11
#define SEED 20260721u
#define DIRECTIONS ((uint32_t)helper_size(1, 3, 3)) /* in the space of all parameters */
#define ELEMENTS ((uint32_t)helper_size(1, 2, 2))   /* per tensor */

static const struct subject {
    const char *name;
    const char *words;
} subjects[] = {
    {"dpo olmo2 untied separate 3 micro-batches",
     "task: dpo, model: {family: olmo2, MODEL, tied: false}, batch: {size: 6, micro: 2, pad: 3}"},
    {"dpo olmo2 tied concatenated 2 micro-batches",
     "task: dpo, model: {family: olmo2, MODEL, tied: true}, "
     "batch: {size: 6, micro: 3, pad: 1, layout: concatenated}"},
    {"dpo llama untied concatenated 6 micro-batches live reference",
     "task: dpo, model: {family: llama, MODEL, tied: false}, dpo: {reference: live, beta: 0.5}, "
     "batch: {size: 6, micro: 1, pad: 2, layout: concatenated}"},
    {"dpo llama tied separate packed",
     "task: dpo, model: {family: llama, MODEL, tied: true}, batch: {size: 6, micro: 3, "
     "padding: packed}"},
    {"sft olmo2 untied 3 micro-batches",
     "task: sft, model: {family: olmo2, MODEL, tied: false}, batch: {size: 6, micro: 2, pad: 1}"},
    {"sft olmo2 tied mean-of-means",
     "task: sft, model: {family: olmo2, MODEL, tied: true}, batch: {size: 6, micro: 3}, "
     "loss: {divisor: mean-of-means}"},
    {"sft llama untied",
     "task: sft, model: {family: llama, MODEL, tied: false}, batch: {size: 6, micro: 6}"},
    {"sft llama tied wide heads",
     "task: sft, model: {family: llama, MODEL, head_dim: 6, tied: true}, "
     "batch: {size: 6, micro: 2, pad: 5}"},
    {"sft qwen2 tied 2 micro-batches",
     "task: sft, model: {family: qwen2, MODEL, tied: true}, batch: {size: 6, micro: 3, pad: 2}"},
    {"dpo qwen2 untied, biases everywhere, concatenated",
     "task: dpo, model: {family: qwen2, MODEL, output_bias: true, mlp_bias: true}, "
     "batch: {size: 6, micro: 2, layout: concatenated}"},
    {"dpo qwen3 untied wide heads packed, yarn",
     "task: dpo, model: {family: qwen3, MODEL, head_dim: 6, rope_scaling: yarn, rope_factor: 4, "
     "rope_original_positions: 12}, batch: {size: 6, micro: 3, padding: packed}"},
    {"sft qwen3 tied, q/k/v and output biases",
     "task: sft, model: {family: qwen3, MODEL, tied: true, qkv_bias: true, output_bias: true}, "
     "batch: {size: 6, micro: 2, pad: 3}"},
    {"sft olmo2 untied, biases everywhere, dropout everywhere",
     "task: sft, model: {family: olmo2, MODEL, qkv_bias: true, output_bias: true, mlp_bias: true}, "
     "batch: {size: 6, micro: 3}, dropout: {embedding: 0.1, attention: 0.2, residual: 0.3}"},
    {"sft llama untied, dropout everywhere",
     "task: sft, model: {family: llama, MODEL, tied: false}, batch: {size: 6, micro: 2}, "
     "dropout: {embedding: 0.2, attention: 0.3, residual: 0.25}"},
    {"dpo olmo2 tied separate, dropout everywhere",
     "task: dpo, model: {family: olmo2, MODEL, tied: true}, batch: {size: 6, micro: 3, pad: 1}, "
     "dropout: {embedding: 0.1, attention: 0.2, residual: 0.4}"},
};

/* The chunks are so short that joins, drawn orders and races all take part. */
#define KINDS "[forward, weight, dq, embedding, norm]"
static const struct mode_case {
    int32_t mode;
    const char *name, *numerics, *words; /* keys of another mode would be inert */
} mode_cases[] = {
    {MODE_INVARIANT, "invariant", "", ""},
    {MODE_SHAPED, "shaped", ", mode: shaped", ", shaped: {table: \"*: 3\"}"},
    {MODE_SHUFFLED, "shuffled", ", mode: shuffled, order_seed: 5", ", shuffle: {chunk: 3}"},
    {MODE_ATOMIC, "atomic", ", mode: atomic, threads: 2", ", atomic: {kinds: " KINDS ", chunk: 3}"},
};

#define MODEL "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"

/* Writes the subject's configuration, with the model's sizes in place of the word that stands for
 * them. */
static void subject_config(const struct subject *subject, const struct mode_case *mode, int on_cpu,
                           struct config *out) {
    char words[512];
    const char *place = strstr(subject->words, "MODEL");
    assert_non_null(place);
    snprintf(words, sizeof words, "%.*s%s%s", (int)(place - subject->words), subject->words, MODEL,
             place + strlen("MODEL"));
    helper_config(2, out,
                  "%s, init: {std: 0.4}, data: {max_len: 16}, optimizer: {lr: 0.02}, "
                  "schedule: {name: constant}, numerics: {param: f64, compute: f64, rope: f64%s}%s",
                  words, on_cpu && mode->mode == MODE_ATOMIC ? "" : mode->numerics, mode->words);
    if (!on_cpu || mode->mode != MODE_ATOMIC) assert_int_equal(out->numerics.mode, mode->mode);
    if (out->numerics.mode == MODE_SHUFFLED) assert_int_equal(out->shuffle.chunk, 3);
    if (out->numerics.mode == MODE_ATOMIC) assert_int_equal(out->atomic.chunk, 3);
    if (!on_cpu) helper_backend(out);
}

/* The material for the check of one subject. */
struct bench {
    struct run run, cpu;
    struct run *losses; /* whose losses are differenced: `run`, or `cpu` */
    double *values[64]; /* by owner: parameters of `losses`, as the host has them */
    double *gradient[64];
    struct arena arena;
    size_t count[64];
    uint32_t tensors;
    double direction[8192], kept[8192];
    double loss, worst, truncation, rounding; /* relative to the norm at hand */
    const char *where;
};

static void forward_all(struct run *run, int backward) {
    struct state_head *head = run_head(run);
    memset(&head->window, 0, sizeof head->window);
    run->weights_fresh = 0;
    for (run->micro = 0; run->micro < run->plan.micros;) {
        assert_int_equal(phase_run(run, PHASE_FETCH), STATUS_OK);
        assert_int_equal(phase_run(run, PHASE_FORWARD), STATUS_OK);
        if (backward) assert_int_equal(phase_run(run, PHASE_BACKWARD), STATUS_OK);
    }
}

static double loss_now(struct run *run) {
    forward_all(run, 0);
    return loss_close(&run->config, &run_head(run)->window, &run->plan);
}

/* Makes two updates, and the forward and backward of a third. */
static double step_twice(struct run *run) {
    helper_step(run);
    helper_step(run);
    assert_int_equal(sampler_plan_update(&run->sampler, run_head(run)->sampler, &run->plan),
                     STATUS_OK);
    measure_begin(run);
    assert_int_equal(phase_run(run, PHASE_ZERO), STATUS_OK);
    forward_all(run, 1);
    assert_int_equal(phase_close_gradient(run), STATUS_OK);
    return loss_close(&run->config, &run_head(run)->window, &run->plan);
}

/* Returns a copy of a tensor that a backend may have. */
static double *copy_of(struct bench *bench, const struct run *run, size_t offset, size_t count) {
    const double *from;
    double *out;
    assert_int_equal(run_read(run, WINDOW_NOW, run_at(run, offset), count * sizeof *out, &from),
                     STATUS_OK);
    assert_int_equal(arena_take(&bench->arena, count, sizeof *out, "tensor", &out), STATUS_OK);
    memcpy(out, from, count * sizeof *out);
    return out;
}

/* Gives the run whose losses are differenced the values that the host has. */
static void put_values(const struct bench *bench, uint32_t owner) {
    const struct run *const run = bench->losses;
    double *const tensor = (double *)run_at(run, run->layout.tensor[run->owner[owner]].param);
    const size_t bytes = bench->count[owner] * sizeof *tensor;
    double *room;
    assert_int_equal(run_room(run, WINDOW_NOW, tensor, bytes, &room), STATUS_OK);
    memcpy(room, bench->values[owner], bytes);
    assert_int_equal(run_store(run, WINDOW_NOW, tensor, bytes), STATUS_OK);
}

static void bench_open(struct bench *bench) {
    struct run *const run = &bench->run;
    bench->loss = step_twice(run);
    bench->tensors = run->owner_count;
    assert_true(bench->tensors <= 64);
    for (uint32_t i = 0; i < bench->tensors; i++) {
        const struct state_tensor *tensor = &run->layout.tensor[run->owner[i]];
        bench->count[i] = run->table.rows[run->owner[i]].count;
        bench->values[i] = copy_of(bench, run, tensor->param, bench->count[i]);
        bench->gradient[i] = copy_of(bench, run, tensor->gradient, bench->count[i]);
    }
}

/* Brings both runs to the same point. They get there by themselves, except where sums race: there
 * the CPU's state is copied, and the losses then differ by rounding only (2.5e-16 of the loss was
 * seen; the bound 2^-48 is fourteen times that, or 32 roundings of 2^-53). */
static void check_point(struct bench *bench, int races) {
    struct run *const run = &bench->run;
    double loss = step_twice(&bench->cpu);
    for (uint32_t i = 0; i < bench->tensors; i++) {
        const uint64_t at = run->layout.tensor[run->owner[i]].param;
        const size_t bytes = bench->count[i] * sizeof *bench->values[i];
        if (!races) assert_memory_equal(run_at(&bench->cpu, at), bench->values[i], bytes);
        put_values(bench, i);
    }
    if (races) loss = loss_now(&bench->cpu);
    if (!(fabs(loss - bench->loss) <= (races ? 0x1p-48 * fabs(loss) : 0.0)))
        fail_msg("loss %a, the CPU's %a", bench->loss, loss);
}

/* Tensors first .. last - 1 lie one after the other in `direction` and `kept`. */
struct range {
    uint32_t first, last;
};

static double loss_along(struct bench *bench, struct range range, double t) {
    size_t at = 0;
    for (uint32_t i = range.first; i < range.last; i++) {
        for (size_t j = 0; j < bench->count[i]; j++, at++)
            bench->values[i][j] = bench->kept[at] + t * bench->direction[at];
        put_values(bench, i);
    }
    return loss_now(bench->losses);
}

static double five_points(const double f[4], double h) {
    return (8.0 * (f[1] - f[2]) - (f[0] - f[3])) / (12.0 * h);
}

/* Compares the difference of losses along the direction that is set with the gradient. */
static void check_direction(struct bench *bench, struct range range, double norm,
                            const char *where) {
    double exact = 0.0, f[4], g[4];
    size_t at = 0;
    for (uint32_t i = range.first; i < range.last; i++)
        for (size_t j = 0; j < bench->count[i]; j++, at++) {
            bench->kept[at] = bench->values[i][j];
            exact = fma(bench->gradient[i][j], bench->direction[at], exact);
        }
    static const double steps[4] = {2.0, 1.0, -1.0, -2.0};
    for (int i = 0; i < 4; i++)
        f[i] = loss_along(bench, range, steps[i] * STEP);
    g[1] = f[0];
    g[2] = f[3];
    g[0] = loss_along(bench, range, 4.0 * STEP);
    g[3] = loss_along(bench, range, -4.0 * STEP);
    (void)loss_along(bench, range, 0.0);
    double taken = (five_points(f, STEP) - five_points(g, 2.0 * STEP)) / 15.0;
    double numeric = five_points(f, STEP) + taken;
    double truncation = fabs(taken) / norm;
    double rounding = 4.0 * 0x1p-53 * fabs(bench->loss) * 1.5 / STEP / norm;
    double error = fabs(numeric - exact) / norm;
    if (truncation > bench->truncation) bench->truncation = truncation;
    if (rounding > bench->rounding) bench->rounding = rounding;
    if (error >= bench->worst) {
        bench->worst = error;
        bench->where = where;
    }
    if (!(error <= BOUND))
        fail_msg("%s: difference %.17g, gradient %.17g, error %.3g of the norm %.3g", where,
                 numeric, exact, error, norm);
}

static size_t elements_of(const struct bench *bench, struct range range) {
    size_t total = 0;
    for (uint32_t i = range.first; i < range.last; i++)
        total += bench->count[i];
    assert_true(total <= COUNT_OF(bench->direction));
    return total;
}

static double norm_of(const struct bench *bench, struct range range) {
    double square = 0.0;
    for (uint32_t i = range.first; i < range.last; i++)
        for (size_t j = 0; j < bench->count[i]; j++)
            square = fma(bench->gradient[i][j], bench->gradient[i][j], square);
    return sqrt(square);
}

/* Draws a random unit vector over the range. */
static void draw_direction(struct bench *bench, struct range range, uint64_t stream) {
    size_t total = elements_of(bench, range);
    double square = 0.0;
    for (size_t i = 0; i < total; i++) {
        bench->direction[i] = helper_uniform(SEED + stream, i);
        square = fma(bench->direction[i], bench->direction[i], square);
    }
    for (size_t i = 0; i < total; i++)
        bench->direction[i] /= sqrt(square);
}

/* Adds the gradient, scaled to length 1/4, to the direction: an error along the gradient itself
 * would hardly show along a random direction among thousands. (At length 1 the loss bends too much
 * for STEP.) */
static void lean_direction(struct bench *bench, struct range range, double norm) {
    size_t at = 0;
    for (uint32_t i = range.first; i < range.last; i++)
        for (size_t j = 0; j < bench->count[i]; j++, at++)
            bench->direction[at] += bench->gradient[i][j] / (4.0 * norm);
}

static size_t largest_element(const struct bench *bench, uint32_t tensor) {
    size_t best = 0;
    for (size_t j = 1; j < bench->count[tensor]; j++)
        if (fabs(bench->gradient[tensor][j]) > fabs(bench->gradient[tensor][best])) best = j;
    return best;
}

/* Checks the element with the largest gradient, and random ones. */
static void check_elements(struct bench *bench, uint32_t tensor, double norm, const char *name) {
    struct range range = {tensor, tensor + 1};
    for (uint32_t e = 0; e < ELEMENTS; e++) {
        double draw = (helper_uniform(SEED + 1, tensor * ELEMENTS + e) + 1.0) / 2.0;
        size_t element =
            e == 0 ? largest_element(bench, tensor) : (size_t)(draw * (double)bench->count[tensor]);
        memset(bench->direction, 0, bench->count[tensor] * sizeof *bench->direction);
        bench->direction[element] = 1.0;
        check_direction(bench, range, norm, name);
    }
}

static void check_subject(struct bench *bench) {
    bench->worst = bench->truncation = bench->rounding = 0.0;
    for (uint32_t i = 0; i < bench->tensors; i++) {
        struct range range = {i, i + 1};
        const char *name = bench->run.table.rows[bench->run.owner[i]].name;
        double norm = norm_of(bench, range);
        if (!(norm > 1e-4)) fail_msg("%s: gradient norm %g proves nothing", name, norm);
        draw_direction(bench, range, 2 + i);
        check_direction(bench, range, norm, name);
        check_elements(bench, i, norm, name);
    }
    struct range all = {0, bench->tensors};
    for (uint32_t d = 0; d < DIRECTIONS; d++) {
        const double norm = norm_of(bench, all);
        draw_direction(bench, all, 100 + d);
        lean_direction(bench, all, norm);
        check_direction(bench, all, norm, "all parameters");
    }
}

static struct bench bench;

static void verify_subject(const struct subject *subject, const struct mode_case *mode, int cpu) {
    const struct run_options options = {.poison = 1, .steps = 3, .order_seed = 1};
    struct config config, own;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    subject_config(subject, mode, 0, &config);
    subject_config(subject, mode, 1, &own);
    helper_ids_open(&config, SEED, 18, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &bench.run);
    if (cpu) helper_run_open(&own, &dataset, &options, &bench.cpu);
    bench.losses = cpu ? &bench.cpu : &bench.run;
    bench_open(&bench);
    if (cpu) check_point(&bench, mode->mode == MODE_ATOMIC);
    check_subject(&bench);
    print_message("%-60s %-9s loss %7.4f, %2u tensors, worst %.1e (truncation %.1e, rounding %.1e) "
                  "in %s\n",
                  subject->name, mode->name, bench.loss, bench.tensors, bench.worst,
                  bench.truncation, bench.rounding, bench.where);
    if (cpu) run_close(&bench.cpu);
    run_close(&bench.run);
    arena_close(&bench.arena);
    arena_close(&arena);
}

static void verify_gradients(void **state) {
    print_message("seed %u, h = %g\n", SEED, STEP);
    const int cpu = *(const int *)*state;
    for (size_t i = 0; i < COUNT_OF(subjects); i += helper_size(3, cpu ? 3 : 1, 1))
        verify_subject(&subjects[i], &mode_cases[0], cpu);
}

static void verify_modes(void **state) {
    const int cpu = *(const int *)*state;
    for (size_t i = 0; i < COUNT_OF(subjects) && cpu; i += helper_size(3, 3, 1))
        if (i % 4 > 0) verify_subject(&subjects[i], &mode_cases[i % 4], cpu);
}

int main(int argc, char **argv) {
    helper_unset_variables();
    int cpu = argc == 2 && strcmp(argv[1], "cpu") == 0;
    if (helper_backend_lacks()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(verify_gradients, &cpu),
                                       cmocka_unit_test_prestate(verify_modes, &cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

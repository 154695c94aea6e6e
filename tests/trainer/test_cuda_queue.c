/* SPDX-License-Identifier: Apache-2.0
 * labels: repro
 * The ops of a phase are queued: the shim runs them when the host waits and not before, and a
 * training that keeps no digests in between must have the CPU's bits all the same. Waits that do
 * not wait are planted and must show. No gradient may be summed by a call of its own, a watch must
 * see what was written, and an error in an op must end the update. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/pair.h"
#include "kernels/backend_abi.h"
#include "scenarios/scenario.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"
#include "trainer/watch_run.h"
#include "trainer/run_tensors.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"
#define WATCH TWINSTEP_BACKENDS "/twinstep_backend_watch.so"
#define UPDATES 2

#define SMALL "init: {std: 0.3}, optimizer: {lr: 1e-2, weight_decay: 0.1}, "
#define MODEL "layers: 1, hidden: 8, heads: 2, kv_heads: 1, mlp: 12, vocab: 19"

static const struct {
    const char *name, *body;
} trainings[] = {
    {"sft, bf16 with masters, a loss scale, dropout, gradients closed by each micro-batch",
     SMALL "task: sft, batch: {size: 4, micro: 2}, model: {family: llama, " MODEL "}, clip: "
           "{max_norm: 0.5}, scaler: {kind: dynamic, init_scale: 4, growth_interval: 1}, loop: "
           "{update: [unscale, clip, optimize, log, count, schedule, zero]}, dropout: {residual: "
           "0.2}, numerics: {param: bf16, compute: bf16, master: f32, grad_accumulate: storage}"},
    {"dpo, norms of heads, forwards apart, live reference, gradients that go on",
     SMALL "task: dpo, batch: {size: 2, micro: 1, layout: separate}, dpo: {reference: live}, "
           "model: {family: qwen3, " MODEL
           ", tied: true}, clip: {max_norm: 0.5, dtype: f32}, loop: {update: "
           "[clip, optimize, log, count, schedule]}"},
    {"sft, an optimizer of the host, no clipping",
     "task: sft, init: {std: 0.3}, batch: {size: 2, micro: 1}, model: {family: olmo2, " MODEL "}, "
     "optimizer: {name: adafactor, lr: 1e-2}, loop: {update: [optimize, log, count, schedule, "
     "zero]}"},
    {"sft, tensors that lie one behind the other",
     SMALL "task: sft, batch: {size: 2, micro: 1}, model: {family: llama, layers: 3, hidden: 16, "
           "heads: 2, kv_heads: 1, mlp: 32, vocab: 32}, clip: {max_norm: 0.5}, numerics: {param: "
           "bf16, compute: f32, master: f32}"},
    {"sft, f16 gradients that a loss scale makes overflow at first",
     SMALL "task: sft, batch: {size: 2, micro: 1}, model: {family: llama, " MODEL "}, scaler: "
           "{kind: dynamic, init_scale: 1048576, backoff_factor: 1e-4}, loop: {update: [unscale, "
           "clip, optimize, log, count, schedule, zero]}, numerics: {param: f16, compute: f16, "
           "master: f32}"},
};

struct bench {
    struct arena arena;
    struct config config;
    struct dataset dataset;
    struct run run;
};

/* `module` NULL stands for the CPU. */
static void bench_configure(struct bench *bench, size_t training, const char *module) {
    helper_config(UPDATES, &bench->config, "%s", trainings[training].body);
    if (module != NULL) {
        bench->config.numerics.backend = BACKEND_CUDA;
        snprintf(bench->config.numerics.backend_module,
                 sizeof bench->config.numerics.backend_module, "%s", module);
    }
}

static void bench_open_run(struct bench *bench, const struct run_options *options) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_ids_open(&bench->config, 7, 8, 9, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset, options, &bench->run);
}

static void bench_open_with(struct bench *bench, size_t training, const char *module,
                            const struct run_options *options) {
    bench_configure(bench, training, module);
    bench_open_run(bench, options);
}

static void bench_open(struct bench *bench, size_t training, const char *module) {
    const struct run_options options = {.steps = UPDATES};
    bench_open_with(bench, training, module, &options);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* Returns a digest of the state's bytes and of what was logged, of each update. */
static struct digest bench_train(struct bench *bench, size_t updates) {
    struct digest parts[2 * UPDATES], all;
    for (size_t i = 0; i < updates; i++) {
        const struct record *const record = helper_step(&bench->run);
        const unsigned char *bytes;
        digest_bytes("logged", record->reals, sizeof record->reals, &parts[2 * i]);
        assert_int_equal(run_read_state(&bench->run, &bytes), STATUS_OK);
        digest_bytes("state", bytes, bench->run.layout.bytes, &parts[2 * i + 1]);
    }
    digest_root("training", parts, 2 * updates, &all);
    return all;
}

static struct digest train(size_t training, const char *module) {
    struct bench bench;
    bench_open(&bench, training, module);
    const struct digest all = bench_train(&bench, UPDATES);
    bench_close(&bench);
    return all;
}

static void corroborate_queued_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        const struct digest cpu = train(i, NULL), shim = train(i, SHIM);
        if (memcmp(&cpu, &shim, sizeof cpu) != 0) fail_msg("%s", trainings[i].name);
    }
}

/* ---- planted: a wait that does not wait ---- */

static struct {
    const struct backend *real;
    size_t calls, forgotten;
    enum phase phase; /* the phase that runs; PHASE_TOTAL: none */
    size_t in_phase;  /* waits since the phase began, or since the last one ended */
    char name[32];    /* name of the phase with the wait that was left out */
} waits;

static enum status forgetful_wait(void) {
    const size_t nth = waits.in_phase++;
    if (waits.calls++ != waits.forgotten) return waits.real->wait();
    snprintf(waits.name, sizeof waits.name, "%s %zu",
             waits.phase == PHASE_TOTAL ? "records" : phase_name(waits.phase), nth);
    return STATUS_OK;
}

static void note_phase(void *context, enum phase phase, int ended) {
    (void)context;
    waits.phase = ended ? PHASE_TOTAL : phase;
    waits.in_phase = 0;
}

/* Runs one update with its `forgotten`-th wait left out, and counts how many waits there are. */
static size_t train_forgetfully(size_t training, size_t forgotten, struct digest *out) {
    struct bench bench;
    struct run *const run = &bench.run;
    bench_open(&bench, training, SHIM);
    struct backend planted = *run->backend;
    waits.real = run->backend;
    waits.calls = 0;
    waits.forgotten = forgotten;
    note_phase(NULL, PHASE_TOTAL, 1);
    run->options.at_phase = note_phase;
    planted.wait = forgetful_wait;
    run->backend = run->model.backend = run->digests.backend = &planted;
    if (run->reference != NULL) run->reference->model.backend = &planted;
    *out = bench_train(&bench, 1);
    assert_int_equal(waits.real->wait(), STATUS_OK);
    bench_close(&bench);
    return waits.calls;
}

/* Waits are left out one by one, and then what the host reads next is not there. That must show
 * behind the reference's and the policy's forward of both micro-batches, behind a clip's sums, and
 * behind the digests of the record. Behind the other waits nothing is queued, or the next wait
 * comes before the host looks. A backward reads copies of its batch's lists, which the next fetch
 * does not touch. */
static void verify_forgotten_waits_show(void **state) {
    static const char expected[] =
        "forward 0; forward 1; forward 0; forward 1; clip 0; records 0; ";
    (void)state;
    struct digest right, wrong;
    char shown[512] = "";
    const size_t all = train_forgetfully(1, SIZE_MAX, &right);
    for (size_t k = 0; k < all; k++) {
        train_forgetfully(1, k, &wrong);
        if (memcmp(&right, &wrong, sizeof right) == 0) continue;
        const size_t length = strlen(shown);
        snprintf(shown + length, sizeof shown - length, "%s; ", waits.name);
    }
    assert_string_equal(shown, expected);
}

/* ---- operands that a library's ops share ---- */

/* Small enough that each product is one piece. Their lists lie in memory that the host may not
 * read. */
static const char *const shared[] = {
    SMALL "task: sft, batch: {size: 2, micro: 1, pad: 2}, model: {family: llama, " MODEL "}, "
          "numerics: {backend: cuda, backend_module: " SHIM ", mode: deterministic}",
    SMALL
    "task: dpo, batch: {size: 2, micro: 2, layout: concatenated}, model: {family: llama, " MODEL
    "}, numerics: {backend: cuda, backend_module: " SHIM ", compute: bf16, mode: "
    "deterministic}",
    SMALL "task: dpo, batch: {size: 2, micro: 1, layout: separate}, model: {family: qwen2, " MODEL
          "}, numerics: {backend: cuda, backend_module: " SHIM ", compute: bf16, mode: fast}",
};

static const struct op_table *linears;

#define ALONE(op)                                                                                  \
    static void op##_alone(const struct op_call *call, const struct op##_args *args) {             \
        struct op_call own = *call;                                                                \
        own.queued = 0;                                                                            \
        linears->op(&own, args);                                                                   \
    }
ALONE(linear_forward)
ALONE(linear_input)
ALONE(linear_weight)

static struct digest train_shared(const char *body, int alone) {
    const struct run_options options = {.steps = UPDATES};
    struct bench bench;
    helper_config(UPDATES, &bench.config, "%s", body);
    bench_open_run(&bench, &options);
    struct op_table planted = *bench.run.model.ops;
    linears = bench.run.model.ops;
    planted.linear_forward = linear_forward_alone;
    planted.linear_input = linear_input_alone;
    planted.linear_weight = linear_weight_alone;
    if (alone) bench.run.model.ops = &planted;
    const struct digest all = bench_train(&bench, UPDATES);
    bench_close(&bench);
    return all;
}

/* Linear ops that find what the op before has packed must train to the bits of ops that wait and
 * find nothing. */
static void verify_shared_operands(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shared); i++) {
        const struct digest once = train_shared(shared[i], 0), each = train_shared(shared[i], 1);
        if (memcmp(&once, &each, sizeof once) != 0) fail_msg("training %zu", i);
    }
}

/* ---- sums that are asked for at once ---- */

static struct {
    const struct op_table *real;
    size_t calls;
} squares;

static void counted_square(const struct op_call *call, const struct square_args *args) {
    squares.calls++;
    squares.real->square(call, args);
}

/* No gradient of a recorded update may be summed by the op that waits: neither for the norms of the
 * record, nor for those of a clip, nor when looking for an overflow. */
static void verify_no_gradient_is_waited_for_alone(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        const struct run_options options = {.tensors = 1, .phases = 1, .steps = UPDATES};
        struct bench bench;
        bench_open_with(&bench, i, SHIM, &options);
        struct op_table counted = *bench.run.model.ops;
        squares.real = bench.run.model.ops;
        squares.calls = 0;
        counted.square = counted_square;
        bench.run.model.ops = &counted;
        helper_step(&bench.run);
        if (squares.calls != 0) fail_msg("%s: %zu sums", trainings[i].name, squares.calls);
        bench_close(&bench);
    }
}

/* ---- calls that serve all tensors ---- */

static struct {
    const struct op_table *real;
    size_t fills, converts, closes, scales;
} kinds;

static void counted_fill(const struct op_call *call, const struct fill_args *args) {
    kinds.fills++;
    kinds.real->fill(call, args);
}

static void counted_convert(const struct op_call *call, const struct convert_args *args) {
    kinds.converts++;
    kinds.real->convert(call, args);
}

static void counted_close(const struct op_call *call, const struct close_args *args) {
    kinds.closes++;
    kinds.real->close(call, args);
}

static void counted_scale(const struct op_call *call, const struct scale_args *args) {
    kinds.scales++;
    kinds.real->scale(call, args);
}

/* One call each must serve all tensors: for zeros of accumulators and of gradients, for compute
 * copies, for parameters before the update, for masters and first moments before the step, for a
 * gradient, and for its clip. */
static void verify_tensors_are_one_call(void **state) {
    (void)state;
    const struct run_options options = {.readback = 1, .steps = UPDATES};
    struct bench bench;
    bench_open_with(&bench, 3, SHIM, &options);
    struct op_table counted = *bench.run.model.ops;
    kinds.real = bench.run.model.ops;
    counted.fill = counted_fill;
    counted.convert = counted_convert;
    counted.close = counted_close;
    counted.scale = counted_scale;
    bench.run.model.ops = &counted;
    assert_true(bench.run.owner_count > 20);
    helper_step(&bench.run); /* takes the parameters before it from those at the start */
    kinds.fills = kinds.converts = kinds.closes = kinds.scales = 0;
    helper_step(&bench.run);
    assert_int_equal(kinds.fills, 2 + 2); /* and, in each backward, rows without a gradient */
    assert_int_equal(kinds.converts, 4);
    assert_int_equal(kinds.closes, 1);
    assert_int_equal(kinds.scales, 1);
    bench_close(&bench);
}

/* ---- distances between two runs ---- */

static void pairs_are_equal(const struct bench *a, const struct bench *b) {
    struct pair_room host, room;
    struct pair_record want, got;
    memset(&want, 0, sizeof want);
    memset(&got, 0, sizeof got);
    assert_int_equal(pair_open(&a->run, &b->run, &room), STATUS_OK);
    assert_non_null(room.backend);
    assert_int_equal(pair_open(&a->run, &b->run, &host), STATUS_OK);
    host.backend = NULL; /* this program measures, of what it reads of both */
    assert_int_equal(pair_measure(&a->run, &b->run, &host, &want), STATUS_OK);
    assert_int_equal(pair_measure(&a->run, &b->run, &room, &got), STATUS_OK);
    assert_memory_equal(&want, &got, sizeof want);
    assert_true(got.reals[PAIR_DISTANCE] > 0.0);
    pair_close(&host);
    pair_close(&room);
}

/* The two runs have another LR, and other dtypes of parameters. */
static void corroborate_pairs(void **state) {
    static const enum dtype params[] = {DTYPE_BF16, DTYPE_F32};
    const struct run_options options = {.steps = UPDATES};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(params); i++) {
        struct bench a, b;
        bench_open_with(&a, 3, SHIM, &options);
        bench_configure(&b, 3, SHIM);
        b.config.optimizer.lr *= 1.5;
        b.config.numerics.param = (int32_t)params[i];
        bench_open_run(&b, &options);
        for (size_t k = 0; k < UPDATES; k++) {
            helper_step(&a.run);
            helper_step(&b.run);
            pairs_are_equal(&a, &b);
        }
        bench_close(&b);
        bench_close(&a);
    }
}

/* ---- a watch ---- */

struct seen {
    struct digest_stream stream;
    size_t views;
};

static void see(void *context, const struct watch_view *view) {
    struct seen *const seen = (struct seen *)context;
    const size_t bytes = view->width * watch_element(view);
    for (uint32_t i = 0; i < watch_cells(view); i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        struct digest row;
        for (uint32_t r = 0; r < cell.rows; r++) {
            digest_bytes(view->tensor.text, watch_row(view, &cell, r), bytes, &row);
            digest_stream_add(&seen->stream, &row);
        }
    }
    seen->views++;
}

static struct digest watch_training(size_t training, const char *module, size_t *out_views) {
    struct bench bench;
    struct seen seen = {.views = 0};
    struct watch watch = {.see = see, .context = &seen};
    struct digest all;
    bench_open(&bench, training, module);
    watch_hang(&bench.run, &watch);
    watch_start(&bench.run);
    helper_step(&bench.run);
    watch_end(&bench.run);
    assert_int_equal(watch.status, STATUS_OK);
    arena_close(&watch.arena);
    bench_close(&bench);
    *out_views = seen.views;
    digest_stream_close(&seen.stream, &all);
    return all;
}

/* The views must be equal, except those of the last training, whose gradients hold NaN: the sign of
 * a NaN is the hardware's. */
static void corroborate_watched_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i + 1 < COUNT_OF(trainings); i++) {
        size_t views[2];
        const struct digest cpu = watch_training(i, NULL, &views[0]);
        const struct digest shim = watch_training(i, SHIM, &views[1]);
        assert_true(views[0] > 100 && views[0] == views[1]);
        if (memcmp(&cpu, &shim, sizeof cpu) != 0) fail_msg("%s", trainings[i].name);
    }
}

/* ---- errors in an op ---- */

#if defined(TWINSTEP_WATCHED)
static void ignore(void *context, const struct watch_view *view) {
    (void)view;
    ++*(size_t *)context;
}

/* Makes a parameter of memory that a device does not see; its first reader is in the forward. */
static void fail_in_an_op(int watched) {
    static double foreign[19 * 8];
    struct bench bench;
    size_t views = 0;
    struct watch watch = {.see = ignore, .context = &views};
    const struct record *record;
    bench_open(&bench, 2, WATCH);
    const void *const right = bench.run.weights[0];
    bench.run.weights[0] = foreign;
    if (watched) watch_hang(&bench.run, &watch);
    const enum status status = run_step(&bench.run, &record);
    assert_int_equal(watched ? watch.status : status, STATUS_INTERNAL);
    if (strstr(status_text(), "touches memory that a device does not see") == NULL)
        fail_msg("%s", status_text());
    assert_int_equal(bench.run.model.call.queued, 0);
    assert_int_equal(bench.run.backend->wait(), STATUS_OK); /* reported once, and nothing is left */
    bench.run.weights[0] = right;
    if (!watched) assert_int_equal(run_step(&bench.run, &record), STATUS_OK);
    arena_close(&watch.arena);
    bench_close(&bench);
}
#endif

static void verify_failures_are_told(void **state) {
    (void)state;
#if defined(TWINSTEP_WATCHED)
    fail_in_an_op(0);
    fail_in_an_op(1);
#else
    skip();
#endif
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_queued_trainings),
        cmocka_unit_test(verify_forgotten_waits_show),
        cmocka_unit_test(verify_shared_operands),
        cmocka_unit_test(verify_no_gradient_is_waited_for_alone),
        cmocka_unit_test(verify_tensors_are_one_call),
        cmocka_unit_test(corroborate_pairs),
        cmocka_unit_test(corroborate_watched_trainings),
        cmocka_unit_test(verify_failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

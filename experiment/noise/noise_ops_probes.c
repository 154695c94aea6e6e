/* SPDX-License-Identifier: Apache-2.0
 * The ladder: one small function per operation that poses it on the bench, and the table of sizes.
 * A function fills the argument struct of kernels/op.h and calls the operation; it measures
 * nothing. Invariant: row r reads the same inputs whatever `first` and `count` are. */
#include "experiment/noise/noise_ops_private.h"

#include "base/macro.h"

#define HEADS 4u

/* Input `buffer`, moved by the bench's skew. */
static float *in(const struct ops_bench *bench, int buffer) {
    return bench->input[buffer] + bench->skew;
}

static float *out_of(const struct ops_bench *bench) {
    return bench->output + bench->skew;
}

/* Lists the rows first, first + 1, ... in the second half of bench->ids. */
static struct row_list rows_of(const struct ops_bench *bench, uint32_t first, uint32_t count) {
    uint32_t *index = bench->ids + OPS_ROWS;
    for (uint32_t i = 0; i < count; i++)
        index[i] = first + i;
    return (struct row_list){index, count};
}

static size_t width_a(const struct ops_probe *probe) {
    return probe->a;
}

static size_t width_b(const struct ops_probe *probe) {
    return probe->b;
}

static size_t width_product(const struct ops_probe *probe) {
    return (size_t)probe->a * probe->b;
}

/* What every probe is handed: rows `first` to `first + count - 1`. */
#define ROWS struct ops_bench *bench, const struct ops_probe *probe, uint32_t first, uint32_t count

/* Makes the probe of an operation that takes its whole argument struct from the bench. */
#define PROBE(OP, ...)                                                                             \
    static void OP(ROWS) {                                                                         \
        const struct OP##_args args = {__VA_ARGS__};                                               \
        bench->ops->OP(&bench->call, &args);                                                       \
    }

/* a: outputs N, b: inputs K. */
PROBE(linear_forward, .rows = rows_of(bench, first, count), .N = probe->a, .K = probe->b,
      .x = in(bench, 0), .w = in(bench, 1), .y = out_of(bench))

PROBE(linear_input, .rows = rows_of(bench, first, count), .N = probe->a, .K = probe->b,
      .dy = in(bench, 0), .w = in(bench, 1), .dx = out_of(bench))

PROBE(linear_weight, .rows = rows_of(bench, first, count), .N = probe->a, .K = probe->b,
      .dy = in(bench, 0), .x = in(bench, 1), .acc = out_of(bench))

#define EPS 1e-6

static void norm_statistics(struct ops_bench *bench, const struct ops_probe *probe,
                            const struct row_list *rows, float *y) {
    const struct norm_forward_args args = {.rows = *rows,
                                           .C = probe->a,
                                           .eps = EPS,
                                           .rounding = NORM_ROUND_AFTER_WEIGHT,
                                           .x = in(bench, 0),
                                           .w = in(bench, 1),
                                           .y = y,
                                           .rstd = bench->scratch_rows[0] + bench->skew};
    bench->ops->norm_forward(&bench->call, &args);
}

static void norm_forward(ROWS) {
    const struct row_list rows = rows_of(bench, first, count);
    norm_statistics(bench, probe, &rows, out_of(bench));
}

static void norm_input(ROWS) {
    const struct row_list rows = rows_of(bench, first, count);
    norm_statistics(bench, probe, &rows, bench->scratch_rows[1]);
    const struct norm_input_args args = {.rows = rows,
                                         .C = probe->a,
                                         .rounding = NORM_ROUND_AFTER_WEIGHT,
                                         .dy = in(bench, 2),
                                         .x = in(bench, 0),
                                         .w = in(bench, 1),
                                         .rstd = bench->scratch_rows[0] + bench->skew,
                                         .dx = out_of(bench)};
    bench->ops->norm_input(&bench->call, &args);
}

static void norm_weight(ROWS) {
    const struct row_list rows = rows_of(bench, first, count);
    norm_statistics(bench, probe, &rows, bench->scratch_rows[1]);
    const struct norm_weight_args args = {.rows = rows,
                                          .C = probe->a,
                                          .rounding = NORM_ROUND_AFTER_WEIGHT,
                                          .dy = in(bench, 2),
                                          .x = in(bench, 0),
                                          .rstd = bench->scratch_rows[0] + bench->skew,
                                          .acc = out_of(bench)};
    bench->ops->norm_weight(&bench->call, &args);
}

/* a: head width. An output row is a whole sequence. */
static size_t width_sequence(const struct ops_probe *probe) {
    return (size_t)OPS_LENGTH * HEADS * probe->a;
}

static size_t width_three(const struct ops_probe *probe) {
    return 3 * width_sequence(probe);
}

PROBE(attention_forward, .sequences = bench->sequences + first, .count = count, .H = HEADS,
      .G = HEADS, .D = probe->a, .scale = 0.25, .q = in(bench, 0), .k = in(bench, 1),
      .v = in(bench, 2), .out = out_of(bench))

/* The output row of a sequence has three pieces, dq, dk and dv, one behind the other; the operation
 * writes them to three buffers. */
static void attention_backward(ROWS) {
    const size_t piece = width_sequence(probe);
    float *const parts[3] = {bench->scratch_rows[0] + bench->skew,
                             bench->scratch_rows[1] + bench->skew,
                             bench->scratch_rows[2] + bench->skew};
    const struct attention_backward_args args = {.sequences = bench->sequences + first,
                                                 .count = count,
                                                 .H = HEADS,
                                                 .G = HEADS,
                                                 .D = probe->a,
                                                 .scale = 0.25,
                                                 .q = in(bench, 0),
                                                 .k = in(bench, 1),
                                                 .v = in(bench, 2),
                                                 .dout = in(bench, 3),
                                                 .dq = parts[0],
                                                 .dk = parts[1],
                                                 .dv = parts[2]};
    bench->ops->attention_backward(&bench->call, &args);
    for (uint32_t s = first; s < first + count; s++)
        for (size_t part = 0; part < 3; part++)
            for (size_t i = 0; i < piece; i++)
                out_of(bench)[(3 * s + part) * piece + i] = parts[part][s * piece + i];
}

/* a: vocabulary, b: width. */
PROBE(embedding_weight, .rows = rows_of(bench, first, count), .V = probe->a, .C = probe->b,
      .ids = bench->ids + first, .dx = in(bench, 0), .acc = out_of(bench))

/* a: vocabulary. The log-probability is what is compared; it is computed in f64, so its rounding to
 * f32 hides differences below an f32's. */
static void logprob_forward(ROWS) {
    /* in a buffer, because a device cannot write to a variable of ours */
    double *const logp = (double *)(void *)bench->scratch_rows[2];
    const struct logprob_forward_args args = {.L = count,
                                              .V = probe->a,
                                              .loss = DTYPE_F32,
                                              .target = bench->ids + first,
                                              .logits = in(bench, 0) + (size_t)first * probe->a,
                                              .maximum =
                                                  bench->scratch_rows[0] + bench->skew + first,
                                              .sum = bench->scratch_rows[1] + bench->skew + first,
                                              .logp = logp};
    bench->ops->logprob_forward(&bench->call, &args);
    for (uint32_t i = 0; i < count; i++)
        out_of(bench)[first + i] = (float)logp[i];
}

static size_t width_one(const struct ops_probe *probe) {
    (void)probe;
    return 1;
}

static size_t width_double(const struct ops_probe *probe) {
    (void)probe;
    return sizeof(double) / sizeof(float);
}

/* a: width. The result is the sum of squares of all rows in f64, which is compared as two f32
 * halves. */
static void square(ROWS) {
    double result;
    const struct square_args args = {.count = (size_t)count * probe->a,
                                     .storage = bench->dtype,
                                     .values = in(bench, 0) + (size_t)first * probe->a,
                                     .result = &result};
    bench->ops->square(&bench->call, &args);
    const float halves[2] = {(float)result, (float)(result - (double)(float)result)};
    out_of(bench)[0] = halves[0];
    out_of(bench)[1] = halves[1];
}

/* The ladder, in the order of a layer. */
#define OP_BY_ROWS(OP, SIZE, A, B, ROWS, WIDTH, RUN)                                               \
    {                                                                                              \
        .op = OP, .size = SIZE, .splits = 1, .a = A, .b = B, .rows = ROWS, .width = WIDTH,         \
        .run = RUN                                                                                 \
    }
#define SUM_OVER_ROWS(OP, SIZE, A, B, WIDTH, RUN)                                                  \
    {                                                                                              \
        .op = OP, .size = SIZE, .sums = 1, .splits = 1, .a = A, .b = B, .rows = OPS_ROWS,          \
        .width = WIDTH, .run = RUN                                                                 \
    }

const struct ops_probe ops_probes[] = {
    SUM_OVER_ROWS("embedding scatter", "259 x 64", 259, 64, width_product, embedding_weight),
    OP_BY_ROWS("norm", "64", 64, 0, OPS_ROWS, width_a, norm_forward),
    OP_BY_ROWS("norm", "1024", 1024, 0, OPS_ROWS, width_a, norm_forward),
    OP_BY_ROWS("norm dX", "1024", 1024, 0, OPS_ROWS, width_a, norm_input),
    SUM_OVER_ROWS("norm dW", "64", 64, 0, width_a, norm_weight),
    OP_BY_ROWS("linear forward", "64 x 64", 64, 64, OPS_ROWS, width_a, linear_forward),
    OP_BY_ROWS("linear forward", "172 x 256", 172, 256, OPS_ROWS, width_a, linear_forward),
    OP_BY_ROWS("linear dX", "64 x 64", 64, 64, OPS_ROWS, width_b, linear_input),
    OP_BY_ROWS("linear dX", "172 x 256", 172, 256, OPS_ROWS, width_b, linear_input),
    SUM_OVER_ROWS("linear dW", "64 x 64", 64, 64, width_product, linear_weight),
    SUM_OVER_ROWS("linear dW", "172 x 256", 172, 256, width_product, linear_weight),
    OP_BY_ROWS("attention forward", "4 x 16", 16, 0, 24, width_sequence, attention_forward),
    OP_BY_ROWS("attention backward", "4 x 16", 16, 0, 24, width_three, attention_backward),
    OP_BY_ROWS("log-prob", "259", 259, 0, OPS_ROWS, width_one, logprob_forward),
    OP_BY_ROWS("log-prob", "4096", 4096, 0, 96, width_one, logprob_forward),
    {.op = "global norm",
     .size = "512 x 64",
     .sums = 1,
     .a = 64,
     .rows = 512,
     .width = width_double,
     .run = square},
};
const uint32_t ops_probe_count = COUNT_OF(ops_probes);

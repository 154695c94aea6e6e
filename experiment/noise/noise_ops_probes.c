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

/* a: outputs N, b: inputs K. */
static void linear_forward(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                           uint32_t count) {
    const struct linear_forward_args args = {rows_of(bench, first, count),
                                             probe->a,
                                             probe->b,
                                             in(bench, 0),
                                             in(bench, 1),
                                             out_of(bench)};
    bench->ops->linear_forward(&bench->call, &args);
}

static void linear_input(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                         uint32_t count) {
    const struct linear_input_args args = {rows_of(bench, first, count),
                                           probe->a,
                                           probe->b,
                                           in(bench, 0),
                                           in(bench, 1),
                                           out_of(bench),
                                           0};
    bench->ops->linear_input(&bench->call, &args);
}

static void linear_weight(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                          uint32_t count) {
    const struct linear_weight_args args = {rows_of(bench, first, count),
                                            probe->a,
                                            probe->b,
                                            in(bench, 0),
                                            in(bench, 1),
                                            out_of(bench)};
    bench->ops->linear_weight(&bench->call, &args);
}

#define EPS 1e-6

static void norm_statistics(struct ops_bench *bench, const struct ops_probe *probe,
                            const struct row_list *rows, float *y) {
    const struct norm_forward_args args = {
        *rows,        probe->a,     EPS, NORM_ROUND_AFTER_WEIGHT,
        in(bench, 0), in(bench, 1), y,   bench->scratch_rows[0] + bench->skew};
    bench->ops->norm_forward(&bench->call, &args);
}

static void norm_forward(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                         uint32_t count) {
    const struct row_list rows = rows_of(bench, first, count);
    norm_statistics(bench, probe, &rows, out_of(bench));
}

static void norm_input(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                       uint32_t count) {
    const struct row_list rows = rows_of(bench, first, count);
    norm_statistics(bench, probe, &rows, bench->scratch_rows[1]);
    const struct norm_input_args args = {rows,
                                         probe->a,
                                         NORM_ROUND_AFTER_WEIGHT,
                                         in(bench, 2),
                                         in(bench, 0),
                                         in(bench, 1),
                                         bench->scratch_rows[0] + bench->skew,
                                         out_of(bench),
                                         0};
    bench->ops->norm_input(&bench->call, &args);
}

static void norm_weight(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                        uint32_t count) {
    const struct row_list rows = rows_of(bench, first, count);
    norm_statistics(bench, probe, &rows, bench->scratch_rows[1]);
    const struct norm_weight_args args = {
        rows,         probe->a,     NORM_ROUND_AFTER_WEIGHT,
        in(bench, 2), in(bench, 0), bench->scratch_rows[0] + bench->skew,
        out_of(bench)};
    bench->ops->norm_weight(&bench->call, &args);
}

/* a: head width. An output row is a whole sequence. */
static size_t width_sequence(const struct ops_probe *probe) {
    return (size_t)OPS_LENGTH * HEADS * probe->a;
}

static size_t width_three(const struct ops_probe *probe) {
    return 3 * width_sequence(probe);
}

static void attention_forward(struct ops_bench *bench, const struct ops_probe *probe,
                              uint32_t first, uint32_t count) {
    const struct attention_forward_args args = {bench->sequences + first,
                                                count,
                                                HEADS,
                                                HEADS,
                                                probe->a,
                                                0.25,
                                                in(bench, 0),
                                                in(bench, 1),
                                                in(bench, 2),
                                                out_of(bench),
                                                NULL};
    bench->ops->attention_forward(&bench->call, &args);
}

/* The output row of a sequence has three pieces, dq, dk and dv, one behind the other; the operation
 * writes them to three buffers. */
static void attention_backward(struct ops_bench *bench, const struct ops_probe *probe,
                               uint32_t first, uint32_t count) {
    const size_t piece = width_sequence(probe);
    float *const parts[3] = {bench->scratch_rows[0] + bench->skew,
                             bench->scratch_rows[1] + bench->skew,
                             bench->scratch_rows[2] + bench->skew};
    const struct attention_backward_args args = {bench->sequences + first,
                                                 count,
                                                 HEADS,
                                                 HEADS,
                                                 probe->a,
                                                 0.25,
                                                 in(bench, 0),
                                                 in(bench, 1),
                                                 in(bench, 2),
                                                 in(bench, 3),
                                                 parts[0],
                                                 parts[1],
                                                 parts[2],
                                                 NULL};
    bench->ops->attention_backward(&bench->call, &args);
    for (uint32_t s = first; s < first + count; s++)
        for (size_t part = 0; part < 3; part++)
            for (size_t i = 0; i < piece; i++)
                out_of(bench)[(3 * s + part) * piece + i] = parts[part][s * piece + i];
}

/* a: vocabulary, b: width. */
static void embedding_weight(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                             uint32_t count) {
    const struct embedding_weight_args args = {
        rows_of(bench, first, count), probe->a,     probe->b,
        bench->ids + first,           in(bench, 0), out_of(bench)};
    bench->ops->embedding_weight(&bench->call, &args);
}

/* a: vocabulary. The log-probability is what is compared; it is computed in f64, so its rounding to
 * f32 hides differences below an f32's. */
static void logprob_forward(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                            uint32_t count) {
    /* in a buffer, because a device cannot write to a variable of ours */
    double *const logp = (double *)(void *)bench->scratch_rows[2];
    const struct logprob_forward_args args = {count,
                                              probe->a,
                                              DTYPE_F32,
                                              bench->ids + first,
                                              in(bench, 0) + (size_t)first * probe->a,
                                              bench->scratch_rows[0] + bench->skew + first,
                                              bench->scratch_rows[1] + bench->skew + first,
                                              logp};
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
static void square(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                   uint32_t count) {
    double result;
    const struct square_args args = {(size_t)count * probe->a, bench->dtype,
                                     in(bench, 0) + (size_t)first * probe->a, &result};
    bench->ops->square(&bench->call, &args);
    const float halves[2] = {(float)result, (float)(result - (double)(float)result)};
    out_of(bench)[0] = halves[0];
    out_of(bench)[1] = halves[1];
}

const struct ops_probe ops_probes[] = {
    {"embedding scatter", "259 x 64", 1, 1, 259, 64, OPS_ROWS, width_product, embedding_weight},
    {"norm", "64", 0, 1, 64, 0, OPS_ROWS, width_a, norm_forward},
    {"norm", "1024", 0, 1, 1024, 0, OPS_ROWS, width_a, norm_forward},
    {"norm dX", "1024", 0, 1, 1024, 0, OPS_ROWS, width_a, norm_input},
    {"norm dW", "64", 1, 1, 64, 0, OPS_ROWS, width_a, norm_weight},
    {"linear forward", "64 x 64", 0, 1, 64, 64, OPS_ROWS, width_a, linear_forward},
    {"linear forward", "172 x 256", 0, 1, 172, 256, OPS_ROWS, width_a, linear_forward},
    {"linear dX", "64 x 64", 0, 1, 64, 64, OPS_ROWS, width_b, linear_input},
    {"linear dX", "172 x 256", 0, 1, 172, 256, OPS_ROWS, width_b, linear_input},
    {"linear dW", "64 x 64", 1, 1, 64, 64, OPS_ROWS, width_product, linear_weight},
    {"linear dW", "172 x 256", 1, 1, 172, 256, OPS_ROWS, width_product, linear_weight},
    {"attention forward", "4 x 16", 0, 1, 16, 0, 24, width_sequence, attention_forward},
    {"attention backward", "4 x 16", 0, 1, 16, 0, 24, width_three, attention_backward},
    {"log-prob", "259", 0, 1, 259, 0, OPS_ROWS, width_one, logprob_forward},
    {"log-prob", "4096", 0, 1, 4096, 0, 96, width_one, logprob_forward},
    {"global norm", "512 x 64", 1, 0, 64, 0, 512, width_double, square},
};
const uint32_t ops_probe_count = COUNT_OF(ops_probes);

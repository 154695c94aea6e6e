/* SPDX-License-Identifier: Apache-2.0
 * Sums in the order of a collective: ranks/join.h. A run is walked in pieces that fit into a stack
 * of partial sums, so that a term is looked up once for many elements. */
#include "ranks/join.h"

#include <string.h>

#include "base/real.h"

#define PIECE 128u /* elements; GROUPING_DEPTH of them are 16 KiB */

/* The loops below are made once for each dtype of a wire, so that the rounding is no call. */
#define ROUND_f32(x) (x)
#define ROUND_bf16(x) real_round_bf16_f32(x)
#define ROUND_f16(x) real_round_f16_f32(x)

#define LOOPS(wire)                                                                                \
    static void add_##wire(float *a, const float *b, size_t count) {                               \
        for (size_t i = 0; i < count; i++)                                                         \
            a[i] = ROUND_##wire(a[i] + b[i]);                                                      \
    }                                                                                              \
    static void multiply_##wire(const float *in, float factor, size_t count, float *out) {         \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = ROUND_##wire(in[i] * factor);                                                 \
    }                                                                                              \
    static void divide_##wire(const float *in, float divisor, size_t count, float *out) {          \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = ROUND_##wire(in[i] / divisor);                                                \
    }
LOOPS(f32)
LOOPS(bf16)
LOOPS(f16)

static void add(enum dtype wire, float *a, const float *b, size_t count) {
    if (wire == DTYPE_BF16)
        add_bf16(a, b, count);
    else if (wire == DTYPE_F16)
        add_f16(a, b, count);
    else
        add_f32(a, b, count);
}

static void multiply(enum dtype wire, const float *in, float factor, size_t count, float *out) {
    if (wire == DTYPE_BF16)
        multiply_bf16(in, factor, count, out);
    else if (wire == DTYPE_F16)
        multiply_f16(in, factor, count, out);
    else
        multiply_f32(in, factor, count, out);
}

static void divide(enum dtype wire, const float *in, float divisor, size_t count, float *out) {
    if (wire == DTYPE_BF16)
        divide_bf16(in, divisor, count, out);
    else if (wire == DTYPE_F16)
        divide_f16(in, divisor, count, out);
    else
        divide_f32(in, divisor, count, out);
}

/* _get_gradient_divide_factors of FSDP2: the power of two grows while it divides P and is below
 * what it leaves. */
static uint32_t split_of(uint32_t ranks) {
    uint32_t first = 1;
    while (ranks % first == 0 && ranks / first > first)
        first *= 2;
    return first;
}

void join_scale_first(enum join_mean mean, uint32_t ranks, enum dtype wire, const float *in,
                      size_t count, float *out) {
    switch (mean) {
    case JOIN_MULTIPLY_FIRST:
        multiply(wire, in, (float)(1.0 / ranks), count, out);
        break;
    case JOIN_RECIPROCAL:
        multiply(wire, in, (float)dtype_round((double)(float)(1.0 / ranks), wire), count, out);
        break;
    case JOIN_DIVIDE_FIRST:
        divide(wire, in, (float)ranks, count, out);
        break;
    case JOIN_SPLIT:
        divide(wire, in, (float)split_of(ranks), count, out);
        break;
    default:
        if (out != in) memcpy(out, in, count * sizeof *out);
    }
}

void join_scale_last(enum join_mean mean, uint32_t ranks, enum dtype wire, float *values,
                     size_t count) {
    if (mean == JOIN_DIVIDE_LAST)
        divide(wire, values, (float)ranks, count, values);
    else if (mean == JOIN_SPLIT)
        divide(wire, values, (float)((double)ranks / split_of(ranks)), count, values);
}

/* Adds elements start .. start+count-1, which all have the grouping of `run`. */
static enum status join_piece(const struct grouping_run *run, uint32_t ranks, enum dtype wire,
                              const float *const *vectors, uint64_t start, size_t count,
                              float *out) {
    float stack[GROUPING_DEPTH][PIECE];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < run->length; i++) {
        const uint32_t term = run->terms[i];
        if (term == GROUPING_ADD ? depth < 2 : term >= ranks || depth == GROUPING_DEPTH)
            FAIL(STATUS_INTERNAL, "grouping: term %u of %u is %u at depth %u of %u ranks", i,
                 run->length, term, depth, ranks);
        if (term == GROUPING_ADD) {
            depth--;
            add(wire, stack[depth - 1], stack[depth], count);
        } else {
            memcpy(stack[depth++], vectors[term] + start, count * sizeof *out);
        }
    }
    if (depth != 1) FAIL(STATUS_INTERNAL, "grouping: %u results are left, expected 1", depth);
    memcpy(out + start, stack[0], count * sizeof *out);
    return STATUS_OK;
}

enum status join_run(const struct grouping_run *run, uint32_t ranks, enum dtype wire,
                     const float *const *vectors, float *out) {
    for (uint64_t start = run->start; start < run->end; start += PIECE) {
        const uint64_t rest = run->end - start;
        TRY(join_piece(run, ranks, wire, vectors, start, (size_t)(rest < PIECE ? rest : PIECE),
                       out));
    }
    return STATUS_OK;
}

enum status join_vectors(const struct grouping_call *call, enum dtype wire,
                         const float *const *vectors, float *out) {
    struct grouping_run run;
    TRY(grouping_check(call));
    if (wire != DTYPE_F32 && wire != DTYPE_BF16 && wire != DTYPE_F16)
        FAIL(STATUS_INPUT, "dtype of the wire: expected f32, bf16 or f16, got %s",
             dtype_name(wire));
    if (call->width != dtype_width(wire))
        FAIL(STATUS_INPUT, "width: expected %zu bytes for %s, got %u", dtype_width(wire),
             dtype_name(wire), call->width);
    for (uint64_t element = 0; element < call->count; element = run.end) {
        grouping_of(call, element, &run);
        TRY(join_run(&run, call->ranks, wire, vectors, out));
    }
    return STATUS_OK;
}

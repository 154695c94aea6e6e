/* SPDX-License-Identifier: Apache-2.0
 * Computes the global gradient norm by the rule that the call names, and scales the gradients. Sums
 * within a tensor (or over all gradients as one vector) are law 2; what joins the tensors is a
 * chain in the order of the table, unless a mode draws, races or frees the order. */
#include "optim/clip.h"

#include "base/exact_sum.h"
#include "base/isa_objects.h"
#include "base/rule.h"
#include "base/sum.h"
#include "kernels/read_call.h"
#include "kernels/shuffle.h"

_Static_assert(SQUARES_BLOCK == SUM_BLOCK, "blocks of squares are those of law 2");

/* ---- squares appended to a sum of law 2 that is in progress (kernels/cpu/squares.c) ---- */

#define DECLARE(pair)                                                                              \
    void squares_append_##pair##_base(const void *, size_t, void *);                               \
    void OBJECTS_OF(squares_append_##pair, OBJECTS_V3)(const void *, size_t, void *);              \
    void OBJECTS_OF(squares_append_##pair, OBJECTS_V4)(const void *, size_t, void *);
#define LOOPS(pair)                                                                                \
    {                                                                                              \
        [ISA_AUTO] = squares_append_##pair##_base, [ISA_BASE] = squares_append_##pair##_base,      \
        [ISA_V3] = OBJECTS_OF(squares_append_##pair, OBJECTS_V3),                                  \
        [ISA_V4] = OBJECTS_OF(squares_append_##pair, OBJECTS_V4)                                   \
    }
DECLARE(f32_f32)
DECLARE(f32_f64)
DECLARE(f64_f64)

/* By carrier and type of the sum: struct sum_lanes_f32 or sum_lanes_f64. */
typedef void (*squares_loop)(const void *values, size_t count, void *lanes);
static const squares_loop append_f32[ISA_COUNT] = LOOPS(f32_f32);
static const squares_loop append_f32_f64[ISA_COUNT] = LOOPS(f32_f64);
static const squares_loop append_f64[ISA_COUNT] = LOOPS(f64_f64);

/* The dtype that norms are rounded to under this rule. Where it is f64, their sums are in f64. */
static enum dtype norm_dtype(const struct clip_rule *rule, enum dtype storage) {
    if (rule->dtype == CLIP_F64) return DTYPE_F64;
    if (storage == DTYPE_F64) return DTYPE_F64;
    return rule->dtype == CLIP_F32 ? DTYPE_F32 : storage;
}

/* The call of the op for tensor `index`. In mode shuffled every tensor draws an order of its own,
 * so the fields layer and side of the stream's address, which mean nothing here, hold its number.
 */
static struct op_call call_of(const struct clip_call *clip, size_t index) {
    struct op_call call = *clip->call;
    call.site = SITE_GRADIENT_NORM;
    call.layer = (uint32_t)(index % 511) + 1;
    call.side = (uint32_t)(index / 511) % 4;
    return call;
}

/* Law 16. Gradients are f32 numbers here, so their squares are exact in f64. */
static void append_exactly(const struct clip_tensor *tensor, struct exact_wide *sum) {
    const float *const x = (const float *)tensor->gradient;
    for (size_t i = 0; i < tensor->count; i++)
        exact_wide_add(sum, (double)x[i] * (double)x[i]);
}

double clip_join(const double *blocks, size_t count, int narrow) {
    struct sum_blocks_f32 sums_f32 = {.count = 0};
    struct sum_blocks_f64 sums_f64 = {.count = 0};
    for (size_t i = 0; i < squares_blocks(count); i++)
        if (narrow)
            sum_blocks_push_f32(&sums_f32, (float)blocks[i]);
        else
            sum_blocks_push_f64(&sums_f64, blocks[i]);
    return narrow ? (double)sum_blocks_close_f32(&sums_f32) : sum_blocks_close_f64(&sums_f64);
}

static int is_narrow(const struct clip_rule *rule, enum dtype storage) {
    return rule->dtype != CLIP_F64 && storage != DTYPE_F64;
}

static double square_of(const struct clip_call *clip, size_t index) {
    const struct clip_tensor *tensor = &clip->tensors[index];
    const int narrow = is_narrow(&clip->rule, tensor->storage);
    if (tensor->blocks != NULL) return clip_join(tensor->blocks, tensor->count, narrow);
    if (narrow && clip->call->order_free) {
        struct exact_wide sum = {{0}};
        append_exactly(tensor, &sum);
        return (double)exact_wide_f32(&sum);
    }
    if (narrow) {
        struct sum_lanes_f32 lanes;
        sum_lanes_open_f32(&lanes);
        append_f32[clip->isa](tensor->gradient, tensor->count, &lanes);
        return (double)sum_lanes_close_f32(&lanes);
    }
    const struct op_call call = call_of(clip, index);
    double square = 0.0;
    const struct square_args args = {tensor->count, tensor->storage, tensor->gradient, &square};
    clip->ops->square(&call, &args);
    return square;
}

/* The sum over tensors so far: a chain in the type of the sums, or with order_free an exact sum. */
struct total {
    double chain;
    struct exact_wide exact;
    int free, narrow;
};

static double total_value(const struct total *total) {
    if (!total->free) return total->chain;
    return total->narrow ? (double)exact_wide_f32(&total->exact) : exact_wide_f64(&total->exact);
}

static void add_term(struct total *total, double term) {
    if (total->free)
        exact_wide_add(&total->exact, term);
    else if (total->narrow)
        total->chain = (double)((float)total->chain + (float)term);
    else
        total->chain = sum_chain_terms_f64_f64(total->chain, &term, 1);
}

/* Adds norm^2 exactly: the square of an f64 number is the sum of two f64 numbers, the rounded
 * product and its error. */
static void add_square(struct total *total, double norm) {
    const double square = norm * norm;
    if (total->free) {
        exact_wide_add(&total->exact, square);
        if (real_finite_f64(square))
            exact_wide_add(&total->exact, real_fma_f64(norm, norm, -square));
    } else if (total->narrow)
        total->chain = (double)real_fma_f32((float)norm, (float)norm, (float)total->chain);
    else
        total->chain = sum_chain_products_f64_f64(total->chain, &norm, &norm, 1);
}

static double root_of(double square, int narrow) {
    return narrow ? (double)real_sqrt_f32((float)square) : real_sqrt_f64(square);
}

static double measure_flat_exactly(const struct clip_call *clip, struct total *total) {
    for (size_t i = 0; i < clip->tensor_count; i++)
        append_exactly(&clip->tensors[i], &total->exact);
    return total_value(total);
}

static size_t elements(const struct clip_call *clip) {
    size_t sum = 0;
    for (size_t i = 0; i < clip->tensor_count; i++)
        sum += clip->tensors[i].count;
    return sum;
}

static double measure_flat(const struct clip_call *clip, int narrow) {
    if (clip->flat != NULL) return clip_join(clip->flat, elements(clip), narrow);
    struct sum_lanes_f32 lanes_f32;
    struct sum_lanes_f64 lanes_f64;
    sum_lanes_open_f32(&lanes_f32);
    sum_lanes_open_f64(&lanes_f64);
    for (size_t i = 0; i < clip->tensor_count; i++) {
        const struct clip_tensor *tensor = &clip->tensors[i];
        if (tensor->storage == DTYPE_F64)
            append_f64[clip->isa](tensor->gradient, tensor->count, &lanes_f64);
        else if (narrow)
            append_f32[clip->isa](tensor->gradient, tensor->count, &lanes_f32);
        else
            append_f32_f64[clip->isa](tensor->gradient, tensor->count, &lanes_f64);
    }
    return narrow ? (double)sum_lanes_close_f32(&lanes_f32) : sum_lanes_close_f64(&lanes_f64);
}

/* Squares that are appended to one sum: in f32, or in f64. */
struct lanes {
    int narrow;
    struct sum_lanes_f32 f32;
    struct sum_lanes_f64 f64;
};

/* Appends elements first .. end-1 of a tensor. */
static void append_range(const struct clip_call *clip, const struct clip_tensor *tensor,
                         size_t first, size_t end, struct lanes *lanes) {
    const char *const from =
        (const char *)tensor->gradient + first * dtype_carrier(tensor->storage);
    if (end <= first) return;
    if (tensor->storage == DTYPE_F64)
        append_f64[clip->isa](from, end - first, &lanes->f64);
    else if (lanes->narrow)
        append_f32[clip->isa](from, end - first, &lanes->f32);
    else
        append_f32_f64[clip->isa](from, end - first, &lanes->f64);
}

double clip_block(const struct clip_call *clip, size_t index, size_t block) {
    const int flat = clip->rule.norm == CLIP_FLAT;
    const size_t last = flat ? clip->tensor_count : index + 1;
    const size_t first = block * SUM_BLOCK, end = first + SUM_BLOCK;
    struct lanes lanes = {.narrow = is_narrow(&clip->rule, clip->tensors[0].storage)};
    sum_lanes_open_f32(&lanes.f32);
    sum_lanes_open_f64(&lanes.f64);
    for (size_t i = flat ? 0 : index, at = 0; i < last; at += clip->tensors[i++].count) {
        const struct clip_tensor *const tensor = &clip->tensors[i];
        const size_t behind = end < at ? 0 : end - at;
        append_range(clip, tensor, first < at ? 0 : first - at,
                     behind < tensor->count ? behind : tensor->count, &lanes);
    }
    return lanes.narrow ? (double)sum_lanes_close_f32(&lanes.f32) : sum_lanes_close_f64(&lanes.f64);
}

static int needs_each(const struct clip_call *clip) {
    return clip->rule.norm != CLIP_FLAT || clip->out_tensor_norm != NULL;
}

static double measure(const struct clip_call *clip) {
    const struct clip_rule *rule = &clip->rule;
    const enum dtype storage = clip->tensor_count > 0 ? clip->tensors[0].storage : DTYPE_F32;
    const enum dtype dtype = norm_dtype(rule, storage);
    const int narrow = dtype != DTYPE_F64;
    const int each = needs_each(clip);
    struct total total = {.free = clip->call->order_free, .narrow = narrow};
    double sum;
    for (size_t i = 0; each && i < clip->tensor_count; i++) {
        const double square = square_of(clip, i);
        const double norm = dtype_round(root_of(square, narrow), dtype);
        if (clip->out_tensor_norm != NULL) clip->out_tensor_norm[i] = norm;
        if (rule->norm == CLIP_NORMS)
            add_square(&total, norm);
        else if (rule->norm == CLIP_SQUARES)
            add_term(&total, square);
    }
    if (rule->norm != CLIP_FLAT)
        sum = total_value(&total);
    else
        sum = total.free ? measure_flat_exactly(clip, &total) : measure_flat(clip, narrow);
    const double norm = dtype_round(root_of(sum, narrow), dtype);
    if (rule->replicas <= 1) return norm;
    return dtype_round(norm * real_sqrt_f64((double)rule->replicas), dtype);
}

/* max / (norm + eps) as torch divides a Python number by a tensor (torch/_tensor.py, __rdiv__): the
 * reciprocal of the tensor, rounded, times the number. */
static double quotient_of(const struct clip_rule *rule, double norm, enum dtype storage) {
    if (rule->dtype != CLIP_GRADIENT) return rule->max_norm / (norm + rule->eps);
    const double shifted = dtype_round(norm + rule->eps, storage);
    return dtype_round(dtype_round(1.0 / shifted, storage) * rule->max_norm, storage);
}

static double reciprocal_of(const struct clip_rule *rule, double norm, enum dtype storage) {
    const enum dtype dtype = rule->dtype == CLIP_GRADIENT ? storage : DTYPE_F64;
    const double ratio = dtype_round(dtype_round(norm + rule->eps, dtype) / rule->max_norm, dtype);
    return ratio <= 1.0 ? 1.0 : 1.0 / ratio;
}

double clip_coefficient(const struct clip_rule *rule, double norm, enum dtype storage) {
    const enum dtype last = rule->dtype == CLIP_GRADIENT ? storage : DTYPE_F32;
    const double c = rule->form == CLIP_QUOTIENT ? quotient_of(rule, norm, storage)
                                                 : reciprocal_of(rule, norm, storage);
    return dtype_round(c > 1.0 ? 1.0 : c, last);
}

/* Whether `next` begins in memory where `count` numbers of `tensor` end. Such tensors are scaled by
 * one call, since scaling is element-wise. */
static int goes_on(const struct clip_tensor *tensor, size_t count, const struct clip_tensor *next) {
    return next->storage == tensor->storage &&
           (const char *)tensor->gradient + count * dtype_carrier(tensor->storage) ==
               (const char *)next->gradient;
}

static void scale(const struct clip_call *clip, double coefficient) {
    for (size_t i = 0, next; i < clip->tensor_count; i = next) {
        const struct clip_tensor *tensor = &clip->tensors[i];
        const struct op_call call = call_of(clip, i);
        struct scale_args args = {tensor->count, tensor->storage, coefficient, tensor->gradient};
        for (next = i + 1; next < clip->tensor_count; next++) {
            if (!goes_on(tensor, args.count, &clip->tensors[next])) break;
            args.count += clip->tensors[next].count;
        }
        clip->ops->scale(&call, &args);
    }
}

/* A product by 1 would leave every number as it is, so that pass over all gradients is not made. */
int clip_applies(const struct clip_rule *rule, double coefficient) {
    if (!(rule->max_norm > 0.0) || rule->apply == CLIP_COPY || coefficient == 1.0) return 0;
    return rule->apply != CLIP_ABOVE || coefficient < 1.0;
}

void clip_gradients(const struct clip_call *clip, struct clip_result *out_result) {
    const struct clip_rule *rule = &clip->rule;
    out_result->norm = measure(clip);
    out_result->coefficient = 1.0;
    if (!(rule->max_norm > 0.0)) return;
    const enum dtype storage = clip->tensor_count > 0 ? clip->tensors[0].storage : DTYPE_F32;
    const double coefficient = clip_coefficient(rule, out_result->norm, storage);
    out_result->coefficient = coefficient;
    if (clip_applies(rule, coefficient)) scale(clip, coefficient);
}

/* Whether all gradients have one carrier. Else they do not make one vector, and clip_ask leaves the
 * sum of CLIP_FLAT to clip_gradients. */
static int is_one_vector(const struct clip_call *clip) {
    for (size_t i = 1; i < clip->tensor_count; i++)
        if ((clip->tensors[i].storage == DTYPE_F64) != (clip->tensors[0].storage == DTYPE_F64))
            return 0;
    return clip->tensor_count > 0;
}

/* The request for the squares of all gradients as one vector, whose pieces are the tensors. */
static struct squares_args flat_of(const struct clip_call *clip, struct squares_piece *pieces) {
    const enum dtype storage = clip->tensors[0].storage;
    struct squares_args args = {.storage = storage,
                                .wide = norm_dtype(&clip->rule, storage) == DTYPE_F64,
                                .piece = pieces,
                                .pieces = clip->tensor_count};
    for (size_t i = 0; i < clip->tensor_count; i++) {
        pieces[i] = (struct squares_piece){clip->tensors[i].gradient, args.count};
        args.count += clip->tensors[i].count;
    }
    return args;
}

/* Whether the op `square` orders the f64 sum of each tensor's squares, since the mode draws or
 * races it. It waits for each; law 2's sums are asked for all at once. */
static int is_one_by_one(const struct op_call *call) {
    return shuffle_active(call, SUM_NORM) || race_active(call, SUM_NORM);
}

int clip_joins_blocks(const struct clip_call *clip) {
    return clip->tensor_count > 0 && !clip->call->order_free && needs_each(clip) &&
           !is_narrow(&clip->rule, clip->tensors[0].storage) && !is_one_by_one(clip->call);
}

void clip_ask(struct clip_call *clip, struct clip_tensor *tensors,
              void (*squares)(const struct squares_args *, size_t), const struct clip_room *room) {
    double *blocks = room->blocks;
    size_t asked = 0;
    if (clip->call->order_free) return;
    for (size_t i = 0; needs_each(clip) && i < clip->tensor_count; i++) {
        const int narrow = is_narrow(&clip->rule, tensors[i].storage);
        if (!narrow && is_one_by_one(clip->call)) continue;
        room->asked[asked++] = (struct squares_args){.storage = tensors[i].storage,
                                                     .wide = !narrow,
                                                     .count = tensors[i].count,
                                                     .values = tensors[i].gradient,
                                                     .blocks = blocks};
        tensors[i].blocks = blocks;
        blocks += squares_blocks(tensors[i].count);
    }
    if (clip->rule.norm == CLIP_FLAT && is_one_vector(clip)) {
        room->asked[asked] = flat_of(clip, room->pieces);
        room->asked[asked++].blocks = blocks;
        clip->flat = blocks;
    }
    squares(room->asked, asked);
}

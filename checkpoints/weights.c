/* SPDX-License-Identifier: Apache-2.0
 * Pairs tensors by name, compares them by blocks, and ranks them. A block whose bytes are equal is
 * not looked into.
 *
 * Invariant: the report depends on the two files alone, not on the blocks. */
#include "checkpoints/weights.h"

#include <math.h>
#include <string.h>

#include "base/real_basic.h"
#include "base/sort.h"
#include "base/sum.h"
#include "checkpoints/layers.h"
#include "checkpoints/order.h"
#include "determinism/carrier.h"

/* elements at a time */
#define BLOCK 16384
#define HEAD "lm_head.weight"
#define EMBEDDING "model.embed_tokens.weight"

struct compare {
    const struct checkpoint *side[2];
    size_t skip[2]; /* characters before every name of a side, which a wrapper put there */
    const struct weights_progress *progress;
    struct arena *arena;
    struct weights_row *rows;
    size_t count;
    uint64_t done, total;
    double *value[2];         /* [BLOCK] */
    double *terms;            /* [BLOCK] */
    unsigned char *carriers;  /* [BLOCK * 8] */
    unsigned char *coarse[2]; /* [BLOCK * 8] the values in ulp_dtype's own bytes */
};

static void advance(struct compare *compare, uint64_t bytes) {
    compare->done += bytes;
    if (compare->progress != NULL)
        compare->progress->tell(compare->progress->context, compare->done, compare->total);
}

static uint64_t bytes_of(const struct safetensors_tensor *tensor) {
    return tensor == NULL ? 0 : tensor->end - tensor->begin;
}

static int same_shape(const struct safetensors_tensor *a, const struct safetensors_tensor *b) {
    if (a->rank != b->rank) return 0;
    for (size_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i]) return 0;
    return 1;
}

static void settle(struct weights_row *row) {
    if (row->a == NULL)
        row->state = WEIGHTS_ONLY_B;
    else if (row->b == NULL)
        row->state = WEIGHTS_ONLY_A;
    else if (!same_shape(row->a, row->b))
        row->state = WEIGHTS_SHAPE;
    else if (row->a->dtype != row->b->dtype)
        row->state = WEIGHTS_DTYPE;
}

/* A wrapper stands before all names of a checkpoint, or it is a name that the model gives. So names
 * without it keep their order. */
static size_t wrapper_of(const struct checkpoint *side) {
    const size_t length = side->count > 0 ? layer_wrapper_length(side->tensors[0]->name) : 0;
    for (size_t i = 1; i < side->count; i++)
        if (layer_wrapper_length(side->tensors[i]->name) != length ||
            strncmp(side->tensors[i]->name, side->tensors[0]->name, length) != 0)
            return 0;
    return length;
}

static const struct safetensors_tensor *find_bare(const struct compare *compare, int side,
                                                  const char *name) {
    const struct checkpoint *const in = compare->side[side];
    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->tensors[i]->name + compare->skip[side], name) == 0) return in->tensors[i];
    return NULL;
}

/* If only one side has an lm_head, the other's embedding stands for it. */
static void tie(struct compare *compare, struct weights_row *row) {
    if (strcmp(row->name, HEAD) != 0 || (row->a != NULL && row->b != NULL)) return;
    const int absent = row->a == NULL ? 0 : 1;
    const struct safetensors_tensor *embedding = find_bare(compare, absent, EMBEDDING);
    if (embedding == NULL) return;
    row->stands_for_head = absent + 1;
    if (absent == 0)
        row->a = embedding;
    else
        row->b = embedding;
}

static enum status pair_names(struct compare *compare) {
    const struct checkpoint *a = compare->side[0], *b = compare->side[1];
    size_t i = 0, k = 0;
    TRY(arena_take(compare->arena, a->count + b->count, sizeof *compare->rows, "rows",
                   &compare->rows));
    while (i < a->count || k < b->count) {
        struct weights_row *row = &compare->rows[compare->count++];
        const char *const of_a = i < a->count ? a->tensors[i]->name + compare->skip[0] : NULL;
        const char *const of_b = k < b->count ? b->tensors[k]->name + compare->skip[1] : NULL;
        const int side = of_a == NULL ? 1 : of_b == NULL ? -1 : strcmp(of_a, of_b);
        if (side <= 0) row->a = a->tensors[i++];
        if (side >= 0) row->b = b->tensors[k++];
        row->name = row->a != NULL ? of_a : of_b;
        tie(compare, row);
        settle(row);
        if (row->a != NULL && row->b != NULL && row->state != WEIGHTS_SHAPE)
            compare->total += 2 * (bytes_of(row->a) + bytes_of(row->b)); /* two passes */
    }
    return STATUS_OK;
}

/* The distance from 0 in steps of the format, and the sign. NaNs do not come here. */
static uint64_t magnitude_of(const unsigned char *bytes, size_t width, int *negative) {
    uint64_t bits = 0;
    memcpy(&bits, bytes, width);
    const uint64_t sign = (uint64_t)1 << (8 * width - 1);
    *negative = (bits & sign) != 0;
    return bits & ~sign;
}

static uint64_t steps_between(const unsigned char *a, const unsigned char *b, size_t width) {
    int a_negative, b_negative;
    const uint64_t x = magnitude_of(a, width, &a_negative);
    const uint64_t y = magnitude_of(b, width, &b_negative);
    if (a_negative != b_negative) return x + y;
    return x > y ? x - y : y - x;
}

/* Loads one block: its values as f64, exactly, and in the bytes of the coarser format, rounded
 * once. */
static enum status load(struct compare *compare, size_t side,
                        const struct safetensors_tensor *tensor, uint64_t first, size_t count,
                        enum dtype coarse) {
    enum dtype dtype = DTYPE_F32;
    double *value = compare->value[side];
    (void)safetensors_dtype_number(tensor->dtype, &dtype);
    TRY(safetensors_numbers(tensor, first, count, compare->carriers));
    for (size_t i = 0; i < count; i++) {
        float narrow;
        if (dtype == DTYPE_F64) {
            memcpy(&value[i], compare->carriers + 8 * i, 8);
        } else {
            memcpy(&narrow, compare->carriers + 4 * i, 4);
            value[i] = (double)narrow;
        }
        const double rounded = dtype == coarse ? value[i] : dtype_round(value[i], coarse);
        narrow = (float)rounded;
        if (coarse == DTYPE_F64)
            memcpy(compare->carriers + 8 * i, &rounded, 8);
        else
            memcpy(compare->carriers + 4 * i, &narrow, 4);
    }
    if (carrier_pack(coarse, compare->carriers, count, compare->coarse[side]) != count)
        FAIL(STATUS_INTERNAL, "%s: %s: a value does not fit its own format", tensor->path,
             tensor->name);
    return STATUS_OK;
}

/* Notes element i of the block, whose bits or values differ. */
static void note(const struct compare *compare, struct weights_row *row, uint64_t first, size_t i) {
    const double a = compare->value[0][i], b = compare->value[1][i];
    const size_t width = dtype_width(row->ulp_dtype);
    const int a_nan = isnan(a) != 0, b_nan = isnan(b) != 0;
    row->differing++;
    row->one_nan += a_nan != b_nan;
    if (a_nan || b_nan) return;
    const double distance = a == b ? 0.0 : fabs(a - b);
    if (distance > row->max_abs) {
        row->max_abs = distance;
        row->max_at = first + i;
    }
    const uint64_t steps =
        steps_between(compare->coarse[0] + i * width, compare->coarse[1] + i * width, width);
    if (steps > row->max_ulp) row->max_ulp = steps;
}

static int differ(const struct compare *compare, const struct weights_row *row, uint64_t first,
                  size_t i) {
    const double a = compare->value[0][i], b = compare->value[1][i];
    if (row->state != WEIGHTS_DTYPE) {
        const size_t width = safetensors_dtype_bits(row->a->dtype) / 8;
        return memcmp(row->a->data + (first + i) * width, row->b->data + (first + i) * width,
                      width) != 0;
    }
    if (isnan(a) || isnan(b)) return !(isnan(a) && isnan(b));
    return memcmp(&a, &b, sizeof a) != 0;
}

static enum status compare_numbers(struct compare *compare, struct weights_row *row) {
    const size_t widths[2] = {safetensors_dtype_bits(row->a->dtype) / 8,
                              safetensors_dtype_bits(row->b->dtype) / 8};
    for (uint64_t first = 0; first < row->a->count; first += BLOCK) {
        const uint64_t rest = row->a->count - first;
        const size_t count = rest < BLOCK ? (size_t)rest : BLOCK;
        if (row->a->dtype != row->b->dtype ||
            memcmp(row->a->data + first * widths[0], row->b->data + first * widths[0],
                   count * widths[0]) != 0) {
            TRY(load(compare, 0, row->a, first, count, row->ulp_dtype));
            TRY(load(compare, 1, row->b, first, count, row->ulp_dtype));
            for (size_t i = 0; i < count; i++)
                if (differ(compare, row, first, i)) note(compare, row, first, i);
        }
        advance(compare, count * (widths[0] + widths[1]));
    }
    return STATUS_OK;
}

/* Compares tensors of a dtype that is no number here: element by element, or byte by byte if
 * elements are no whole bytes. */
static void compare_bytes(struct compare *compare, struct weights_row *row) {
    const unsigned bits = safetensors_dtype_bits(row->a->dtype);
    const size_t width = bits % 8 == 0 ? bits / 8 : 1;
    const uint64_t bytes = bytes_of(row->a);
    for (uint64_t at = 0; at < bytes; at += width)
        row->differing += memcmp(row->a->data + at, row->b->data + at, width) != 0;
    advance(compare, 2 * bytes);
}

static enum status compare_row(struct compare *compare, struct weights_row *row) {
    enum dtype dtypes[2];
    if (row->a == NULL || row->b == NULL || row->state == WEIGHTS_SHAPE) return STATUS_OK;
    row->has_numbers = safetensors_dtype_number(row->a->dtype, &dtypes[0]) &&
                       safetensors_dtype_number(row->b->dtype, &dtypes[1]);
    if (row->has_numbers) {
        const int first_is_coarser = dtype_epsilon(dtypes[0]) > dtype_epsilon(dtypes[1]);
        row->ulp_dtype = dtypes[first_is_coarser ? 0 : 1];
        TRY(compare_numbers(compare, row));
    } else if (row->state != WEIGHTS_DTYPE) {
        compare_bytes(compare, row);
    }
    if (row->state == WEIGHTS_EQUAL && row->differing > 0) row->state = WEIGHTS_VALUES;
    if (row->state == WEIGHTS_EQUAL && row->stands_for_head != 0) row->state = WEIGHTS_TIED;
    return STATUS_OK;
}

/* ---- as vectors ---- */

double weights_relative(const struct weights_vectors *vectors) {
    return vectors->norm_a > 0.0 ? vectors->difference / vectors->norm_a : (double)NAN;
}

/* The cosine of vectors that hardly differ is so near to 1 that its own rounding shows; it is not
 * let above. */
double weights_cosine(const struct weights_vectors *vectors) {
    if (!(vectors->norm_a > 0.0 && vectors->norm_b > 0.0)) return (double)NAN;
    const double cosine = vectors->product / vectors->norm_a / vectors->norm_b;
    return cosine > 1.0 ? 1.0 : cosine;
}

/* Adds squares and products. Roots are taken when all are there. */
static void add_vectors(struct weights_vectors *to, const struct weights_vectors *terms) {
    to->norm_a += terms->norm_a;
    to->norm_b += terms->norm_b;
    to->difference += terms->difference;
    to->product += terms->product;
}

static void take_roots(struct weights_vectors *vectors) {
    vectors->norm_a = real_sqrt_f64(vectors->norm_a);
    vectors->norm_b = real_sqrt_f64(vectors->norm_b);
    vectors->difference = real_sqrt_f64(vectors->difference);
}

static void add_block(struct compare *compare, size_t count, struct weights_vectors *to) {
    double *const a = compare->value[0], *const b = compare->value[1];
    double *const terms = compare->terms;
    for (size_t i = 0; i < count; i++)
        if (!real_finite_f64(a[i]) || !real_finite_f64(b[i])) a[i] = b[i] = 0.0;
    for (size_t i = 0; i < count; i++)
        terms[i] = a[i] * a[i];
    to->norm_a += sum_terms_f64_f64(terms, count);
    for (size_t i = 0; i < count; i++)
        terms[i] = b[i] * b[i];
    to->norm_b += sum_terms_f64_f64(terms, count);
    for (size_t i = 0; i < count; i++)
        terms[i] = (a[i] - b[i]) * (a[i] - b[i]);
    to->difference += sum_terms_f64_f64(terms, count);
    for (size_t i = 0; i < count; i++)
        terms[i] = a[i] * b[i];
    to->product += sum_terms_f64_f64(terms, count);
}

static enum status measure_row(struct compare *compare, struct weights_row *row) {
    for (uint64_t first = 0; first < row->a->count; first += BLOCK) {
        const uint64_t rest = row->a->count - first;
        const size_t count = rest < BLOCK ? (size_t)rest : BLOCK;
        TRY(load(compare, 0, row->a, first, count, row->ulp_dtype));
        TRY(load(compare, 1, row->b, first, count, row->ulp_dtype));
        add_block(compare, count, &row->vectors);
    }
    advance(compare, bytes_of(row->a) + bytes_of(row->b));
    return STATUS_OK;
}

static enum status layer_of(struct weights_report *out, struct weights_layer **layers, size_t *room,
                            const char *name, struct arena *arena, struct weights_layer **found) {
    const size_t length = layer_length(name);
    char *copy;
    for (size_t i = 0; i < out->layer_count; i++)
        if (strlen((*layers)[i].name) == length && strncmp((*layers)[i].name, name, length) == 0) {
            *found = &(*layers)[i];
            return STATUS_OK;
        }
    TRY(arena_grow(arena, out->layer_count + 1, room, sizeof **layers, "layers", layers));
    TRY(arena_text(arena, name, length, &copy));
    *found = &(*layers)[out->layer_count++];
    **found = (struct weights_layer){.name = copy};
    return STATUS_OK;
}

/* The further one first. A layer of zeros has no relative distance and comes last. */
static int is_further(const void *a, const void *b, const void *context) {
    const double x = weights_relative(&((const struct weights_layer *)a)->vectors);
    const double y = weights_relative(&((const struct weights_layer *)b)->vectors);
    (void)context;
    return x > y || (x >= 0.0 && isnan(y));
}

/* A second pass over the numbers, which equal checkpoints are spared. */
static enum status measure(struct compare *compare, struct weights_report *out) {
    struct weights_layer *layers = NULL, *layer, *spare;
    size_t room = 0;
    TRY(arena_take(compare->arena, BLOCK, sizeof(double), "block", &compare->terms));
    for (size_t i = 0; i < compare->count; i++) {
        struct weights_row *const row = &compare->rows[i];
        if (!row->has_numbers) continue;
        TRY(measure_row(compare, row));
        add_vectors(&out->all, &row->vectors);
        TRY(layer_of(out, &layers, &room, row->name, compare->arena, &layer));
        add_vectors(&layer->vectors, &row->vectors);
        layer->tensors++;
        take_roots(&row->vectors);
    }
    take_roots(&out->all);
    for (size_t i = 0; i < out->layer_count; i++)
        take_roots(&layers[i].vectors);
    TRY(arena_take(compare->arena, out->layer_count, sizeof *spare, "layers", &spare));
    out->layers = (const struct weights_layer *)sort_stable(layers, spare, out->layer_count,
                                                            sizeof *layers, is_further, NULL);
    return STATUS_OK;
}

/* Missing tensors and those of other shapes come first, then those with NaNs on one side only, then
 * by max_abs. */
static int compare_worst(const void *a, const void *b) {
    const struct weights_row *x = (const struct weights_row *)a, *y = (const struct weights_row *)b;
    const int x_apart = x->state >= WEIGHTS_SHAPE, y_apart = y->state >= WEIGHTS_SHAPE;
    if (x_apart != y_apart) return y_apart - x_apart;
    if (x_apart && x->state != y->state) return x->state > y->state ? -1 : 1;
    if ((x->one_nan > 0) != (y->one_nan > 0)) return x->one_nan > 0 ? -1 : 1;
    if (x->max_abs == y->max_abs) return 0;
    return x->max_abs > y->max_abs ? -1 : 1;
}

static enum status summarise(const struct compare *compare, struct weights_report *out) {
    const void **worst;
    TRY(arena_take(compare->arena, compare->count, sizeof *worst, "rows", &worst));
    for (size_t i = 0; i < compare->count; i++) {
        const struct weights_row *row = &compare->rows[i];
        out->counts[row->state]++;
        out->differing += row->differing;
        out->one_nan += row->one_nan;
        if (row->max_abs > out->max_abs) out->max_abs = row->max_abs;
        if (row->max_ulp > (out->max_ulp == NULL ? 0 : out->max_ulp->max_ulp)) out->max_ulp = row;
        if (row->state > WEIGHTS_TIED) worst[out->worst_count++] = row;
    }
    TRY(order_pointers(worst, out->worst_count, compare_worst, compare->arena));
    TRY(arena_take(compare->arena, out->worst_count, sizeof *out->worst, "rows", &out->worst));
    for (size_t i = 0; i < out->worst_count; i++)
        out->worst[i] = (const struct weights_row *)worst[i];
    out->rows = compare->rows;
    out->count = compare->count;
    return STATUS_OK;
}

enum status weights_compare(const struct checkpoint *a, const struct checkpoint *b,
                            const struct weights_progress *progress, struct arena *arena,
                            struct weights_report *out) {
    struct compare compare = {.side = {a, b}, .progress = progress, .arena = arena};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < 2; i++) {
        char *wrapper;
        compare.skip[i] = wrapper_of(compare.side[i]);
        TRY(arena_text(arena, compare.skip[i] > 0 ? compare.side[i]->tensors[0]->name : "",
                       compare.skip[i], &wrapper));
        out->wrapper[i] = wrapper;
    }
    TRY(pair_names(&compare));
    for (size_t i = 0; i < 2; i++) {
        TRY(arena_take(arena, BLOCK, sizeof(double), "block", &compare.value[i]));
        TRY(arena_take(arena, BLOCK, 8, "block", &compare.coarse[i]));
    }
    TRY(arena_take(arena, BLOCK, 8, "block", &compare.carriers));
    for (size_t i = 0; i < compare.count; i++)
        TRY(compare_row(&compare, &compare.rows[i]));
    TRY(summarise(&compare, out));
    if (out->differing == 0) return STATUS_OK;
    return measure(&compare, out);
}

int weights_equal(const struct weights_report *report) {
    return report->worst_count == 0;
}

const char *weights_state_name(enum weights_state state) {
    static const char *const names[WEIGHTS_STATES] = {"equal", "tied",      "values",   "dtype",
                                                      "shape", "only in A", "only in B"};
    return names[state];
}

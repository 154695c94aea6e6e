/* SPDX-License-Identifier: Apache-2.0
 * Sums are those of law 2. A layer is what stands before the part behind its number, "layers.3" of
 * "model.layers.3.mlp.up_proj.weight"; a name without a number is its own layer. */
#include "readback/against.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"
#include "checkpoints/layers.h"
#include "kernels/products.h"

enum { AA = 0, BB, AB, DD, START, START_DD, SUMS };

struct totals {
    struct sum_blocks_f64 sums[SUMS];
};

static void push_block(const struct direction_block *a, const struct direction_block *b,
                       struct rate_terms *room, struct totals *to) {
    const size_t n = a->count;
    for (size_t i = 0; i < n; i++) {
        room->u[i] = a->now[i] - a->old[i];
        room->p[i] = b->now[i] - b->old[i];
        room->d[i] = room->u[i] - room->p[i];
        room->one[i] = a->old[i] - b->old[i];
    }
    sum_blocks_push_f64(&to->sums[AA], products_block(room->u, room->u, n));
    sum_blocks_push_f64(&to->sums[BB], products_block(room->p, room->p, n));
    sum_blocks_push_f64(&to->sums[AB], products_block(room->u, room->p, n));
    sum_blocks_push_f64(&to->sums[DD], products_block(room->d, room->d, n));
    sum_blocks_push_f64(&to->sums[START], products_block(a->old, a->old, n));
    sum_blocks_push_f64(&to->sums[START_DD], products_block(room->one, room->one, n));
}

static void read_block(const struct step_tensor *tensor, uint64_t first, size_t count,
                       struct direction_block *out) {
    out->count = count;
    stored_get(&tensor->old, first, count, out->old);
    stored_get(&tensor->now, first, count, out->now);
}

static void add_tensor(const struct step_tensor *a, const struct step_tensor *b,
                       struct rate_room *room, struct totals *to) {
    for (uint64_t first = 0; first < a->count; first += READBACK_BLOCK) {
        const uint64_t left = a->count - first;
        const size_t count = left < READBACK_BLOCK ? (size_t)left : READBACK_BLOCK;
        read_block(a, first, count, &room->block);
        read_block(b, first, count, &room->other);
        push_block(&room->block, &room->other, &room->terms, to);
        direction_passed(&room->block);
    }
}

static double root(const struct totals *totals, int which) {
    return real_sqrt_f64(sum_blocks_close_f64(&totals->sums[which]));
}

static struct against_row close_row(const char *name, uint64_t elements,
                                    const struct totals *totals) {
    struct against_row out = {.name = name, .elements = elements, .cosine = (double)NAN};
    out.length_a = root(totals, AA);
    out.length_b = root(totals, BB);
    out.difference = root(totals, DD);
    out.start = root(totals, START);
    out.start_difference = root(totals, START_DD);
    if (out.length_a > 0.0 && out.length_b > 0.0)
        out.cosine = sum_blocks_close_f64(&totals->sums[AB]) / (out.length_a * out.length_b);
    return out;
}

/* The name that the model itself gives, without those of wrappers. */
static const char *bare(const char *name) {
    return name + layer_wrapper_length(name);
}

static const struct step_tensor *find(const struct step *step, const char *name, uint32_t near) {
    if (near < step->tensor_count && strcmp(step->tensors[near].name, name) == 0)
        return &step->tensors[near];
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (strcmp(step->tensors[i].name, name) == 0) return &step->tensors[i];
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (strcmp(bare(step->tensors[i].name), bare(name)) == 0) return &step->tensors[i];
    return NULL;
}

static enum status layer_of(struct against *out, const char *name, size_t *room,
                            struct arena *arena, uint32_t *out_at) {
    const size_t length = layer_length(name);
    char *copy;
    for (uint32_t i = 0; i < out->layer_count; i++)
        if (strlen(out->layers[i].name) == length &&
            strncmp(out->layers[i].name, name, length) == 0) {
            *out_at = i;
            return STATUS_OK;
        }
    TRY(arena_grow(arena, out->layer_count + 1u, room, sizeof *out->layers, "layers",
                   &out->layers));
    TRY(arena_text(arena, name, length, &copy));
    out->layers[out->layer_count] = (struct against_row){.name = copy};
    *out_at = out->layer_count++;
    return STATUS_OK;
}

/* Lengths of parts add up as squares; scalar products are kept in `cosine` until all are there. */
static void add_row(struct against_row *to, const struct against_row *row) {
    to->elements += row->elements;
    to->length_a += row->length_a * row->length_a;
    to->length_b += row->length_b * row->length_b;
    to->difference += row->difference * row->difference;
    to->start += row->start * row->start;
    to->start_difference += row->start_difference * row->start_difference;
    if (fabs(row->cosine) >= 0.0) to->cosine += row->cosine * row->length_a * row->length_b;
}

static void close_added(struct against_row *row) {
    row->length_a = real_sqrt_f64(row->length_a);
    row->length_b = real_sqrt_f64(row->length_b);
    row->difference = real_sqrt_f64(row->difference);
    row->start = real_sqrt_f64(row->start);
    row->start_difference = real_sqrt_f64(row->start_difference);
    row->cosine = row->length_a > 0.0 && row->length_b > 0.0
                      ? row->cosine / (row->length_a * row->length_b)
                      : (double)NAN;
}

static enum status add_to_layers(struct against *out, struct arena *arena) {
    size_t room = 0;
    uint32_t at;
    out->all = (struct against_row){.name = "all"};
    for (uint32_t i = 0; i < out->tensor_count; i++) {
        TRY(layer_of(out, out->tensors[i].name, &room, arena, &at));
        add_row(&out->layers[at], &out->tensors[i]);
        add_row(&out->all, &out->tensors[i]);
    }
    for (uint32_t i = 0; i < out->layer_count; i++)
        close_added(&out->layers[i]);
    close_added(&out->all);
    return STATUS_OK;
}

/* A NaN makes every difference one; equal bytes are equal steps all the same. */
static int is_unlike(double difference, const struct stored *a, const struct stored *b,
                     const struct step_tensor *tensor) {
    if (difference == difference) return difference > 0.0;
    return a->dtype != b->dtype ||
           memcmp(a->bytes, b->bytes, (size_t)tensor->count * dtype_width(a->dtype)) != 0;
}

enum status against_read(const struct step *a, const struct step *b, struct rate_room *room,
                         struct arena *arena, struct against *out) {
    *out = (struct against){.tensor_count = 0};
    TRY(arena_take(arena, a->tensor_count, sizeof *out->tensors, "tensors", &out->tensors));
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        const struct step_tensor *const one = &a->tensors[i], *const two = find(b, one->name, i);
        struct totals totals = {{{.count = 0}}};
        if (two == NULL) {
            out->only_a++;
            continue;
        }
        if (one->count != two->count)
            FAIL(STATUS_INPUT,
                 "tensor %s has another number of elements in the other run: the two "
                 "train unlike models",
                 one->name);
        add_tensor(one, two, room, &totals);
        const struct against_row row = close_row(one->name, one->count, &totals);
        out->tensors[out->tensor_count++] = row;
        if (out->first_start == NULL && is_unlike(row.start_difference, &one->old, &two->old, one))
            out->first_start = row.name;
        if (out->first_step == NULL && is_unlike(row.difference, &one->now, &two->now, one))
            out->first_step = row.name;
    }
    out->only_b = b->tensor_count - out->tensor_count;
    if (out->tensor_count == 0)
        FAIL(STATUS_INPUT,
             "the two runs have no tensor in common (%" PRIu32 " and %" PRIu32
             " of them): expected two trainings of one model",
             a->tensor_count, b->tensor_count);
    return add_to_layers(out, arena);
}

struct rate against_ratio(const struct rate *a, const struct rate *b) {
    struct rate out = {
        .state = RATE_UNKNOWN, .method = b->method, .why = "one of them is not read"};
    if (a->state != RATE_READ || b->state != RATE_READ || !(a->low > 0.0) || !(b->low > 0.0))
        return out;
    out.state = RATE_READ;
    out.low = b->low / a->high;
    out.high = b->high / a->low;
    out.value = (out.low + out.high) / 2;
    return out;
}

/* SPDX-License-Identifier: Apache-2.0
 * The exchange of trainer/collective.h. All messages of a rank lie one behind the other in one
 * vector, so a tensor's place is a number, and FSDP2's parts are pieces at equal distances. */
#include "trainer/collective.h"

#include <string.h>

#include "determinism/stream.h"
#include "ranks/bucket.h"
#include "ranks/join.h"
#include "scenarios/scenario.h"

/* op of the addresses of arrivals; no kernel draws at it (509 of 511; the two above it are those of
 * orders of entry and of order seeds) */
#define ARRIVAL_OP 509u
#define ARRIVAL_BLOCK 4096u /* elements that arrive together */

/* Elements p * piece .. (p + 1) * piece - 1 of a tensor begin at first + p * stride. */
struct place {
    uint64_t first, piece, stride;
};

struct collective {
    uint32_t ranks;
    int32_t reduce, average, buckets; /* enum reduce_order, rank_average, rank_buckets */
    int32_t race;                     /* enum parallel_race */
    uint64_t bucket, chunk, node;
    enum dtype gradient, wire;
    enum join_mean mean; /* of the running update */
    uint64_t update;

    size_t count;
    uint64_t *sizes, *rows, *row_lengths; /* (count) */
    uint32_t *ready;                      /* (count) in the order of arrival; NULL: last to first */
    struct place *places;                 /* (count) of the running update */
    struct bucket_place *laid;            /* (count) scratch */
    uint32_t *scratch;                    /* (count) */
    uint64_t *lengths;                    /* (count) elements of each message */
    size_t messages;

    uint64_t length;       /* elements of all messages together */
    float **vectors;       /* (ranks) of as many */
    const float **message; /* (ranks) where the running message begins in each */
    float *sum;

    struct grouping_run run; /* of the tree, or of an arrival */
    uint64_t seed;
    struct stream_address arrival;
    struct stream_card *cards; /* (2 * ranks) */
    uint32_t *order;           /* (ranks) */
};

static struct bucket_group group_of(const struct collective *collective) {
    return (struct bucket_group){.rows = collective->rows,
                                 .row_lengths = collective->row_lengths,
                                 .count = collective->count,
                                 .ranks = collective->ranks};
}

/* Elements of the longest layout: buckets of DDP hold every element once, FSDP2 fills parts up. */
static enum status measure(struct collective *collective) {
    const struct bucket_group group = group_of(collective);
    TRY(bucket_group_check(&group));
    for (size_t i = 0; i < collective->count; i++)
        collective->length += collective->sizes[i];
    if (collective->buckets == BUCKETS_FSDP2) collective->length = bucket_group_length(&group);
    return STATUS_OK;
}

static enum status take_tensors(struct collective *collective,
                                const struct collective_tensor *tensors, struct arena *arena) {
    const char *const what = "tensors that ranks exchange";
    const size_t count = collective->count;
    TRY(arena_take(arena, count, sizeof *collective->sizes, what, &collective->sizes));
    TRY(arena_take(arena, count, sizeof *collective->rows, what, &collective->rows));
    TRY(arena_take(arena, count, sizeof *collective->row_lengths, what, &collective->row_lengths));
    TRY(arena_take(arena, count, sizeof *collective->places, what, &collective->places));
    TRY(arena_take(arena, count, sizeof *collective->laid, what, &collective->laid));
    TRY(arena_take(arena, count, sizeof *collective->scratch, what, &collective->scratch));
    TRY(arena_take(arena, count, sizeof *collective->lengths, what, &collective->lengths));
    for (size_t i = 0; i < count; i++) {
        collective->rows[i] = tensors[i].rows;
        collective->row_lengths[i] = tensors[i].row_length;
        collective->sizes[i] = tensors[i].rows * tensors[i].row_length;
    }
    return measure(collective);
}

static enum status take_vectors(struct collective *collective, struct arena *arena) {
    const char *const what = "gradients that ranks exchange";
    const uint32_t ranks = collective->ranks;
    const size_t length = (size_t)collective->length;
    TRY(arena_take(arena, ranks, sizeof *collective->vectors, what, &collective->vectors));
    TRY(arena_take(arena, ranks, sizeof *collective->message, what, &collective->message));
    TRY(arena_take(arena, 2 * (size_t)ranks, sizeof *collective->cards, what, &collective->cards));
    TRY(arena_take(arena, ranks, sizeof *collective->order, what, &collective->order));
    for (uint32_t r = 0; r < ranks; r++)
        TRY(arena_take(arena, length, sizeof(float), what, &collective->vectors[r]));
    return arena_take(arena, length, sizeof(float), what, &collective->sum);
}

/* All but the gradients themselves. */
static enum status describe(const struct config *config, const struct collective_tensor *tensors,
                            size_t count, const uint32_t *arrival, struct arena *arena,
                            struct collective **out) {
    struct collective *collective;
    TRY(arena_take(arena, 1, sizeof *collective, "ranks", &collective));
    static const enum dtype wires[] = {
        [WIRE_F32] = DTYPE_F32, [WIRE_BF16] = DTYPE_BF16, [WIRE_F16] = DTYPE_F16};
    const int32_t wire = config->parallel.reduce_dtype;
    *collective = (struct collective){.ranks = (uint32_t)config->parallel.ranks,
                                      .reduce = config->parallel.reduce,
                                      .average = config->parallel.average,
                                      .buckets = config->parallel.buckets,
                                      .race = config->parallel.race,
                                      .bucket = config->parallel.bucket,
                                      .chunk = config->parallel.chunk,
                                      .node = config->parallel.node,
                                      .gradient = (enum dtype)config->numerics.gradient,
                                      .count = count};
    collective->wire = wire == CONFIG_AS_GRADIENT ? collective->gradient : wires[wire];
    TRY(take_tensors(collective, tensors, arena));
    if (arrival != NULL) {
        TRY(arena_take(arena, count, sizeof *collective->ready, "ranks", &collective->ready));
        memcpy(collective->ready, arrival, count * sizeof *arrival);
    }
    *out = collective;
    return STATUS_OK;
}

enum status collective_open(const struct config *config, const struct collective_tensor *tensors,
                            size_t count, const uint32_t *arrival, struct arena *arena,
                            struct collective **out) {
    TRY(describe(config, tensors, count, arrival, arena, out));
    return take_vectors(*out, arena);
}

static enum join_mean mean_of(int32_t average, uint64_t update) {
    switch ((enum rank_average)average) {
    case AVERAGE_DIVIDE_BEFORE:
        return JOIN_DIVIDE_FIRST;
    case AVERAGE_AFTER:
        return JOIN_DIVIDE_LAST;
    case AVERAGE_MUL_THEN_DIV:
        return update == 1 ? JOIN_MULTIPLY_FIRST : JOIN_DIVIDE_FIRST;
    case AVERAGE_RECIPROCAL:
        return JOIN_RECIPROCAL;
    case AVERAGE_SPLIT:
        return JOIN_SPLIT;
    case AVERAGE_BEFORE:
    default:
        return JOIN_MULTIPLY_FIRST;
    }
}

/* What rows fill up a part with is +0 on every rank. */
static void lay_parts(struct collective *collective) {
    const struct bucket_group group = group_of(collective);
    const uint64_t part = collective->length / collective->ranks;
    uint64_t first = 0;
    for (size_t i = 0; i < collective->count; i++) {
        const uint64_t own = bucket_group_part(&group, i);
        collective->places[i] = (struct place){first, own, part};
        first += own;
    }
    for (uint32_t r = 0; r < collective->ranks; r++)
        memset(collective->vectors[r], 0, (size_t)collective->length * sizeof(float));
    collective->lengths[0] = collective->length;
    collective->messages = 1;
}

/* DDP counts the bytes of gradients, whatever goes over the wire. */
static enum status lay_buckets(struct collective *collective) {
    const int given = collective->bucket != KEY_WORD_UINT;
    const struct bucket_call call = {.sizes = collective->sizes,
                                     .arrival = collective->ready,
                                     .count = collective->count,
                                     .width = (uint32_t)dtype_width(collective->gradient),
                                     .first = given ? collective->bucket : BUCKET_FIRST_BYTES,
                                     .cap = given ? collective->bucket : BUCKET_CAP_BYTES,
                                     .finds_unused = collective->buckets == BUCKETS_ONCE};
    TRY(bucket_ddp(&call, collective->update, collective->scratch, collective->laid,
                   collective->lengths, &collective->messages));
    for (size_t i = 0; i < collective->count; i++) {
        uint64_t first = collective->laid[i].offset;
        for (uint32_t m = 0; m < collective->laid[i].bucket; m++)
            first += collective->lengths[m];
        collective->places[i] = (struct place){first, collective->sizes[i], 0};
    }
    return STATUS_OK;
}

enum status collective_messages(const struct config *config,
                                const struct collective_tensor *tensors, size_t count,
                                const uint32_t *arrival, uint64_t update, struct arena *arena,
                                size_t *out) {
    struct collective *collective;
    *out = 1;
    if (config->parallel.buckets == BUCKETS_FSDP2) return STATUS_OK;
    TRY(describe(config, tensors, count, arrival, arena, &collective));
    collective->update = update;
    TRY(lay_buckets(collective));
    *out = collective->messages;
    return STATUS_OK;
}

enum status collective_begin(struct collective *collective, uint64_t update, uint64_t seed,
                             uint32_t address) {
    collective->update = update;
    collective->mean = mean_of(collective->average, update);
    collective->seed = seed;
    collective->arrival =
        (struct stream_address){.stream = STREAM_ORDER, .op = ARRIVAL_OP, .update = address};
    if (collective->buckets != BUCKETS_FSDP2) return lay_buckets(collective);
    lay_parts(collective);
    return STATUS_OK;
}

static void round_values(const float *values, size_t count, enum dtype from, enum dtype to,
                         float *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = from == to ? values[i] : (float)dtype_round((double)values[i], to);
}

void collective_put(struct collective *collective, uint32_t rank, size_t tensor,
                    const float *gradient) {
    const struct place *const place = &collective->places[tensor];
    const uint64_t size = collective->sizes[tensor];
    float *to = collective->vectors[rank] + place->first;
    for (uint64_t done = 0; done < size; done += place->piece, to += place->stride) {
        const uint64_t rest = size - done;
        const size_t count = (size_t)(rest < place->piece ? rest : place->piece);
        round_values(gradient + done, count, collective->gradient, collective->wire, to);
        join_scale_first(collective->mean, collective->ranks, collective->wire, to, count, to);
    }
}

void collective_take(const struct collective *collective, size_t tensor, float *out) {
    const struct place *const place = &collective->places[tensor];
    const uint64_t size = collective->sizes[tensor];
    const float *from = collective->sum + place->first;
    for (uint64_t done = 0; done < size; done += place->piece, from += place->stride) {
        const uint64_t rest = size - done;
        const size_t count = (size_t)(rest < place->piece ? rest : place->piece);
        round_values(from, count, collective->wire, collective->gradient, out + done);
    }
}

static void put_term(struct grouping_run *run, uint32_t term) {
    run->terms[run->length++] = (uint16_t)term;
}

/* The tree of law 21 with a rank in the place of a shard: neighbours first, and whoever has no
 * neighbour goes up as it is. `width` is a power of two. */
static void put_tree(struct grouping_run *run, uint32_t first, uint32_t width, uint32_t ranks) {
    if (width == 1) {
        put_term(run, first);
        return;
    }
    put_tree(run, first, width / 2, ranks);
    if (first + width / 2 >= ranks) return;
    put_tree(run, first + width / 2, width / 2, ranks);
    put_term(run, GROUPING_ADD);
}

static enum status add_tree(struct collective *collective, uint64_t count, float *out) {
    struct grouping_run *const run = &collective->run;
    uint32_t width = 1;
    while (width < collective->ranks)
        width *= 2;
    run->start = 0;
    run->end = count;
    run->length = 0;
    put_tree(run, 0, width, collective->ranks);
    return join_run(run, collective->ranks, collective->wire, collective->message, out);
}

/* One after the other, in an order that is drawn for each block of a message. */
static enum status add_arrivals(struct collective *collective, size_t message, uint64_t count,
                                float *out) {
    struct grouping_run *const run = &collective->run;
    const uint32_t ranks = collective->ranks;
    struct stream_address *const at = &collective->arrival;
    struct stream_site site;
    at->sample = message;
    at->last_element = ((count - 1) / ARRIVAL_BLOCK + 1) * 2 * ranks - 1;
    TRY(stream_pack(at, &site));
    for (uint64_t block = 0; block * ARRIVAL_BLOCK < count; block++) {
        stream_permute(collective->seed, site, block * 2 * ranks, ranks, collective->cards,
                       collective->order);
        run->start = block * ARRIVAL_BLOCK;
        run->end = run->start + ARRIVAL_BLOCK < count ? run->start + ARRIVAL_BLOCK : count;
        run->length = 0;
        for (uint32_t i = 0; i < ranks; i++) {
            put_term(run, collective->order[i]);
            if (i > 0) put_term(run, GROUPING_ADD);
        }
        TRY(join_run(run, ranks, collective->wire, collective->message, out));
    }
    return STATUS_OK;
}

static enum status add_message(struct collective *collective, size_t message, float *out) {
    const uint64_t count = collective->lengths[message];
    if (collective->reduce == REDUCE_TREE) return add_tree(collective, count, out);
    if (collective->reduce == REDUCE_ARRIVAL) return add_arrivals(collective, message, count, out);
    const struct grouping_call call = {
        .algorithm = (enum grouping_algorithm)(collective->reduce - REDUCE_LINEAR),
        .ranks = collective->ranks,
        .count = count,
        .width = (uint32_t)dtype_width(collective->wire),
        .part_first = count, /* one channel, the first, which has the first tree */
        .chunk = collective->chunk,
        .channels = 2,
        .node = (uint32_t)collective->node};
    return join_vectors(&call, collective->wire, collective->message, out);
}

/* A bug: the next message was laid into the buffer of this one before this one was read. Messages
 * are added first to last, so the next one is still what its rank has put. */
static void overwrite(struct collective *collective, size_t message, uint64_t first) {
    if (collective->race != RACE_NEXT_BUCKET || message + 1 == collective->messages) return;
    const uint64_t own = collective->lengths[message], next = collective->lengths[message + 1];
    const size_t count = (size_t)(own < next ? own : next);
    for (uint32_t r = 0; r < collective->ranks; r++) {
        float *const at = collective->vectors[r] + first;
        memcpy(at, at + own, count * sizeof *at);
    }
}

enum status collective_add(struct collective *collective) {
    uint64_t first = 0;
    for (size_t m = 0; m < collective->messages; first += collective->lengths[m++]) {
        overwrite(collective, m, first);
        for (uint32_t r = 0; r < collective->ranks; r++)
            collective->message[r] = collective->vectors[r] + first;
        TRY(add_message(collective, m, collective->sum + first));
    }
    join_scale_last(collective->mean, collective->ranks, collective->wire, collective->sum,
                    (size_t)collective->length);
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * The groupings of ranks/grouping.h. Each was written from a description or the published source of
 * its library, named below, and holds against recordings of it where there are some. */
#include "ranks/grouping.h"

#include <stddef.h>
#include <stdio.h>

#define COUNT_MAX ((uint64_t)1 << 48)
#define GLOO_SEGMENT ((uint64_t)1 << 20) /* bytes: kMaxSegmentSize of Gloo's allreduce.h */
#define NCCL_ALIGNMENT 16u               /* bytes: the last loop's chunks, all_reduce.h:runRing */

/* Open MPI was recorded with MPI_FLOAT, Gloo through torch (tests/bench/ranks_record.py). */
#define OF_OPEN_MPI "f32 on 2 to 8 ranks", 8, 1u << DTYPE_F32
#define OF_GLOO                                                                                    \
    "f32, bf16 and f16 on 2 to 5 ranks", 5, 1u << DTYPE_F32 | 1u << DTYPE_BF16 | 1u << DTYPE_F16
#define OF_SOURCE NULL, 0, 0

static const struct {
    const char *name, *recorded;
    uint32_t ranks;  /* from 2 on */
    uint32_t dtypes; /* a bit for each */
} algorithms[GROUPING_COUNT] = {
    [GROUPING_LINEAR] = {"linear", OF_OPEN_MPI},
    [GROUPING_RECURSIVE] = {"recursive", OF_OPEN_MPI},
    [GROUPING_RING] = {"ring", OF_OPEN_MPI},
    [GROUPING_RING_SCATTER] = {"ring-scatter", OF_OPEN_MPI},
    [GROUPING_HALVING] = {"halving", OF_OPEN_MPI},
    [GROUPING_GLOO] = {"gloo", OF_GLOO},
    [GROUPING_NCCL_RING] = {"nccl-ring", OF_SOURCE},
    [GROUPING_NCCL_RING_SCATTER] = {"nccl-ring-scatter", OF_SOURCE},
    [GROUPING_NCCL_TREE] = {"nccl-tree", OF_SOURCE},
};

const char *grouping_name(enum grouping_algorithm algorithm) {
    return algorithms[algorithm].name;
}

const char *grouping_recorded(enum grouping_algorithm algorithm) {
    return algorithms[algorithm].recorded;
}

int grouping_is_recorded(enum grouping_algorithm algorithm, uint32_t ranks, enum dtype dtype) {
    return ranks >= 2 && ranks <= algorithms[algorithm].ranks &&
           (algorithms[algorithm].dtypes >> dtype & 1) != 0;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static uint64_t round_up(uint64_t a, uint64_t b) {
    return divide_up(a, b) * b;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The largest power of two that is not above `ranks`. */
static uint32_t power_below(uint32_t ranks) {
    uint32_t power = 1;
    while (power <= ranks / 2)
        power *= 2;
    return power;
}

static void put(struct grouping_run *out, uint32_t term) {
    out->terms[out->length++] = (uint16_t)term;
}

static void put_place(const struct grouping_call *call, uint32_t place, struct grouping_run *out) {
    put(out, call->places == NULL ? place : call->places[place]);
}

/* Begins at place `start` and goes round in steps of `step` (1, or P - 1 for downwards), adding one
 * term after the other. */
static void put_fold(const struct grouping_call *call, uint32_t start, uint32_t step,
                     struct grouping_run *out) {
    uint32_t place = start % call->ranks;
    for (uint32_t i = 0; i < call->ranks; i++) {
        put_place(call, place, out);
        if (i > 0) put(out, GROUPING_ADD);
        place = (place + step) % call->ranks;
    }
}

/* Value v of the p values that a balanced tree joins. The first P - p pairs of neighbours make one
 * value each, so that a power of two remains. */
static void put_value(const struct grouping_call *call, uint32_t power, uint32_t value,
                      struct grouping_run *out) {
    const uint32_t pairs = call->ranks - power;
    if (value >= pairs) {
        put(out, value + pairs);
        return;
    }
    put(out, 2 * value);
    put(out, 2 * value + 1);
    put(out, GROUPING_ADD);
}

/* A balanced tree over p values, in the order 0, 1, 2, ... or with the bits of that number
 * reversed. Behind value i as many additions are due as i + 1 has factors of two. */
static void put_tree(const struct grouping_call *call, int is_reversed, struct grouping_run *out) {
    const uint32_t power = power_below(call->ranks);
    for (uint32_t i = 0; i < power; i++) {
        uint32_t value = i;
        if (is_reversed) {
            value = 0;
            for (uint32_t bit = 1; bit < power; bit *= 2)
                value = 2 * value + ((i & bit) != 0);
        }
        put_value(call, power, value, out);
        for (uint32_t rest = i + 1; rest % 2 == 0; rest /= 2)
            put(out, GROUPING_ADD);
    }
}

static void grouping_whole(const struct grouping_call *call, struct grouping_run *out) {
    out->start = 0;
    out->end = call->count;
}

/* P blocks, of which the first count mod P are one element longer. */
static void grouping_ring(const struct grouping_call *call, uint64_t element,
                          struct grouping_run *out) {
    const uint64_t late = call->count / call->ranks, longer = call->count % call->ranks;
    const uint64_t split = longer * (late + 1); /* first element of the shorter blocks */
    uint64_t block;
    if (element < split) {
        block = element / (late + 1);
        out->start = block * (late + 1);
        out->end = out->start + late + 1;
    } else {
        block = longer + (element - split) / late;
        out->start = split + (block - longer) * late;
        out->end = out->start + late;
    }
    put_fold(call, (uint32_t)block + (call->algorithm == GROUPING_RING_SCATTER), 1, out);
}

/* allreduce.cc:ring of Gloo: all segments have the same length, and a chunk has at least two. */
static void grouping_gloo(const struct grouping_call *call, uint64_t element,
                          struct grouping_run *out) {
    const uint64_t bytes = call->count * call->width;
    const uint64_t segments =
        round_up(most(divide_up(bytes, GLOO_SEGMENT), 2 * (uint64_t)call->ranks), call->ranks);
    const uint64_t segment = divide_up(divide_up(bytes, segments), call->width); /* elements */
    const uint64_t chunk = segments / call->ranks * segment, number = element / chunk;
    out->start = number * chunk;
    out->end = least(out->start + chunk, call->count);
    put_fold(call, (uint32_t)number + call->ranks - 1, call->ranks - 1, out);
}

/* The channel's part that `element` lies in: device.h:ncclCollCbdPart. */
static uint64_t part_of(const struct grouping_call *call, uint64_t element, uint64_t *start,
                        uint64_t *end) {
    if (element < call->part_first) {
        *start = 0;
        *end = least(call->part_first, call->count);
        return 0;
    }
    const uint64_t number = (element - call->part_first) / call->part;
    *start = call->part_first + number * call->part;
    *end = least(*start + call->part, call->count);
    return number + 1;
}

/* all_reduce.h:runRing of NCCL: a part is walked in loops of P chunks; the last loop divides what
 * is left. Position c adds its term last to chunk c. */
static void grouping_nccl_ring(const struct grouping_call *call, uint64_t element,
                               struct grouping_run *out) {
    uint64_t start, end, chunk = call->chunk / call->width;
    part_of(call, element, &start, &end);
    const uint64_t loop = chunk * call->ranks;
    start += (element - start) / loop * loop;
    if (end - start < loop)
        chunk = round_up(divide_up(end - start, call->ranks), NCCL_ALIGNMENT / call->width);
    const uint64_t number = (element - start) / chunk;
    out->start = start + number * chunk;
    out->end = least(out->start + chunk, end);
    put_fold(call, (uint32_t)number + 1, 1, out);
}

/* reduce_scatter.h:runRing of NCCL: each channel walks its part of every block round the ring, and
 * a block ends at the rank whose it is. So neither parts nor chunks matter, but a ring does. */
static void grouping_nccl_ring_scatter(const struct grouping_call *call, uint64_t element,
                                       struct grouping_run *out) {
    const uint64_t block = call->count / call->ranks, owner = element / block;
    uint32_t position = 0;
    while ((call->places == NULL ? position : call->places[position]) != owner)
        position++;
    out->start = owner * block;
    out->end = out->start + block;
    put_fold(call, position + 1, 1, out);
}

#define NO_NODE 0xffffffffu

/* Children of `node` in the binary tree over `nodes` whose root is node 0: trees.cc:ncclGetBtree.
 * The root's only child is its second one. */
static void children_of(uint32_t nodes, uint32_t node, uint32_t *first, uint32_t *second) {
    uint32_t bit = 1, low;
    while (bit < nodes && (bit & node) == 0)
        bit *= 2;
    low = bit / 2;
    *first = NO_NODE;
    *second = NO_NODE;
    if (node == 0) {
        if (nodes > 1) *second = low;
        return;
    }
    if (low == 0) return;
    *first = node - low;
    while (low > 0 && node + low >= nodes)
        low /= 2;
    if (low > 0) *second = node + low;
}

/* The second tree is the first one mirrored where the number of nodes is even, else shifted by one:
 * trees.cc:ncclGetDtree. This maps a node of one to the node of the other. */
static uint32_t node_across(uint32_t nodes, uint32_t node, int is_second) {
    if (!is_second || node == NO_NODE) return node;
    return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
}

/* What node `node` of the first tree hands to its parent. Inside a node the last rank of the chain
 * begins, and the head ends. A rank adds to its own term first what its chain sends, then what
 * other nodes send: connect.cc, connectTrees, and common_kernel.h, reduceCopyPacks. The depth of
 * the recursion is that of the tree, at most 10. */
static void put_node(const struct grouping_call *call, uint32_t node, int is_second,
                     struct grouping_run *out) {
    const uint32_t nodes = call->ranks / call->node, last = call->node - 1;
    const uint32_t second_rank = last > 0 ? 1 : 0;
    const uint32_t place = node_across(nodes, node, is_second) * call->node;
    uint32_t children[2], at[2];
    children_of(nodes, node, &children[0], &children[1]);
    at[0] = call->pattern == GROUPING_PATTERN_TREE ? 0 : second_rank;
    at[1] = call->pattern == GROUPING_PATTERN_SPLIT ? second_rank : 0;
    for (uint32_t i = call->node; i-- > 0;) {
        put_place(call, place + i, out);
        if (i < last) put(out, GROUPING_ADD);
        for (int child = 0; child < 2; child++) {
            if (children[child] == NO_NODE || at[child] != i) continue;
            put_node(call, children[child], is_second, out);
            put(out, GROUPING_ADD);
        }
    }
}

/* The first half of the channels uses the first tree. */
static void grouping_nccl_tree(const struct grouping_call *call, uint64_t element,
                               struct grouping_run *out) {
    const uint64_t channel = part_of(call, element, &out->start, &out->end);
    put_node(call, 0, channel >= call->channels / 2, out);
}

void grouping_of(const struct grouping_call *call, uint64_t element, struct grouping_run *out) {
    out->length = 0;
    grouping_whole(call, out);
    switch (call->algorithm) {
    case GROUPING_LINEAR:
        put_fold(call, call->ranks - 1, call->ranks - 1, out);
        break;
    case GROUPING_RECURSIVE:
        put_tree(call, 0, out);
        break;
    case GROUPING_RING:
    case GROUPING_RING_SCATTER:
        grouping_ring(call, element, out);
        break;
    case GROUPING_HALVING:
        put_tree(call, 1, out);
        break;
    case GROUPING_GLOO:
        grouping_gloo(call, element, out);
        break;
    case GROUPING_NCCL_RING:
        grouping_nccl_ring(call, element, out);
        break;
    case GROUPING_NCCL_RING_SCATTER:
        grouping_nccl_ring_scatter(call, element, out);
        break;
    default:
        grouping_nccl_tree(call, element, out);
        break;
    }
}

/* A sum that is added to what stands left of it needs parentheses; one that stands left of all is
 * read first anyway. */
void grouping_text(const struct grouping_run *run, char *out) {
    unsigned char is_added[2 * GROUPING_RANKS] = {0}, opens[2 * GROUPING_RANKS] = {0},
                               closes[2 * GROUPING_RANKS] = {0};
    uint16_t begins[GROUPING_RANKS], ends[GROUPING_RANKS];
    size_t depth = 0, at = 0;
    for (uint16_t i = 0; i < run->length; i++) {
        if (run->terms[i] != GROUPING_ADD) {
            begins[depth] = i;
            ends[depth++] = i;
            continue;
        }
        depth--;
        is_added[begins[depth]] = 1;
        if (ends[depth] > begins[depth]) {
            opens[begins[depth]] = 1;
            closes[ends[depth]] = 1;
        }
        ends[depth - 1] = i;
    }
    for (uint16_t i = 0; i < run->length; i++) {
        if (run->terms[i] != GROUPING_ADD)
            at += (size_t)snprintf(out + at, GROUPING_TEXT - at, "%s%s%u", is_added[i] ? " + " : "",
                                   opens[i] ? "(" : "", run->terms[i]);
        if (closes[i]) at += (size_t)snprintf(out + at, GROUPING_TEXT - at, ")");
    }
}

static enum status check_places(const struct grouping_call *call) {
    unsigned char seen[GROUPING_RANKS] = {0};
    for (uint32_t i = 0; call->places != NULL && i < call->ranks; i++) {
        const uint32_t rank = call->places[i];
        if (rank >= call->ranks)
            FAIL(STATUS_INPUT, "places: expected ranks from 0 to %u, got %u", call->ranks - 1,
                 rank);
        if (seen[rank]) FAIL(STATUS_INPUT, "places: expected every rank once, got %u twice", rank);
        seen[rank] = 1;
    }
    return STATUS_OK;
}

static enum status check_ring_of_nccl(const struct grouping_call *call) {
    if (call->chunk < NCCL_ALIGNMENT || call->chunk % NCCL_ALIGNMENT != 0 ||
        call->chunk > COUNT_MAX)
        FAIL(STATUS_INPUT,
             "chunk: expected a multiple of %u bytes for nccl-ring, as NCCL's trace prints it as "
             "chunkBytes, got %llu",
             NCCL_ALIGNMENT, (unsigned long long)call->chunk);
    return STATUS_OK;
}

static enum status check_tree_of_nccl(const struct grouping_call *call) {
    if (call->node == 0 || call->ranks % call->node != 0)
        FAIL(STATUS_INPUT,
             "node: expected the ranks of a node for nccl-tree, a divisor of %u, got %u",
             call->ranks, call->node);
    const uint64_t parts =
        1 + (call->count > call->part_first ? divide_up(call->count - call->part_first, call->part)
                                            : 0);
    if (call->channels < 2 || call->channels % 2 != 0 || parts > call->channels)
        FAIL(STATUS_INPUT,
             "channels: expected an even number for nccl-tree, because half of them use the second "
             "tree, and no fewer than the %llu parts; got %u",
             (unsigned long long)parts, call->channels);
    return STATUS_OK;
}

enum status grouping_check(const struct grouping_call *call) {
    if (call->ranks < 1 || call->ranks > GROUPING_RANKS)
        FAIL(STATUS_INPUT, "ranks: expected 1 to %u, got %u", GROUPING_RANKS, call->ranks);
    if (call->count < 1 || call->count > COUNT_MAX)
        FAIL(STATUS_INPUT, "count: expected 1 to 2^48 elements, got %llu",
             (unsigned long long)call->count);
    if (call->width == 0 || call->width > 8 || (call->width & (call->width - 1)) != 0)
        FAIL(STATUS_INPUT, "width: expected 1, 2, 4 or 8 bytes, got %u", call->width);
    if (call->algorithm == GROUPING_NCCL_RING_SCATTER) {
        if (call->count % call->ranks != 0)
            FAIL(STATUS_INPUT,
                 "count: expected a multiple of %u for nccl-ring-scatter, whose blocks are equal, "
                 "got %llu",
                 call->ranks, (unsigned long long)call->count);
        return check_places(call);
    }
    if (call->algorithm != GROUPING_NCCL_RING && call->algorithm != GROUPING_NCCL_TREE)
        return STATUS_OK;
    if (call->part_first == 0 || (call->part == 0 && call->part_first < call->count))
        FAIL(STATUS_INPUT,
             "parts: expected the elements of the first channel and of each further one for %s, as "
             "NCCL's trace prints them as countLo and countMid, got %llu and %llu of %llu",
             grouping_name(call->algorithm), (unsigned long long)call->part_first,
             (unsigned long long)call->part, (unsigned long long)call->count);
    if (call->part_first > COUNT_MAX || call->part > COUNT_MAX)
        FAIL(STATUS_INPUT, "parts: expected at most 2^48 elements of a channel, got %llu and %llu",
             (unsigned long long)call->part_first, (unsigned long long)call->part);
    TRY(check_places(call));
    return call->algorithm == GROUPING_NCCL_RING ? check_ring_of_nccl(call)
                                                 : check_tree_of_nccl(call);
}

enum status grouping_of_open_mpi(enum grouping_collective collective, uint32_t number,
                                 uint32_t ranks, uint64_t count, enum grouping_algorithm *out) {
    /* By number; 0 is nobody's. */
    static const enum grouping_algorithm of_all_reduce[] = {
        GROUPING_COUNT, GROUPING_LINEAR, GROUPING_COUNT,    GROUPING_RECURSIVE,
        GROUPING_RING,  GROUPING_RING,   GROUPING_RECURSIVE};
    static const enum grouping_algorithm of_scatter[] = {GROUPING_COUNT, GROUPING_COUNT,
                                                         GROUPING_HALVING, GROUPING_RING_SCATTER,
                                                         GROUPING_RECURSIVE};
    const int is_scatter = collective == GROUPING_REDUCE_SCATTER;
    const size_t known = is_scatter ? COUNT_OF(of_scatter) : COUNT_OF(of_all_reduce);
    *out = number >= known ? GROUPING_COUNT
           : is_scatter    ? of_scatter[number]
                           : of_all_reduce[number];
    if (*out == GROUPING_COUNT)
        FAIL(STATUS_INPUT,
             "coll_tuned_%s_algorithm: expected %s, whose groupings are known, got %u",
             is_scatter ? "reduce_scatter" : "allreduce",
             is_scatter ? "2, 3 or 4" : "1, 3, 4, 5 or 6", number);
    if (is_scatter) return STATUS_OK;
    if (*out == GROUPING_RING && count < ranks) *out = GROUPING_RECURSIVE;
    if (number == 6 && count < power_below(ranks)) *out = GROUPING_LINEAR;
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * What the kernels of attention get, and which queries or keys of a sequence a block has (law 6).
 *
 * A block has up to 32 queries, or keys, of one sequence and one head. Where sums are shuffled,
 * blocks end where tiles of law 9 do, so that a block has one order.
 * Invariant: how tokens are dealt out to blocks moves no bit but by law 9's own tiles. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_JOB_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_JOB_H

#include <string.h>

#include "kernels/cuda/masks.h"
#include "kernels/cuda/joined.h"

#define ATTENTION_TILE 32u /* queries and keys of a tile: as many as law 2 has lanes */
#define ATTENTION_SIDE 8u  /* threads along one side of a tile */
#define ATTENTION_EACH (ATTENTION_TILE / ATTENTION_SIDE)
#define ATTENTION_THREADS (ATTENTION_SIDE * ATTENTION_SIDE)
#define ATTENTION_STATE                                                                            \
    3u /* numbers of a query and head: maximum (of flash: log-sum-exp), sum of exponentials, D */

/* The orders of one launch: those of tiles first .. first+tiles-1 of all, `columns` of them in a
 * row. */
struct attention_order {
    struct joined by;
    size_t first, tiles, columns;
};

/* Mode atomic: a block has `span` keys, which are whole chunks. */
struct attention_race {
    uint32_t chunk, span, pieces;
};

struct attention_job {
    struct group group;
    size_t counted; /* tokens of the call before the group, from which the rows of law 9's tiles are
                       counted */
    int aligned;    /* 1: blocks end where tiles of law 9 do */
    uint32_t parts; /* blocks' parts, as attention_deal() counts them */
    uint32_t H, G, D;
    int backward; /* 1: the sums over keys are dQ; 0: they are PV */
    int drops;
    enum dtype dtype;          /* of the outputs */
    enum dtype score, product; /* call_score(), call_product() */
    carrier scale;
    const struct stored *q, *k, *v, *dout;
    const struct stored
        *stored; /* what the forward wrote: a backward of flash attention; else NULL */
    struct stored *out, *dq, *dk, *dv;
    accumulator *state;      /* (tokens of the group, H, ATTENTION_STATE) */
    accumulator *keeps;      /* a forward's: where maximum and sum are kept, or NULL */
    const accumulator *kept; /* a backward's: where it finds them, or NULL */
    struct dropout dropout;
    struct attention_order order;
    uint32_t chunk[GROUP_SEQUENCES]; /* mode shaped: keys of a chunk; 0: the sum is not cut */
    struct attention_race race;
    accumulator *sums; /* mode atomic: (tokens of the group, H, D) */
    /* On tensor cores: q, dout, k and v as operands (tokens of the group, heads, columns), or as
     * they lie, (rows, heads, D). */
    const uint16_t *packed[4];
};

/* Positions first .. first+count-1 of a sequence: what a block has of it. */
struct attention_part {
    const struct sequence *sequence;
    uint32_t number; /* the sequence's number in its group */
    uint32_t first, count;
    uint32_t token; /* the number of the first position's token in the group */
};

/* How many places of the first block of a sequence stand for the sequences before it, whose tile
 * goes on here. */
TWINSTEP_HD uint32_t attention_skew(const struct attention_job *job, uint32_t token) {
    return job->aligned ? (uint32_t)((job->counted + token) % ATTENTION_TILE) : 0;
}

TWINSTEP_HD uint32_t attention_parts_of(const struct attention_job *job, uint32_t number,
                                        uint32_t token) {
    const uint32_t length = job->group.sequence[number].length;
    if (length == 0) return 0;
    return (attention_skew(job, token) + length + ATTENTION_TILE - 1) / ATTENTION_TILE;
}

GPU_INLINE struct attention_part attention_part_at(const struct attention_job *job,
                                                   uint32_t index) {
    struct attention_part part;
    uint32_t token = 0, number = 0;
    for (uint32_t parts; index >= (parts = attention_parts_of(job, number, token)); number++) {
        index -= parts;
        token += job->group.sequence[number].length;
    }
    part.sequence = job->group.sequence + number;
    part.number = number;
    const uint32_t skew = attention_skew(job, token);
    part.first = index == 0 ? 0 : index * ATTENTION_TILE - skew;
    const uint32_t end = (index + 1) * ATTENTION_TILE - skew;
    part.count = (end < part.sequence->length ? end : part.sequence->length) - part.first;
    part.token = token + part.first;
    return part;
}

/* The same, counted from the group's end: of one sequence, the part whose queries have most keys
 * starts first, so that no long block is left for the end. */
GPU_INLINE struct attention_part attention_part_back(const struct attention_job *job,
                                                     uint32_t index) {
    return attention_part_at(job, job->parts - 1 - index);
}

GPU_INLINE struct stored *attention_over_keys_out(const struct attention_job *job) {
    return job->backward ? job->dq : job->out;
}

/* Counts the parts of the group into job->parts, and returns how many they are. */
static inline size_t attention_deal(struct attention_job *job) {
    uint32_t token = 0;
    job->parts = 0;
    for (uint32_t i = 0; i < job->group.count; i++) {
        job->parts += attention_parts_of(job, i, token);
        token += job->group.sequence[i].length;
    }
    return job->parts;
}

static inline uint32_t attention_longest(const struct attention_job *job) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < job->group.count; i++)
        if (job->group.sequence[i].length > longest) longest = job->group.sequence[i].length;
    return longest;
}

static inline struct attention_job attention_job_of(const struct op_call *call,
                                                    const struct dropout *dropout, double scale) {
    struct attention_job job;
    memset(&job, 0, sizeof job);
    job.drops = dropout != NULL;
    job.dtype = call->compute;
    job.score = call_score(call);
    job.product = call_product(call);
    job.scale = (carrier)scale;
    job.state = (accumulator *)cuda_rest(call);
    if (dropout != NULL) job.dropout = *dropout;
    return job;
}

static inline struct attention_job attention_job_forward(
    const struct op_call *call, const struct attention_forward_args *args) {
    struct attention_job job = attention_job_of(call, args->dropout, args->scale);
    job.H = args->H;
    job.G = args->G;
    job.D = args->D;
    job.q = (const struct stored *)args->q;
    job.k = (const struct stored *)args->k;
    job.v = (const struct stored *)args->v;
    job.out = (struct stored *)args->out;
    job.keeps = (accumulator *)args->state;
    return job;
}

static inline struct attention_job attention_job_backward(
    const struct op_call *call, const struct attention_backward_args *args) {
    struct attention_job job = attention_job_of(call, args->dropout, args->scale);
    job.backward = 1;
    job.H = args->H;
    job.G = args->G;
    job.D = args->D;
    job.q = (const struct stored *)args->q;
    job.k = (const struct stored *)args->k;
    job.v = (const struct stored *)args->v;
    job.dout = (const struct stored *)args->dout;
    job.stored = (const struct stored *)args->out;
    job.kept = (const accumulator *)args->state;
    job.dq = (struct stored *)args->dq;
    job.dk = (struct stored *)args->dk;
    job.dv = (struct stored *)args->dv;
    return job;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Keeps the ranks' copies in the state, exchanges them with the run's tensors, and runs phases on
 * each.
 *
 * Exchanging bytes costs little beside a micro-batch, and all code that trains goes on to know one
 * place for a tensor. */
#include "trainer/replicas.h"

#include <string.h>

#include "model/digests.h"
#include "scenarios/scenario.h"
#include "trainer/run_private.h"
#include "trainer/phases.h"
#include "trainer/shards.h"
#include "trainer/tensor_ranks.h"

struct replicas {
    uint32_t active; /* the rank whose tensors are in the run's place */
    int closes;      /* 1 while the gradient of the update is not closed before a phase */
    struct digest (*piece)[STATE_PIECES]; /* (rows) of a rank other than 0 */
};

enum status replicas_open(struct run *run) {
    const int joins = config_parts_ranks(&run->config) && run->shards == NULL;
    if (run->layout.replicas.copies == 0 || joins) return STATUS_OK;
    TRY(arena_take(&run->arena, 1, sizeof *run->replicas, "replicas", &run->replicas));
    return arena_take(&run->arena, run->table.count, sizeof *run->replicas->piece, "digests",
                      &run->replicas->piece);
}

/* The copy of a rank other than 0. */
static unsigned char *copy_of(const struct run *run, uint32_t rank) {
    const struct state_replicas *const layout = &run->layout.replicas;
    return (unsigned char *)run_at(run, layout->first + (rank - 1) * layout->bytes);
}

/* Parameters and gradients are of the same piece of a copy. */
static void *place_of(const struct run *run, uint32_t rank, size_t at) {
    if (rank == 0) return run_at(run, at);
    return copy_of(run, rank) + (at - run->layout.replicas.piece[0].at);
}

void *replicas_param(const struct run *run, uint32_t rank, uint32_t row) {
    return place_of(run, rank, run->layout.tensor[row].param);
}

void *replicas_gradient(const struct run *run, uint32_t rank, uint32_t row) {
    return place_of(run, rank, run->layout.tensor[row].gradient);
}

void replicas_spread(struct run *run) {
    const struct state_replicas *const layout = &run->layout.replicas;
    if (run->replicas == NULL) return;
    for (uint32_t rank = 1; rank <= layout->copies; rank++) {
        unsigned char *copy = copy_of(run, rank);
        for (int i = 0; i < 2; copy += layout->piece[i++].bytes)
            memcpy(copy, run_at(run, layout->piece[i].at), layout->piece[i].bytes);
    }
}

void replicas_begin(struct run *run) {
    if (run_head(run)->done == 0) replicas_spread(run);
}

void replicas_exchange_bytes(void *a, void *b, size_t bytes) {
    unsigned char *const left = (unsigned char *)a, *const right = (unsigned char *)b;
    unsigned char kept[4096];
    for (size_t at = 0, count; at < bytes; at += count) {
        count = bytes - at < sizeof kept ? bytes - at : sizeof kept;
        memcpy(kept, left + at, count);
        memcpy(left + at, right + at, count);
        memcpy(right + at, kept, count);
    }
}

/* Exchanges what is in the run's place with the copy of a rank. */
static void exchange(struct run *run, uint32_t rank) {
    const struct state_replicas *const layout = &run->layout.replicas;
    unsigned char *copy = copy_of(run, rank);
    for (int i = 0; i < 2; copy += layout->piece[i++].bytes)
        replicas_exchange_bytes(run_at(run, layout->piece[i].at), copy, layout->piece[i].bytes);
}

/* While rank r is in the run's place, its copy holds what rank 0 has. */
void replicas_enter(struct run *run, uint32_t rank) {
    struct replicas *const replicas = run->replicas;
    if (replicas == NULL || replicas->active == rank) return;
    if (replicas->active != 0) exchange(run, replicas->active);
    if (rank != 0) exchange(run, rank);
    replicas->active = rank;
    run->weights_fresh = 0;
}

/* Whether a phase reads or writes what each rank has of its own behind the last micro-batch. */
static int is_of_each_rank(enum phase phase) {
    return phase == PHASE_REDUCE || phase == PHASE_UNSCALE || phase == PHASE_CLIP ||
           phase == PHASE_OPTIMIZE || phase == PHASE_ZERO;
}

/* The accumulators hold the sums of one rank at a time. So behind the join the gradients of ranks
 * other than 0 are closed at once, and that of rank 0 where a run without replicas closes it. */
static enum status run_beside(struct run *run, enum phase phase, uint32_t rank) {
    replicas_enter(run, rank);
    if (phase == PHASE_REDUCE) {
        shards_take_rank(run, rank);
        return phase_close_gradient(run);
    }
    run_head(run)->pending = 0;
    run_head(run)->stored = 1;
    return phase_run(run, phase);
}

/* A tensor-parallel rank has its own sums of what it holds apart. It clips by the coefficient of
 * rank 0; with samples of its own, by its own norm, which is of all slices and of what it holds
 * whole itself. */
static enum status run_tensor_rank(struct run *run, enum phase phase, uint32_t rank) {
    replicas_enter(run, rank);
    run_head(run)->pending = (uint64_t)run->replicas->closes;
    if (run->replicas->closes) TRY(tensor_ranks_close(run, rank));
    run_head(run)->stored = 1;
    if (phase != PHASE_CLIP || config_fed_ranks(&run->config) > 1) return phase_run(run, phase);
    phase_clip_as_before(run);
    return model_wait(&run->model);
}

/* Runs a phase on a rank other than 0, of which nobody sees anything: what it writes besides its
 * tensors is put back. */
static enum status run_unseen(struct run *run, enum phase phase, uint32_t rank) {
    const struct state_head head = *run_head(run);
    const struct stream_ledger ledger = run->ledger;
    const struct run_options options = run->options;
    struct watch *const watch = run->model.watch;
    double reals[RECORD_REALS];
    memcpy(reals, run->record.reals, sizeof reals);
    run->replaying = 1;
    run->model.watch = NULL;
    run->options.readback = 0;
    run->options.at_phase = NULL;
    const enum status status =
        (run->tensor_ranks != NULL ? run_tensor_rank : run_beside)(run, phase, rank);
    run->options = options;
    run->model.watch = watch;
    run->replaying = 0;
    memcpy(run->record.reals, reals, sizeof reals);
    run->ledger = ledger;
    *run_head(run) = head;
    return status;
}

/* There is nothing to reduce. The others are behind rank 0 where they need its coefficient, and
 * before it elsewhere: `zero` of any rank clears the sums. */
static enum status tensor_phase(struct run *run, enum phase phase) {
    run->replicas->closes = run_head(run)->pending != 0;
    if (phase == PHASE_REDUCE) return phase_run(run, phase);
    if (phase == PHASE_CLIP) TRY(phase_run(run, phase));
    for (uint32_t rank = run->layout.replicas.copies; rank > 0; rank--)
        TRY(run_unseen(run, phase, rank));
    replicas_enter(run, 0);
    if (phase != PHASE_CLIP) return phase_run(run, phase);
    tensor_ranks_join_clipped(run);
    return STATUS_OK;
}

enum status replicas_phase(struct run *run, enum phase phase) {
    if (run->replicas == NULL || !is_of_each_rank(phase)) return phase_run(run, phase);
    if (run->tensor_ranks != NULL) return tensor_phase(run, phase);
    if (phase == PHASE_REDUCE) TRY(phase_run(run, phase));
    for (uint32_t rank = run->layout.replicas.copies; rank > 0; rank--)
        TRY(run_unseen(run, phase, rank));
    replicas_enter(run, 0);
    if (phase != PHASE_REDUCE) return phase_run(run, phase);
    shards_take_rank(run, 0);
    return STATUS_OK;
}

/* The index, among owners, of the first tensor whose pieces differ from those of rank 0. */
static int64_t first_differing(const struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++)
        if (memcmp(run->piece_digest[run->owner[i]], run->replicas->piece[run->owner[i]],
                   sizeof *run->piece_digest) != 0)
            return i;
    return -1;
}

/* Whether a rank holds, bit for bit, what rank 0 holds; gradients, which are no part of what the
 * next update begins with, are zero between updates. */
static int equals_first(const struct run *run, uint32_t rank) {
    const struct state_replicas *const layout = &run->layout.replicas;
    const unsigned char *copy = copy_of(run, rank);
    for (int i = 0; i < 2; copy += layout->piece[i++].bytes)
        if (memcmp(copy, run_at(run, layout->piece[i].at), layout->piece[i].bytes) != 0) return 0;
    return 1;
}

static enum status record_rank(struct run *run, uint32_t rank, struct digest *out) {
    replicas_enter(run, rank);
    TRY(state_pieces_digest(&run->table, &run->layout, run->state.tensors, &run->digests,
                            run->replicas->piece));
    replicas_enter(run, 0);
    state_weights_digest(&run->table, &run->layout, run->state.host,
                         (const struct digest(*)[STATE_PIECES])run->replicas->piece, out);
    run->record.ranks[rank][RANK_FIRST_TENSOR] = first_differing(run);
    return STATUS_OK;
}

enum status replicas_record(struct run *run, struct digest *weights) {
    const struct digest first = *weights;
    struct digest_stream all;
    int parted = 0;
    digest_stream_init(&all, "ranks");
    for (uint32_t rank = 0; rank < run->shape.ranks; rank++) {
        struct digest digest = first;
        run->record.ranks[rank][RANK_FIRST_TENSOR] = -1;
        if (rank > 0 && run->replicas != NULL && !equals_first(run, rank))
            TRY(record_rank(run, rank, &digest));
        parted |= run->record.ranks[rank][RANK_FIRST_TENSOR] >= 0;
        memcpy(run->record.rank_digests[rank][RANK_DIGEST], digest.byte, DIGEST_BYTES);
        digest_stream_add(&all, &digest);
    }
    if (parted) digest_stream_close(&all, weights);
    return STATUS_OK;
}
